'use strict';

function mandelbrot(size) {
	let total = 0;
	for (let py = 0; py < size; py++) {
		for (let px = 0; px < size; px++) {
			const cx = px / size * 3 - 2, cy = py / size * 2 - 1;
			let x = 0, y = 0, i = 0;
			while (i < 60 && x * x + y * y < 4) {
				[x, y] = [x * x - y * y + cx, 2 * x * y + cy];
				i++;
			}
			total += i;
		}
	}
	return total;
}

function sieve(n) {
	const composite = new Uint8Array(n);
	let count = 0;
	for (let i = 2; i < n; i++) {
		if (composite[i])
			continue;
		count++;
		for (let j = i * i; j < n; j += i)
			composite[j] = 1;
	}
	return count;
}

class Shape { area() { return 0; } }
class Square extends Shape { constructor(s) { super(); this.s = s; } area() { return this.s * this.s; } }
class Circle extends Shape { constructor(r) { super(); this.r = r; } area() { return 3 * this.r * this.r; } }

// Optimised for integers, then given doubles, strings and objects: de-optimised each time, and optimised again.
function add(a, b) { return a + b; }
function polymorphic() {
	let n = 0;
	for (let i = 0; i < 100000; i++) n = add(n, i) | 0;
	let d = 0.5;
	for (let i = 0; i < 100000; i++) d = add(d, i / 3);
	let s = '';
	for (let i = 0; i < 20000; i++) s = add(s, i % 10);
	return [n, d, s.length, add({ valueOf() { return 4; } }, 1)];
}

function collatz(limit) {
	let best = 0, at = 0;
	for (let i = 1; i < limit; i++) {
		let n = i, steps = 0;
		while (n !== 1) {
			n = n % 2 ? 3 * n + 1 : n / 2;
			steps++;
		}
		if (steps > best) [best, at] = [steps, i];
	}
	return [at, best];
}

console.log(mandelbrot(160), sieve(300000), collatz(30000), polymorphic());
const shapes = Array.from({ length: 2000 }, (_, i) => i % 2 ? new Square(i) : new Circle(i));
let area = 0;
for (let round = 0; round < 50; round++)
	area += shapes.reduce((sum, shape) => sum + shape.area(), 0);
console.log(area);

const tree = (depth) => depth ? { left: tree(depth - 1), right: tree(depth - 1) } : null;
const size = (t) => t ? 1 + size(t.left) + size(t.right) : 0;
let nodes = 0;
for (let i = 0; i < 10; i++) nodes += size(tree(12));
console.log(nodes);

const map = new Map();
for (let i = 0; i < 50000; i++) map.set(`key${i * 7919 % 1009}`, (map.get(`key${i * 7919 % 1009}`) || 0) + i);
console.log(map.size, [...map.values()].reduce((a, b) => a + b), (2n ** 200n % 1000007n).toString());
console.log(JSON.stringify(JSON.parse(JSON.stringify({ a: [1, 2.5, 'x', null], b: { c: true } }))), [3, 1, 2].sort(), 0.1 + 0.2);
function* generate(n) { for (let i = 0; i < n; i++) yield i * i; }
console.log([...generate(1000)].length, new Function('a', 'return a * 2')(21), eval('let q = 5; q * q'));
