'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { execFileSync, spawn } = require('child_process');
const crypto = require('crypto');
const zlib = require('zlib');
const fs = require('fs');

function work(from, to) {
	let sum = 0;
	for (let i = from; i < to; i++) {
		sum = (sum + Math.imul(i, 2654435761)) | 0;
		sum ^= sum << 13;
	}
	return sum;
}

if (!isMainThread) {
	const shared = new Int32Array(workerData.shared);
	for (let i = 0; i < 20000; i++)
		Atomics.add(shared, 0, 1);
	parentPort.once('message', (n) => {
		parentPort.postMessage(work(0, n * 1000000));
		// Later, so that the message has surely arrived before
		if (workerData.index === 3)
			setTimeout(() => { throw new Error('thrown in a worker'); }, 200);
	});
	return;
}

async function main() {
	const shared = new SharedArrayBuffer(16);
	const workers = [0, 1, 2, 3].map((index) => new Worker(__filename, { workerData: { shared, index }, stderr: true }));
	const results = await Promise.all(workers.map((worker, i) => new Promise((resolve) => {
		let result;
		worker.on('message', (value) => { result = value; });
		worker.on('error', (error) => { result = `${result} ${error.message}`; });
		worker.on('exit', (code) => resolve([result, code]));
		worker.postMessage(i + 1);
	})));
	console.log(results, new Int32Array(shared)[0]);

	// The thread pool: file reads, compression and key derivation at the same time
	const text = await fs.promises.readFile('/usr/share/common-licenses/GPL-3');
	const packed = await Promise.all([1, 5, 9].map((level) => new Promise((resolve, reject) =>
		zlib.deflate(text, { level }, (error, data) => error ? reject(error) : resolve(data.length)))));
	const key = await new Promise((resolve) => crypto.pbkdf2('a', 'b', 20000, 16, 'sha256', (_, k) => resolve(k.toString('hex'))));
	console.log(packed, key, crypto.createHash('sha1').update(text).digest('hex'));
	console.log(execFileSync('echo', ['a child']).toString().trim());
	const child = spawn('sh', ['-c', 'tr a-z A-Z; exit 3']);
	child.stdin.end('piped');
	child.stdout.on('data', (data) => console.log(data.toString()));
	child.on('close', (code) => console.log('code', code));
	await new Promise((resolve) => child.on('close', resolve));
	process.on('SIGUSR2', () => { console.log('signal'); process.exit(9); });
	process.kill(process.pid, 'SIGUSR2');
	setTimeout(() => {}, 20000);
}
main();
