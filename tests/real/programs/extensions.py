import array
import base64
import binascii
import bz2
import csv
import ctypes
import datetime
import hashlib
import io
import itertools
import json
import lzma
import mmap
import pickle
import re
import select
import socket
import sqlite3
import struct
import tempfile
import unicodedata
import xml.etree.ElementTree
import zlib

words = re.findall(r"\w+", open("/usr/share/common-licenses/GPL-3").read())
text = " ".join(words)
records = [{"n": i, "w": w, "f": i / 7, "l": [i] * 3} for i, w in enumerate(words)]
dump = json.dumps(records, indent=1)
assert json.loads(dump) == records
print(len(dump), hashlib.sha256(dump.encode()).hexdigest())
for name in ("md5", "sha1", "sha512", "blake2b", "sha3_256"):
	print(name, hashlib.new(name, text.encode()).hexdigest()[:16])
print(hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 5000).hex())
for module, arguments in ((zlib, (9,)), (bz2, (9,)), (lzma, ())):
	packed = module.compress(dump.encode(), *arguments)
	assert module.decompress(packed).decode() == dump
	print(module.__name__, len(packed), zlib.crc32(packed), binascii.crc_hqx(packed, 0))
print(len(re.sub(r"(?i)\b(\w)(\w*)\b", lambda m: m[2] + m[1], text)), len(re.findall(r"(a|e)(?=[^aeiou]{2})", text)))
print(pickle.loads(pickle.dumps(records))[5], struct.pack("<IdHq", 1, 2.5, 3, -4).hex())

# ctypes: calls through libffi, and callbacks that C's qsort makes through a closure on executable memory
libc = ctypes.CDLL(None)
numbers = (ctypes.c_int * 3000)(*((i * 7919) % 10007 for i in range(3000)))
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
libc.qsort(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), compare)
print(list(numbers) == sorted(numbers), numbers[10], libc.strlen(b"twelve bytes"), libc.abs(-5))
libm = ctypes.CDLL("libm.so.6")
libm.pow.restype, libm.pow.argtypes = ctypes.c_double, (ctypes.c_double, ctypes.c_double)
print(libm.pow(2, 0.5))

database = sqlite3.connect(":memory:")
database.create_function("backwards", 1, lambda s: s[::-1])
database.create_collation("bylength", lambda a, b: (len(a) > len(b)) - (len(a) < len(b)))
database.execute("create table word(w text, n int)")
database.executemany("insert into word values(?, ?)", ((w, i) for i, w in enumerate(words)))
print(database.execute("select backwards(w), count(*) c from word group by w order by c desc, w limit 3").fetchall())
print(database.execute("select w from word order by w collate bylength desc, n limit 2").fetchall())
try:
	database.execute("select * from nothing")
except sqlite3.OperationalError as error:
	print(error)

file = tempfile.TemporaryFile()
file.write(b"x" * 10000)
file.flush()
with mmap.mmap(file.fileno(), 0) as mapped:
	mapped[5000:5005] = b"hello"
	print(mapped.find(b"hello"))
a, b = socket.socketpair()
poll = select.epoll()
poll.register(b.fileno(), select.EPOLLIN)
a.sendall(b"ping")
print(len(poll.poll(5)), b.recv(10))
writer = csv.writer(out := io.StringIO())
writer.writerows(itertools.islice(itertools.permutations("abc"), 4))
print(repr(out.getvalue()), base64.b85encode(text[:20].encode()), unicodedata.normalize("NFD", "é").encode())
print(xml.etree.ElementTree.fromstring("<a><b c='d'>e</b></a>")[0].attrib, datetime.datetime.fromtimestamp(0, datetime.UTC))
print(sum(array.array("d", map(float, range(10000)))), memoryview(b"abc")[1])
