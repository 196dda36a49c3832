'use strict';
function deep(n) {
	if (n === 0)
		throw new RangeError('bottom');
	return deep(n - 1) + 1;
}
let caught = 0, cleaned = 0;
for (let i = 0; i < 30000; i++) {
	try {
		deep(i % 30);
	} catch (error) {
		caught += error instanceof RangeError;
	} finally {
		cleaned++;
	}
}
console.log(caught, cleaned);

function forever() { return forever() + 1; }
let overflows = 0;
for (let i = 0; i < 5; i++) {
	try {
		forever();
	} catch (error) {
		overflows += /call stack/.test(error.message);
	}
}
console.log('overflows', overflows);

const frames = () => new Error('x').stack.split('\n').length;
let properties = 0;
for (let i = 0; i < 20000; i++) {
	try {
		null[i];
	} catch {
		properties++;
	}
}
console.log(frames() > 2, properties);

(async () => {
	let sum = 0;
	for (let i = 0; i < 5000; i++) {
		try {
			sum += await (i % 2 ? Promise.resolve(i) : Promise.reject(new Error(String(i))));
		} catch (error) {
			sum -= Number(error.message);
		}
	}
	console.log(sum, (await Promise.allSettled([1, Promise.reject(2)])).map((r) => r.status));
})();
