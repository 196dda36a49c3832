# What is told of the place POSITION, in two lines: callers, and a variable if it is known.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

run(f"seek {os.environ['POSITION']}")
expect(position(), int(os.environ["POSITION"]), "where it begins")
print("told callers " + " ".join(str(name) for name in callers()[:4]))
try:
	print("told visited " + value("visited"))
except gdb.MemoryError:
	print("told visited")
passed()
