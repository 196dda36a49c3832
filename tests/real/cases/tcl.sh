report translated tclsh "$programs/mix.tcl"
