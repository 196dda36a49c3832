import collections
import decimal
import fractions
import heapq
import itertools
import math
import random


def nbody(steps):
	bodies = [[0, 0, 0, 0, 0, 0, 39.47], [4.84, -1.16, -.10, .6, 2.8, -.02, .037], [8.3, 4.1, -.4, -1.0, 1.8, .008, .011]]
	for _ in range(steps):
		for a, b in itertools.combinations(bodies, 2):
			dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
			m = .01 * (dx * dx + dy * dy + dz * dz) ** -1.5
			for i, d in ((3, dx), (4, dy), (5, dz)):
				a[i] -= d * b[6] * m
				b[i] += d * a[6] * m
		for body in bodies:
			for i in range(3):
				body[i] += .01 * body[i + 3]
	return [round(x, 9) for body in bodies for x in body[:3]]


class Node:
	__slots__ = ("key", "left", "right")

	def __init__(self, key):
		self.key, self.left, self.right = key, None, None

	def insert(self, key):
		side = "left" if key < self.key else "right"
		child = getattr(self, side)
		if child:
			child.insert(key)
		else:
			setattr(self, side, Node(key))

	def __iter__(self):
		if self.left:
			yield from self.left
		yield self.key
		if self.right:
			yield from self.right


def queens(n, row=0, columns=0, left=0, right=0):
	if row == n:
		return 1
	return sum(queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
		for bit in (1 << i for i in range(n)) if not bit & (columns | left | right))


print(nbody(3000))
random.seed(7)
tree = Node(500)
for _ in range(4000):
	tree.insert(random.randrange(10**6))
keys = list(tree)
print(keys == sorted(keys), sum(keys))
print(queens(7), math.factorial(900) // 10**2200, pow(3, 10**5, 10**30 + 57))
decimal.getcontext().prec = 60
print(decimal.Decimal(2).sqrt(), sum(fractions.Fraction(1, n) for n in range(1, 60)))
print(collections.Counter(hex(3**20000)).most_common(3), heapq.nsmallest(3, (hash(str(i)) for i in range(9999))))
caught = 0
for i in range(20000):
	try:
		[][i]
	except IndexError:
		caught += 1
print(caught, [hex(hash(x)) for x in ("a", 1.5, (1, 2), frozenset({3}))])
print(math.fsum(math.sin(i) * math.exp(-i / 100) for i in range(9999)), float("1e308") * 10, 0.1 + 0.2)
