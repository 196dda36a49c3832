'use strict';
// A module assembled by hand:
//   (memory (export "m") 1) (import "h" "f" (func $f (param i32) (result i32)))
//   (func (export "fib") (param i32) (result i32)   fib by recursion
//   (func (export "peek") (param i32) (result i32)  i32.load: traps beyond the memory
//   (func (export "loop") (param i32) (result i32)  calls $f in a loop and adds up
const name = (text) => [text.length, ...Buffer.from(text)];
const sized = (bytes) => [bytes.length, ...bytes];
const section = (id, ...items) => [id, ...sized([items.length, ...items.flat()])];
const i32 = 0x7f;
const bytes = new Uint8Array([
	0, ...Buffer.from('asm'), 1, 0, 0, 0,
	...section(1, [0x60, 1, i32, 1, i32]),
	...section(2, [...name('h'), ...name('f'), 0, 0]),
	...section(3, [0], [0], [0]),
	...section(5, [0, 1]),
	...section(7, [...name('m'), 2, 0], [...name('fib'), 0, 1], [...name('peek'), 0, 2], [...name('loop'), 0, 3]),
	...section(10,
		sized([0, 0x20, 0, 0x41, 2, 0x48, 0x04, i32, 0x20, 0, 0x05, 0x20, 0, 0x41, 1, 0x6b, 0x10, 1,
			0x20, 0, 0x41, 2, 0x6b, 0x10, 1, 0x6a, 0x0b, 0x0b]),
		sized([0, 0x20, 0, 0x28, 2, 0, 0x0b]),
		sized([1, 1, i32, 0x03, 0x40, 0x20, 0, 0x10, 0, 0x20, 1, 0x6a, 0x21, 1, 0x20, 0, 0x41, 1, 0x6b, 0x21, 0,
			0x20, 0, 0x41, 0, 0x4a, 0x0d, 0, 0x0b, 0x20, 1, 0x0b])),
]);

const module_ = new WebAssembly.Module(bytes);
const { fib, peek, loop, m } = new WebAssembly.Instance(module_, { h: { f: (x) => x % 7 } }).exports;
console.log(fib(25), loop(200000));
new Int32Array(m.buffer)[5] = 1234;
console.log(peek(20));
let trapped = 0;
for (const address of [65536, 65533, 100000, 0x7fffffff, -4]) {
	try {
		peek(address);
	} catch (error) {
		trapped += error instanceof WebAssembly.RuntimeError;
	}
}
console.log('trapped', trapped);
try {
	new WebAssembly.Instance(module_, { h: { f: () => { throw new Error('through wasm'); } } }).exports.loop(1);
} catch (error) {
	console.log(error.message);
}
m.grow(3);
console.log(peek(65536), m.buffer.byteLength);
