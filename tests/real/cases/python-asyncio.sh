# An event loop with a loopback server, sub-processes, timers and an executor.
report translated python3 "$programs/events.py"
