# C extensions and calls from C back into the interpreter.
PYTHONHASHSEED=1 report translated python3 "$programs/extensions.py"
