# Guile's own just-in-time compiler
# timeout: 120
GUILE_AUTO_COMPILE=0 report translated guile -q -s "$programs/mix.scm"
