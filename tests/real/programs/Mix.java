import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.*;

public class Mix {
	interface Shape {
		double area();
	}

	record Square(double side) implements Shape {
		public double area() {
			return side * side;
		}
	}

	record Circle(double radius) implements Shape {
		public double area() {
			return Math.PI * radius * radius;
		}
	}

	static long hot(int n) {
		long sum = 0;
		int[] table = new int[1024];
		for (int i = 0; i < n; i++) {
			table[i & 1023] += i * 31;
			sum += table[(i * 7) & 1023] ^ (sum >>> 3);
		}
		return sum;
	}

	static int depth(int n) {
		return depth(n + 1) + 1;
	}

	static int nulls(String[] strings, int rounds) {
		int caught = 0;
		for (int i = 0; i < rounds; i++) {
			try {
				caught += strings[i % strings.length].length() > 100 ? 1 : 0;
			} catch (NullPointerException e) {
				caught++;
			}
		}
		return caught;
	}

	static int arithmetic(int rounds) {
		int caught = 0;
		for (int i = 0; i < rounds; i++) {
			try {
				caught += 10 / (i % 5) > 100 ? 1 : 0;
			} catch (ArithmeticException e) {
				caught++;
			}
		}
		return caught;
	}

	static void threads() throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(4);
		AtomicLong counter = new AtomicLong();
		Object lock = new Object();
		int[] plain = {0};
		List<Future<Long>> futures = new ArrayList<>();
		for (int t = 0; t < 8; t++) {
			int seed = t;
			futures.add(pool.submit(() -> {
				for (int i = 0; i < 5000; i++) {
					counter.incrementAndGet();
					synchronized (lock) {
						plain[0]++;
					}
				}
				return hot(100000 + seed);
			}));
		}
		long sum = 0;
		for (Future<Long> future : futures)
			sum += future.get();
		pool.shutdown();
		System.out.println(sum + " " + counter + " " + plain[0] + " " + pool.awaitTermination(30, TimeUnit.SECONDS));
		Thread sleeper = new Thread(() -> {
			try {
				Thread.sleep(30000);
			} catch (InterruptedException e) {
				System.out.println("interrupted");
			}
		});
		sleeper.start();
		sleeper.interrupt();
		sleeper.join();
		System.out.println(IntStream.range(0, 100000).parallel().mapToLong(i -> (long)i * i).sum());
	}

	public static void main(String[] arguments) throws Exception {
		boolean quick = arguments.length > 0;
		System.out.println("hot " + hot(quick ? 300000 : 20000000));
		double area = 0;
		for (int i = 0; i < 100000; i++) {
			Shape shape = i % 3 == 0 ? new Square(i) : new Circle(i);
			area += shape.area();
		}
		System.out.printf("%.3f%n", area);
		try {
			depth(0);
		} catch (StackOverflowError e) {
			System.out.println("stack overflow");
		}
		String[] strings = {"a", null, "bc", null, null};
		System.out.println(nulls(strings, quick ? 5000 : 100000) + " " + arithmetic(quick ? 5000 : 50000));
		threads();
		Map<String, Long> counts = Stream.iterate(1, i -> i * 7919 % 10007).limit(20000)
			.collect(Collectors.groupingBy(i -> "k" + i % 13, TreeMap::new, Collectors.counting()));
		System.out.println(counts);
		List<byte[]> garbage = new ArrayList<>();
		for (int i = 0; i < 2000; i++) {
			garbage.add(new byte[50000]);
			if (garbage.size() > 100)
				garbage.clear();
		}
		System.gc();
		StringBuilder text = new StringBuilder();
		for (int i = 0; i < 20000; i++)
			text.append(Integer.toHexString(i * i));
		System.out.println(text.toString().hashCode() + " " + Math.sin(1) + " " + Math.pow(2, 0.5) + " "
			+ new java.math.BigInteger("3").pow(500).mod(java.math.BigInteger.valueOf(1000003)));
		Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
		if (quick && arguments[0].equals("throw"))
			throw new IllegalStateException("nobody catches this");
		System.exit(quick ? 0 : 17);
	}
}
