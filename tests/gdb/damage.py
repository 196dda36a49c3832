# damage.py IN OUT COUNT: copies a recording, with a bit changed in each of the last COUNT stretches of its thread 0; prints from
# where on it is lost, and up to where.
import struct
import sys

data = bytearray(open(sys.argv[1], "rb").read())
STRETCH = 5
at = data.index(b"SECT")
stretches = []
while data[at : at + 4] == b"SECT":
	kind, section, first, last, _, stored = struct.unpack_from("<HxxQQQQQ", data, at + 4)
	if kind == STRETCH and section >> 32 == 0:
		stretches.append((section, first, last, at + 64))
	at += 64 + stored
lost = sorted(stretches)[-int(sys.argv[3]) :]
assert len(lost) < len(stretches)
for _, _, _, content in lost:
	data[content] ^= 1
open(sys.argv[2], "wb").write(data)
print(lost[0][1], lost[-1][2])
