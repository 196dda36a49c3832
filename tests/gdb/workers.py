# Threads: a crash in one of them, whose cause is in another one; all of them go back together.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

expect(function(), "collect", "where it died")
expect(number("i"), 13, "the slot")
expect(len(gdb.selected_inferior().threads()), 1, "threads at the end: the others have been joined")
main = gdb.selected_thread().ptid[1]

# What the kernel told the program, whichever place it is looked at from.
auxv = run("info auxv")
for name in ("AT_RANDOM", "AT_EXECFN", "AT_HWCAP", "AT_UID", "AT_ENTRY"):
	expect_in(name, auxv, "auxv")

# The value was stored by another thread: last goes there.
output = run("last results[13]")
expect_in("finish_job", output, "who stored it")
expect(function(), "finish_job", "where it was stored")
expect(number("job"), 13, "the job")
if gdb.selected_thread().ptid[1] == main:
	raise gdb.GdbError("last has not gone to another thread")
threads = gdb.selected_inferior().threads()
expect(len(threads), 3, "threads then")

# The main thread waits for them meanwhile; every thread can be looked at.
names = {}
current = gdb.selected_thread()
for thread in threads:
	thread.switch()
	names[thread.ptid[1]] = callers()
current.switch()
expect_in("join", " ".join(str(name) for name in names[main]), "where the main thread waits")
expect_in("main", " ".join(str(name) for name in names[main]), "where the main thread waits")

# Variables of threads, the program's and the library's. Before it has been stored to, it is what the file has.
expect((number("latest"), number("(int)errno")), (130 + number("worker"), 40 + number("worker")), "of the one that stored it")
workers = set()
for thread in threads:
	thread.switch()
	if thread.ptid[1] == main:
		expect(number("(int)errno"), 0, "errno of the main thread")
		continue
	worker = number("(int)errno") - 40
	workers.add(worker)
	expect(number("(int)padding[0]"), worker, "the first of a thread's variables")
	expect(number("latest") % 10, worker, "another one")
current.switch()
expect(workers, {1, 2}, "workers")

# Where all of them are, here and elsewhere, without going there.
here, worker = position(), current.ptid[1]



def select(tid):
	[thread for thread in gdb.selected_inferior().threads() if thread.ptid[1] == tid][0].switch()


def threads_at(where=""):
	lines = [line.replace("=>", "").split(None, 3) for line in run("threads-at " + where).splitlines()]
	return {int(line[2].strip("()")): line[3] for line in lines}


found = threads_at()
expect(len(found), 3, "threads")
expect_in("in system call futex", found[main], "where the main thread waits")
expect_in("running, finish_job at workers.c", found[worker], "where the worker is")
for where in ("start", "20%", "50%", "end", "-0s"):
	select(worker)
	found = threads_at(where)
	expect((position(), gdb.selected_thread().ptid[1]), (here, worker), "threads-at does not move")
	run(f"seek {where}")
	expect(threads_at(), found, f"threads at {where}, and there")
	for thread in gdb.selected_inferior().threads():
		expect_in("position", found.pop(thread.ptid[1]), f"a thread that is there at {where}")
	for state in found.values():
		if state not in ("not yet started", "ended"):
			raise gdb.GdbError(f"a thread that is not there is {state}")
	run(f"seek {here}")
expect_in("threads-at start", run("complete threads-at s"), "completion")
expect_error("threads-at nowhere", "no position")
run("mark stored")
run("seek end")
select(main)
found = threads_at("stored")
expect_in(f"position {here:>12}  running, finish_job", found[worker], "threads at a mark of another one")
found = threads_at("start")
expect_in("running", found.pop(main), "the main thread at its start")
expect(list(found.values()), ["not yet started"] * 2, "the others, then")
run("seek end")
found = threads_at()
expect_in("killed by SIGSEGV, collect", found.pop(main), "the main thread at the end")
expect(list(found.values()), ["ended"] * 2, "the others, at the end")

# A breakpoint stops whichever thread comes first. Stamps tell which that is, but for locked instructions by which threads did not
# meet: so what is certain is that nothing is left out, and that each thread goes in its order.
def in_order(jobs):
	expect(sorted(job for job, _ in jobs), list(range(24)), "all jobs")
	for worker in (1, 2):
		own = [job for job, by in jobs if by == worker]
		expect(own, sorted(own), f"jobs of worker {worker}")


run("seek start")
run("break finish_job")
jobs = []
while move("continue") == "breakpoint":
	jobs.append((number("job"), number("worker")))
in_order(jobs)
expect(function(), "collect", "the end")
back = []
while move("reverse-continue") == "breakpoint":
	back.append((number("job"), number("worker")))
in_order(back[::-1])
expect(sorted(back), sorted(jobs), "the same backwards")

# One thread alone: the others stay, registers and all, until all go again.
def places():
	current, found = gdb.selected_thread(), {}
	for thread in gdb.selected_inferior().threads():
		thread.switch()
		found[thread.ptid[1]] = (position(), pc())
	current.switch()
	return found


run("seek start")
run("break finish_job")
move("continue")
run("delete")
alone, before = gdb.selected_thread().ptid[1], places()
run("set scheduler-locking on")
for command in ("stepi", "next", "finish", "reverse-stepi"):
	move(command)
	expect({tid: place for tid, place in places().items() if tid != alone},
		{tid: place for tid, place in before.items() if tid != alone}, f"the others, behind {command}")
expect(gdb.selected_thread().ptid[1], alone, "who has moved")
expect(places()[alone] != before[alone], True, "it has")
run("set scheduler-locking replay")
run(f"seek {before[alone][0]}")
expect(places(), before, "all of them, at one time")
# What a thread called, which is none any more where the recording ends.
run("delete")
run("seek start")
run("tbreak work")
move("continue")
there = (gdb.selected_thread().ptid, position())
expect(len([line for line in run("calls work").splitlines() if "work(" in line]), 1, "calls of a thread that ends")
expect((gdb.selected_thread().ptid, position()), there, "behind calls")
passed()
