/*
 * C++ exceptions: across many frames, with destructors, rethrown, in threads, passed between threads, out of
 * a signal handler (-fnon-call-exceptions style unwinding through the signal frame), with foreign frames in
 * between.
 */
/* build: -fnon-call-exceptions -lm */
#include "check.h"
#include <csignal>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static thread_local int alive;

struct guard {
	int id;
	explicit guard(int i) : id(i)
	{
		alive++;
	}
	~guard()
	{
		alive--;
	}
};

struct base {
	virtual ~base() = default;
	virtual int value() const = 0;
};
struct left : virtual base {
	int value() const override
	{
		return 1;
	}
};
struct bottom : left {
	int value() const override
	{
		return 2;
	}
};

static int __attribute__((noinline)) deep(int depth, int kind)
{
	guard g(depth);
	if (depth == 0) {
		switch (kind % 4) {
		case 0:
			throw std::runtime_error("kind 0");
		case 1:
			throw 42;
		case 2:
			throw std::string("kind 2");
		case 3:
			throw bottom();
		}
	}
	try {
		return deep(depth - 1, kind) + g.id;
	} catch (const std::out_of_range &) {
		fail("wrong handler");
	}
	return 0;
}

static uint64_t all_kinds(int rounds)
{
	uint64_t sum = 0;
	for (int i = 0; i < rounds; i++) {
		try {
			deep(i % 50, i);
			fail("no exception");
		} catch (const std::exception &e) {
			sum = mix(sum, static_cast<uint64_t>(e.what()[5]));
		} catch (int number) {
			sum = mix(sum, static_cast<uint64_t>(number));
		} catch (const std::string &text) {
			sum = mix(sum, text.size());
		} catch (const base &b) {
			sum = mix(sum, static_cast<uint64_t>(b.value() + 100));
		}
		CHECK_EQ(alive, 0);
	}
	return sum;
}

static int compare_and_throw(const void *a, const void *b)
{
	static int count;
	if (++count % 20 == 0)
		throw std::logic_error("from qsort"); /* through a C frame */
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static void on_fault(int)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGFPE);
	sigprocmask(SIG_UNBLOCK, &set, nullptr);
	throw std::runtime_error("a fault");
}

static int __attribute__((noinline)) faulting(volatile int *address)
{
	guard g(1);
	return *address + 1;
}

int main()
{
	uint64_t expected = all_kinds(2000);
	printf("sum %llx\n", static_cast<unsigned long long>(expected));

	std::vector<std::thread> threads;
	std::vector<uint64_t> results(4);
	for (size_t i = 0; i < 4; i++)
		threads.emplace_back([&, i] { results[i] = all_kinds(2000); });
	for (auto &thread : threads)
		thread.join();
	for (uint64_t result : results)
		CHECK_EQ(result, expected);

	/* Carried from one thread to another. */
	std::exception_ptr carried;
	std::thread([&] {
		try {
			deep(30, 0);
		} catch (...) {
			carried = std::current_exception();
		}
	}).join();
	try {
		std::rethrow_exception(carried);
	} catch (const std::runtime_error &e) {
		printf("carried: %s\n", e.what());
	}

	int caught = 0;
	for (int i = 0; i < 50; i++) {
		int numbers[10] = {5, 3, 8, 1, 9, 2, 7, 4, 6, 0};
		try {
			qsort(numbers, 10, sizeof *numbers, compare_and_throw);
		} catch (const std::logic_error &) {
			caught++;
		}
	}
	CHECK(caught > 10);
	printf("through qsort: %d\n", caught);

	struct sigaction action = {};
	action.sa_handler = on_fault;
	CHECK(!sigaction(SIGSEGV, &action, nullptr));
	CHECK(!sigaction(SIGFPE, &action, nullptr));
	int faults = 0;
	for (int i = 0; i < 200; i++) {
		try {
			guard g(2);
			faulting(reinterpret_cast<volatile int *>(16));
			fail("no fault");
		} catch (const std::runtime_error &) {
			faults++;
		}
		CHECK_EQ(alive, 0);
	}
	printf("faults turned into exceptions: %d\n", faults);

	std::map<std::string, std::function<int(int)>> table;
	for (int i = 0; i < 100; i++)
		table["f" + std::to_string(i)] = [i](int x) { return x * i; };
	int total = 0;
	for (auto &entry : table)
		total += entry.second(3);
	CHECK_EQ(total, 14850);
	try {
		(void)std::vector<int>().at(1);
	} catch (const std::out_of_range &) {
		puts("out of range");
	}
	auto shared = std::make_shared<bottom>();
	std::weak_ptr<bottom> weak = shared;
	shared.reset();
	CHECK(weak.expired());
	return done();
}
