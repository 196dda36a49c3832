"""mix.py ROUNDS: calls, objects, dictionaries, strings, floating point and big integers, a little of each per round"""
import json
import re
import sys


def fannkuch(n):
	perm1 = list(range(n))
	count = [0] * n
	most, r = 0, n
	while True:
		while r != 1:
			count[r - 1] = r
			r -= 1
		perm, flips = perm1[:], 0
		while k := perm[0]:
			perm[:k + 1] = reversed(perm[:k + 1])
			flips += 1
		most = max(most, flips)
		while True:
			if r == n:
				return most
			perm1.insert(r, perm1.pop(0))
			count[r] -= 1
			if count[r] > 0:
				break
			r += 1


class Body:
	def __init__(self, x, v, m):
		self.x, self.v, self.m = x, v, m

	def pull(self, other, dt):
		d = self.x - other.x
		force = dt / (abs(d) ** 3 + 0.01)
		self.v -= d * other.m * force
		other.v += d * self.m * force


def bodies(steps):
	system = [Body(complex(i, i * i % 7), complex(0, 0.1 * i), 1 + i) for i in range(5)]
	for _ in range(steps):
		for i, body in enumerate(system):
			for other in system[i + 1:]:
				body.pull(other, 0.001)
		for body in system:
			body.x += 0.001 * body.v
	return sum(body.x for body in system)


def words(n):
	count = {}
	for i in range(n):
		word = f"w{i * 7919 % 1009}"
		count[word] = count.get(word, 0) + 1
	text = json.dumps(dict(sorted(count.items())))
	return len(re.sub(r"w(\d)", lambda m: m[1] * 2, text)), len(json.loads(text))


def digits(n):
	q, r, t, k, m, x, out = 1, 0, 1, 1, 3, 3, []
	while len(out) < n:
		if 4 * q + r - t < m * t:
			out.append(str(m))
			q, r, m = 10 * q, 10 * (r - m * t), 10 * (3 * q + r) // t - 10 * m
		else:
			q, r, t, k, m, x = q * k, (2 * q + r) * x, t * x, k + 1, (q * (7 * k + 2) + r * x) // (t * x), x + 2
	return "".join(out)[-8:]


for _ in range(int(sys.argv[1])):
	print(fannkuch(7), f"{bodies(1500):.9f}", words(30000), digits(250), sum(i * i for i in range(100000) if i % 3))
