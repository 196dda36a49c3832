report translated python3 "$programs/processes.py"
report translated --children python3 "$programs/processes.py"
