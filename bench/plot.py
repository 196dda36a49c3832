"""Line charts as SVG, with nothing but the standard library."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 80, 170, 44, 60
# Told apart by people who see few colours, too: markers change as well.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999933", "#882255", "#44aa99"]


class Axis:
	def __init__(self, values, low, high, logarithmic):
		values = [value for value in values if value > 0] if logarithmic else values
		self.logarithmic = logarithmic
		self.low, self.high = low, high
		start, end = min(values, default=1), max(values, default=1)
		if logarithmic:
			self.start, self.end = math.floor(math.log10(start) + 1e-9), math.ceil(math.log10(end) - 1e-9)
			self.end = max(self.end, self.start + 1)
			self.ticks = [10.0 ** exponent for exponent in range(self.start, self.end + 1)]
		else:
			step = nice_step(end)
			self.start, self.end = 0, step * math.ceil(end / step - 1e-9) or step
			self.ticks = [step * i for i in range(round(self.end / step) + 1)]

	def place(self, value):
		at = math.log10(value) if self.logarithmic else value
		return self.low + (self.high - self.low) * (at - self.start) / (self.end - self.start)


class Steps:
	"""Given values, at equal distances."""

	def __init__(self, values, low, high):
		self.ticks = sorted(set(values))
		self.low, self.high = low, high

	def place(self, value):
		return self.low + (self.high - self.low) * (self.ticks.index(value) + 0.5) / len(self.ticks)


def nice_step(end):
	raw = (end or 1) / 6
	power = 10.0 ** math.floor(math.log10(raw))
	return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw - 1e-12)


def short(value):
	for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
		if value >= limit and value % (limit / 1000) == 0 and len(f"{value / limit:g}") <= 4:
			return f"{value / limit:g}{suffix}"
	return f"{value:g}"


def marker(number, x, y, colour):
	shape = number // 2 % 3
	if shape == 0:
		return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
	if shape == 1:
		return f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4" fill="{colour}"/>'
	return f'<path d="M{x:.1f} {y - 4.5:.1f}l4.2 7.5h-8.4z" fill="{colour}"/>'


def text(x, y, words, anchor="middle", more=""):
	return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def chart(path, title, x_title, y_title, lines, logarithmic=False):
	"""Write a chart of lines, {name: [(x, y), ...]}; the x are the same few for all of them."""
	points = [point for line in lines.values() for point in line]
	across = Steps([x for x, _ in points], LEFT, WIDTH - RIGHT)
	up = Axis([y for _, y in points], HEIGHT - BOTTOM, TOP, logarithmic)
	parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
		'font-family="sans-serif" font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
		text((LEFT + WIDTH - RIGHT) / 2, 24, title, more=' font-size="15"')]
	for tick in up.ticks:
		y = up.place(tick)
		parts += [f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>', text(LEFT - 8, y + 4, short(tick), "end")]
	for tick in across.ticks:
		x = across.place(tick)
		parts += [f'<path d="M{x:.1f} {HEIGHT - BOTTOM}v5" stroke="black"/>', text(x, HEIGHT - BOTTOM + 20, short(tick))]
	parts.append(f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="black"/>')
	parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, x_title))
	middle = (TOP + HEIGHT - BOTTOM) / 2
	parts.append(text(20, middle, y_title, more=f' transform="rotate(-90 20 {middle:.1f})"'))
	for number, (name, line) in enumerate(lines.items()):
		colour = COLOURS[number % len(COLOURS)]
		places = [(across.place(x), up.place(y)) for x, y in sorted(line) if y > 0 or not logarithmic]
		if not places:
			continue
		path_data = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
		y = TOP + 10 + 19 * number
		parts += [f'<path d="{path_data}" fill="none" stroke="{colour}" stroke-width="1.8"/>']
		parts += [marker(number, px, py, colour) for px, py in places]
		parts += [marker(number, WIDTH - RIGHT + 22, y, colour), text(WIDTH - RIGHT + 34, y + 4, name, "start")]
	with open(path, "w") as file:
		file.write("\n".join(parts + ["</svg>", ""]))
