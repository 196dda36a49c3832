"""Recording and replaying the rows: what it costs, and whether that is what was aimed at."""

import dataclasses
import glob
import json
import os
import statistics
import subprocess

from programs import ROOT, Row
from runner import Failed, command_of, run

BUGNET = os.environ.get("BUGNET", os.path.join(ROOT, "build", "bugnet"))
LOGSIZE = os.path.join(ROOT, "build", "bench", "logsize")

# ---- goals

RECORD_MEAN = 2.5
REPLAY = 1.5
# Bits per instruction, for runs of at least so many instructions; and bytes for so many after a keyframe: BugNet's own.
BITS, BITS_FROM = 0.15, 1_000_000_000
WINDOW_BYTES, WINDOW = 225_000, 10_000_000
# The program's touched memory twice, plus the ring of each thread (LOG_STRIDE in src/target/layout.h).
MEMORY_TIMES, RING_KB = 2, 512

# Recorders to be ahead of, as measured once with unmodified Debian 12 programs on the two-processor AMD EPYC machine that the
# figures in docs/architecture.md come from (the table in the project's design notes): times over native. Their inputs were
# not exactly these rows' inputs.
OTHERS = {
	"rr fork with software counters": {
		"bzip2": 2.0, "gzip": 3.1, "xz": 2.7, "sqlite3": 5.4, "lua": 7.5, "python3": 12.5, "cc1": 8.4,
		"xz -3, 2 threads": 5.2, "short programs": 82.0,
	},
}


class NotExact(Failed):
	"""A recording that does not replay as it was recorded."""


@dataclasses.dataclass
class Recorded:
	"""What came of recording a row a few times; sizes are those of the last time."""
	row: str
	section: str
	threads: int = 1
	record: list = dataclasses.field(default_factory=list)  # times over native
	replay: list = dataclasses.field(default_factory=list)
	record_seconds: list = dataclasses.field(default_factory=list)
	replay_seconds: list = dataclasses.field(default_factory=list)
	instructions: int = 0
	bytes: int = 0
	log_seconds: float = 0
	window_bytes: int = 0  # 0: the run is too short
	native_memory: int = 0  # KB
	memory: int = 0
	shared_memory: int = 0
	supervisor_memory: int = 0

	@property
	def bits(self):
		return 8 * self.bytes / self.instructions if self.instructions else 0

	@property
	def rate(self):
		return self.bytes / self.log_seconds if self.log_seconds else 0

	def memory_allowed(self):
		return MEMORY_TIMES * self.native_memory + self.threads * RING_KB


def check_replay(workshop, file, timeout, seconds_of):
	"""Replay a recording that must be exact; returns the seconds."""
	try:
		replayed = run(workshop, [BUGNET, "replay", "--check", file], Row("replay", []), timeout)
	except Failed as failure:
		raise NotExact(f"replay takes {failure}") from None
	if replayed.status or replayed.last != "exact":
		raise NotExact(f"replay ended with status {replayed.status}: {replayed.complaint or replayed.last}")
	return seconds_of(replayed), replayed


def info(file):
	told = json.loads(subprocess.check_output([BUGNET, "info", "--json", file]))
	if not told["whole"]:
		raise NotExact("the recording is not whole")
	return told


def log_sizes(mode, file, numbers):
	"""Rows of bench/logsize.c, as dictionaries of numbers."""
	text = subprocess.check_output([LOGSIZE, mode, file] + [str(number) for number in numbers], text=True).splitlines()
	names = text[0].split(",")
	return [dict(zip(names, map(int, line.split(",")))) for line in text[1:]]


def window_bytes(file, instructions):
	return log_sizes("prefix", file, [WINDOW])[0]["mean_bytes"] if instructions >= WINDOW else 0


def record_once(bench, section, row, first, timeout, recorded):
	"""A native run, a recording and its replay, one after the other."""
	file = bench.path("recording.bug")
	if os.path.exists(file):
		os.remove(file)
	native = bench.run(command_of(row), row, timeout)
	bench.record(section, row, "native", native)
	kept = bench.run([BUGNET, "record", "--all", "-o", file, "--"] + command_of(row), row, timeout, saves=file)
	bench.record(section, row, "record", kept)
	if kept.status != first.status:
		raise Failed(f"status {kept.status}" + (f": {kept.complaint}" if kept.complaint else ""))
	if kept.digest != first.digest:
		raise Failed("output differs")
	if not os.path.exists(file):
		raise Failed(f"no recording: {kept.complaint}")
	seconds, replayed = check_replay(bench.workshop, file, 4 * timeout, bench.seconds_of)
	bench.record(section, row, "replay", replayed)
	told = info(file)
	recorded.record.append(bench.seconds_of(kept) / bench.seconds_of(native))
	recorded.replay.append(seconds / bench.seconds_of(native))
	recorded.record_seconds.append(bench.seconds_of(kept))
	recorded.replay_seconds.append(seconds)
	recorded.instructions, recorded.bytes = told["instructions"], told["bytes"] - told["packed_bytes"]
	recorded.threads, recorded.log_seconds = len(told["threads"]), told["duration_ns"] / 1e9
	recorded.window_bytes = window_bytes(file, recorded.instructions)
	recorded.native_memory = max(recorded.native_memory, native.memory)
	recorded.memory = max(recorded.memory, kept.memory)
	recorded.shared_memory = max(recorded.shared_memory, kept.shared_memory)
	recorded.supervisor_memory = max(recorded.supervisor_memory, kept.supervisor_memory)
	os.remove(file)
	return bench.seconds_of(kept) + seconds, bench.seconds_of(native)


def record_programs(bench, section, row, first, native, timeout):
	"""A loop that has each of its programs recorded on its own: (times over native to record, to replay)."""
	folder = bench.path("recordings")
	os.makedirs(folder)
	command = row.command + [BUGNET, "record", "--all", "--"]
	kept = bench.run(command, row, timeout, folder=folder)
	bench.record(section, row, "record", kept)
	if kept.status != first.status or kept.digest != first.digest:
		raise Failed(f"status {kept.status}, or other output than natively: {kept.complaint}")
	files = glob.glob(os.path.join(folder, "*.bug"))
	programs = 5 * int(row.command[2])
	if len(files) != programs:
		raise Failed(f"{len(files)} recordings of {programs} programs")
	seconds = sum(check_replay(bench.workshop, file, timeout, bench.seconds_of)[0] for file in files)
	for file in files:
		os.remove(file)
	os.rmdir(folder)
	return bench.seconds_of(kept) / native, seconds / native


# ---- judging

def behind_others(name, ratio):
	"""Those recorders that are as fast on a row, with their figures."""
	return [f"{other} ({figures[name]:.1f}x)" for other, figures in OTHERS.items() if name in figures and ratio >= figures[name]]


def median_of(values):
	return statistics.median(values) if values else None
