# The interpreter itself: big integers, floats, dictionaries, generators, exceptions, deep recursion, classes.
PYTHONHASHSEED=1 report translated python3 "$programs/compute.py"
report translated python3 -c 'raise SystemExit(42)'
translated python3 -c 'def f(n): return f(n + 1)
try: f(0)
except RecursionError as e: print(e)'
report translated python3 -c 'import os; os.abort()' 2>/dev/null
report translated python3 -c '1/0'
