/* cases: uncaught noexcept pure thread */
/* expect: signal 6 */
/* Exceptions nobody catches end the program by abort, with the message on stderr. */
#include "check.h"
#include <stdexcept>
#include <thread>

static void thrower()
{
	throw std::runtime_error("nobody catches this");
}

static void promises() noexcept
{
	thrower();
}

struct base {
	base()
	{
		call();
	}
	void call()
	{
		pure();
	}
	virtual void pure() = 0;
	virtual ~base() = default;
};
struct derived : base {
	void pure() override
	{
	}
};

int main(int argc, char **argv)
{
	std::string how = argc > 1 ? argv[1] : "";
	puts(how.c_str());
	fflush(stdout);
	if (how == "uncaught")
		thrower();
	if (how == "noexcept")
		promises();
	if (how == "pure")
		derived d;
	if (how == "thread")
		std::thread(thrower).join();
	return 1;
}
