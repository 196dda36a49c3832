// Templates, exceptions and containers; dies of an exception that nobody catches.
//
// gdb: see tests/gdb.sh.
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

template <typename T> struct Account {
	std::string owner;
	std::vector<T> entries;

	T balance() const
	{
		T sum{};
		for (const T &entry : entries)
			sum += entry;
		return sum;
	}

	void book(T amount)
	{
		if (balance() + amount < T{})
			throw std::runtime_error(owner + " is broke");
		entries.push_back(amount);
	}
};

static std::map<std::string, std::unique_ptr<Account<long>>> accounts;

struct Summary {
	long parts[6];
};

Summary summarize(long first)
{
	Summary summary;
	for (long i = 0; i < 6; i++)
		summary.parts[i] = first * i;
	return summary;
}

std::string stars(int count)
{
	return std::string(count, '*');
}

static void transfer(const std::string &from, const std::string &to, long amount)
{
	accounts.at(from)->book(-amount);
	accounts.at(to)->book(amount);
}

int main()
{
	for (const char *name : {"ada", "bob", "eve"}) {
		accounts[name] = std::make_unique<Account<long>>();
		accounts[name]->owner = name;
	}
	accounts["ada"]->book(summarize(20).parts[5]);
	accounts["eve"]->owner += stars(2);
	for (int i = 0; i < 6; i++) {
		try {
			transfer("ada", i % 2 ? "bob" : "eve", 10 * i);
			transfer("bob", "eve", 25);
		} catch (const std::exception &) {
		}
	}
	transfer("bob", "ada", 1000);
}
