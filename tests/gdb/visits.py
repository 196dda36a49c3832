# Stops at every call of visit(), tells what there is to see, and writes it to the file in $VISITS. $WAY: live, forwards, or
# backwards. The program live, the recording forwards and the recording backwards must agree.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

way = os.environ["WAY"]
run("break visit")
if way == "live":
	run("handle SIGUSR1 nostop noprint pass")
	move("run")
else:
	run("handle SIGUSR1 nostop noprint pass")
	if way == "forwards":
		run("seek start")
	move("continue" if way == "forwards" else "reverse-continue")

seen = []
while True:
	if function() != "visit":
		break
	item = hex(number("(long)item"))
	if number("(long)item") > 0x2000:
		item = " ".join(value("item->" + field) for field in ("key", "weight", "name"))
	seen.append(f"{item} depth {value('depth')} visited {value('visited')} signals {value('signals')} {callers()} "
		f"{value('$rip - (long)&visit')}")
	stop = move("reverse-continue" if way == "backwards" else "continue")
	if stop != "breakpoint":
		break
if way == "backwards":
	seen.reverse()
	expect(position(), 0, "the start")
else:
	expect(stop, "SIGSEGV", "the end")
with open(os.environ["VISITS"], "w") as file:
	file.write("\n".join(seen) + "\n")
if len(seen) < 12:
	raise gdb.GdbError(f"only {len(seen)} visits")
passed()
