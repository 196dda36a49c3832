import hashlib
import multiprocessing
import multiprocessing.shared_memory


def digest(n):
	return hashlib.md5(str(n).encode() * 1000).hexdigest()


def bump(counter, array, connection):
	for _ in range(500):
		with counter.get_lock():
			counter.value += 1
	with array.get_lock():
		array[counter.value % len(array)] += 1
	connection.send({"name": "child", "sum": sum(range(1000))})
	connection.close()


def fill(name):
	memory = multiprocessing.shared_memory.SharedMemory(name)
	memory.buf[:5] = b"hello"
	memory.close()


if __name__ == "__main__":
	for method in ("fork", "spawn", "forkserver"):
		context = multiprocessing.get_context(method)
		with context.Pool(2) as pool:
			print(method, hashlib.md5("".join(pool.map(digest, range(300), 20)).encode()).hexdigest())
			pool.close()
			pool.join()
	context = multiprocessing.get_context("fork")
	counter, array = context.Value("i", 0), context.Array("d", 4)
	ours, theirs = context.Pipe()
	children = [context.Process(target=bump, args=(counter, array, theirs)) for _ in range(4)]
	for child in children:
		child.start()
	print([ours.recv()["sum"] for _ in children])
	for child in children:
		child.join()
	print(counter.value, sum(array), [child.exitcode for child in children])
	memory = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
	child = context.Process(target=fill, args=(memory.name,))
	child.start()
	child.join()
	print(bytes(memory.buf[:5]))
	memory.close()
	memory.unlink()
