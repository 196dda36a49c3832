report translated python3 "$programs/threads.py"
