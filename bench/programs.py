"""The programs that are measured, and what they work on."""

import dataclasses
import os
import re
import subprocess

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(HERE)
INPUTS = os.path.join(HERE, "inputs")
ENVIRONMENT = {
	"PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/games",
	"LC_ALL": "C.UTF-8",
	"TZ": "UTC",
	"PYTHONHASHSEED": "1",
}


@dataclasses.dataclass
class Row:
	name: str
	command: list
	stdin: str = None
	# Lines of output that match are no part of the comparison: they tell times.
	ignore: str = None
	# For a program that must be talked to: (line to send, output to wait for) in turn.
	dialogue: list = None
	# Ends with a status other than 0 even when all is well.
	dies: bool = False


class Workshop:
	"""Where inputs are made, and how large: the whole of them, or a quarter when it should be quick."""

	def __init__(self, scratch, quick):
		self.scratch = scratch
		self.quick = quick

	def size(self, full):
		return max(1, full // 4) if self.quick else full

	def path(self, name):
		return os.path.join(self.scratch, name)


# ---- inputs

def read_tree(*roots):
	"""The sources below some folders, in a fixed order: text that every Debian machine of one release has alike."""
	for root in roots:
		for folder, folders, files in os.walk(root):
			folders.sort()
			for name in sorted(files):
				if name.endswith((".pm", ".pl", ".pod", ".py", ".h")):
					with open(os.path.join(folder, name), "rb") as file:
						yield file.read()


def write(path, data):
	with open(path, "wb" if isinstance(data, bytes) else "w") as file:
		file.write(data)
	return path


def corpus(bench):
	text = b"".join(read_tree("/usr/include/stb", "/usr/share/perl", "/usr/lib/python3"))
	for version in sorted(os.listdir("/usr/lib")):
		if re.fullmatch(r"python3\.\d+", version):
			text += b"".join(read_tree(os.path.join("/usr/lib", version)))
	while len(text) < 40 << 20:
		text += text
	return {size: write(bench.path(f"corpus{size}"), text[:bench.size(size << 20)]) for size in (3, 8, 24, 32)}


def preprocessed(bench):
	libraries = ["IMAGE_RESIZE:image_resize"] if bench.quick else ["TRUETYPE:truetype", "IMAGE_WRITE:image_write"]
	source = "".join(f"#define STB_{name.split(':')[0]}_IMPLEMENTATION\n#include <stb/stb_{name.split(':')[1]}.h>\n"
		for name in libraries)
	write(bench.path("compiled.c"), source)
	subprocess.run(["gcc", "-E", "-P", "compiled.c", "-o", "compiled.i"], cwd=bench.scratch, check=True)
	return "compiled.i"


def cc1_path():
	return subprocess.check_output(["gcc", "-print-prog-name=cc1"], text=True).strip()


def kernel(bench, name):
	binary = bench.path(name)
	subprocess.run(["gcc", "-std=gnu11", "-O2", "-o", binary, os.path.join(HERE, "kernels", name + ".c"), "-lm"], check=True)
	return binary


def linear_program(bench):
	with open(os.path.join(INPUTS, "network.mod")) as file:
		text = file.read()
	return write(bench.path("network.mod"), text.replace("shops := 150", "shops := 70") if bench.quick else text)


def sentences(bench):
	with open(os.path.join(INPUTS, "sentences.txt")) as file:
		return write(bench.path("sentences"), file.read() * bench.size(4))


def statements(bench):
	with open(os.path.join(INPUTS, "mix.sql")) as file:
		return write(bench.path("statements"), file.read().replace("200000", str(bench.size(200000))))


def program_rows(bench):
	text = corpus(bench)
	go = write(bench.path("go"), "boardsize 19\n" + "genmove b\ngenmove w\n" * bench.size(8) + "quit\n")
	# In this mode only the depth ends the search; in the others there is a time limit, too.
	chess = [("uci", "uciok"), ("setoption name OwnBook value false", ""), ("position startpos moves e2e4 e7e5 g1f3 b8c6", ""),
		(f"go depth {7 if bench.quick else 9}", "bestmove"), ("quit", "")]
	zeros = write(bench.path("zeros"), bytes(32 << 20))
	script = lambda name: os.path.join(INPUTS, name)
	return [
		Row("gzip", ["gzip", "-n", "-c", text[24]]),
		Row("bzip2", ["bzip2", "-c", text[8]]),
		Row("xz", ["xz", "-T1", "-c", text[3]]),
		Row("zstd", ["zstd", "-q", "--single-thread", "-12", "-c", text[24]]),
		Row("cc1", [cc1_path(), "-quiet", "-fpreprocessed", "-O2", preprocessed(bench), "-o", "/dev/stdout"]),
		Row("gnugo", ["gnugo", "--mode", "gtp", "--seed", "1", "--level", "10"], stdin=go),
		# gnuchess 6.2.7 dies of SIGSEGV when it is told to quit after a search, natively as well.
		Row("gnuchess", ["gnuchess", "--uci"], dialogue=chess, ignore="^(?!bestmove)", dies=True),
		Row("glpsol", ["glpsol", "--math", linear_program(bench)], ignore="^(?!cost |OPTIMAL)"),
		Row("link-parser", ["link-parser", "en", "-graphics=0", "-timeout=100000"], stdin=sentences(bench)),
		Row("lua", ["lua5.4", script("mix.lua"), str(bench.size(24))]),
		Row("python3", ["/usr/bin/python3", "-E", "-s", script("mix.py"), str(bench.size(28))]),
		Row("perl", ["perl", script("mix.pl"), str(bench.size(28))]),
		Row("sqlite3", ["sqlite3", "-init", "/dev/null", ":memory:"], stdin=statements(bench)),
		Row("openssl", ["openssl", "dgst", "-sha512"] + [zeros] * bench.size(20)),
		Row("life", [kernel(bench, "life"), str(bench.size(8000))]),
		Row("mesh", [kernel(bench, "mesh"), str(bench.size(300))]),
	]


def thread_pairs(bench):
	text = {size: bench.path(f"corpus{size}") for size in (8, 24, 32)}
	def pair(name, form):
		return [Row(name, [word.replace("%", str(threads)) for word in form]) for threads in (1, 2)]
	return [
		pair("pigz", ["pigz", "-n", "-c", "-p", "%", text[32]]),
		pair("xz -3", ["xz", "-3", "-c", "-T", "%", "--block-size=1MiB", text[8]]),
		pair("zstd -12", ["zstd", "-q", "-12", "-c", "-T%", "-B1M", text[24]]),
	]
