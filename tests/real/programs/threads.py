import concurrent.futures
import hashlib
import queue
import signal
import threading
import time
import zlib

# Thousands of short-lived threads
results = []
lock = threading.Lock()


def add(n):
	with lock:
		results.append(n)


for base in range(0, 2000, 50):
	threads = [threading.Thread(target=add, args=(base + i,)) for i in range(50)]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
print(len(results), sum(results))

# Work that releases the interpreter lock runs in parallel.
data = bytes(range(256)) * 8000
with concurrent.futures.ThreadPoolExecutor(4) as pool:
	digests = list(pool.map(lambda i: hashlib.sha256(data + bytes([i])).hexdigest()[:8], range(8)))
	sizes = list(pool.map(lambda i: len(zlib.compress(data, i)), range(1, 6)))
print(digests, sizes)

# Producer and consumers over a queue, conditions, barriers, timers, thread-local data
jobs, done = queue.Queue(10), queue.Queue()
local = threading.local()


def work():
	local.count = 0
	while (job := jobs.get()) is not None:
		local.count += 1
		done.put(job * job)
	done.put(("count", local.count))


workers = [threading.Thread(target=work) for _ in range(3)]
for worker in workers:
	worker.start()
for i in range(600):
	jobs.put(i)
for _ in workers:
	jobs.put(None)
for worker in workers:
	worker.join()
items = [done.get() for _ in range(603)]
print(sum(i for i in items if isinstance(i, int)), sum(i[1] for i in items if isinstance(i, tuple)))

barrier = threading.Barrier(5)
order = []
for _ in range(4):
	threading.Thread(target=lambda: (barrier.wait(), add(-1))).start()
barrier.wait()
fired = threading.Event()
threading.Timer(0.05, fired.set).start()
print(fired.wait(30))

# Interval timer signals arrive on the main thread while others run.
ticks = 0


def tick(*_):
	global ticks
	ticks += 1


signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
deadline = time.monotonic() + 30
spinner = threading.Thread(target=lambda: sum(i * i for i in range(300000)))
spinner.start()
while ticks < 50 and time.monotonic() < deadline:
	sum(range(1000))
spinner.join()
signal.setitimer(signal.ITIMER_REAL, 0)
print(ticks >= 50)

failures = []
threading.excepthook = lambda hook: failures.append(str(hook.exc_value))
thread = threading.Thread(target=lambda: [][1])
thread.start()
thread.join()
print(failures)
