// An exception that nobody catches.
#include <stdexcept>

static void deep(int n)
{
	if (!n)
		throw std::runtime_error("nobody catches this");
	deep(n - 1);
}

int main()
{
	deep(5);
}
