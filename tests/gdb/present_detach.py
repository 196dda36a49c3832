# Let go in the middle: it goes on by itself.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

run("break visit")
move("continue")
move("continue")
run("reverse-stepi")
run("detach")
passed()
