import asyncio
import signal


async def serve(reader, writer):
	while line := await reader.readline():
		writer.write(line.upper())
		await writer.drain()
	writer.close()


async def client(port, n):
	reader, writer = await asyncio.open_connection("127.0.0.1", port)
	for i in range(40):
		writer.write(f"client {n} line {i}\n".encode())
		answer = await reader.readline()
	writer.close()
	await writer.wait_closed()
	return answer


async def main():
	server = await asyncio.start_server(serve, "127.0.0.1", 0)
	port = server.sockets[0].getsockname()[1]
	print(await asyncio.gather(*(client(port, n) for n in range(8))))
	server.close()
	process = await asyncio.create_subprocess_exec("sort", "-r", stdin=-1, stdout=-1)
	print((await process.communicate(b"a\nb\nc\n"))[0], process.returncode)
	got = asyncio.Event()
	asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set)
	signal.raise_signal(signal.SIGUSR1)
	await asyncio.wait_for(got.wait(), 30)
	print(await asyncio.get_running_loop().run_in_executor(None, sum, range(1000)))
	try:
		await asyncio.wait_for(asyncio.sleep(30), 0.05)
	except TimeoutError:
		print("timed out")


asyncio.run(main())
