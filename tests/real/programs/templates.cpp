#include <algorithm>
#include <atomic>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

template <unsigned N> struct Fibonacci {
	static constexpr unsigned long value = Fibonacci<N - 1>::value + Fibonacci<N - 2>::value;
};
template <> struct Fibonacci<1> {
	static constexpr unsigned long value = 1;
};
template <> struct Fibonacci<0> {
	static constexpr unsigned long value = 0;
};

struct Guard {
	int &count;
	~Guard()
	{
		count++;
	}
};

static int descend(int depth, int &unwound)
{
	Guard guard{unwound};
	if (depth == 0)
		throw std::out_of_range("the bottom");
	return descend(depth - 1, unwound) + 1;
}

template <typename... T> static auto total(T... value)
{
	return (... + value);
}

int main(int argc, char **)
{
	std::cout << Fibonacci<80>::value << ' ' << total(1, 2.5, 3ul) << '\n';

	int unwound = 0;
	for (int i = 0; i < 2000; i++) {
		try {
			descend(i % 20, unwound);
		} catch (const std::logic_error &error) {
			if (i == 0)
				std::cout << error.what() << '\n';
		}
	}
	std::cout << unwound << '\n';

	std::map<std::string, std::vector<int>> index;
	for (int i = 0; i < 5000; i++)
		index[std::to_string(i * 7919 % 101)].push_back(i);
	std::cout << index.size() << ' ' << index.rbegin()->first << ' '
	          << std::accumulate(index["7"].begin(), index["7"].end(), 0l) << '\n';

	std::istringstream text("alpha 1 beta 22 gamma 333");
	std::string word;
	for (double number; text >> word >> number;)
		std::cout << number / 7 << word << '\n';

	std::atomic<long> sum{0};
	std::vector<std::thread> threads;
	for (int t = 0; t < 4; t++)
		threads.emplace_back([&sum, t] {
			for (int i = 0; i < 20000; i++)
				sum += i ^ t;
		});
	for (auto &thread : threads)
		thread.join();
	std::cout << sum << '\n';

	auto failing = std::async(
	        std::launch::async, []() -> int { throw std::runtime_error("from another thread"); });
	try {
		failing.get();
	} catch (const std::exception &error) {
		std::cout << error.what() << std::endl;
	}
	if (argc > 1)
		throw std::runtime_error("nobody catches this");
}
