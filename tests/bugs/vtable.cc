/* expect: signal 11 */
/* cause: a copy into an object's array runs over into the object behind it */
/* symptom: a virtual call through a table that is text */
#include "bug.h"

struct Shape {
	virtual int area() = 0;
	virtual ~Shape() {}
};

struct Square : Shape {
	int area() override
	{
		return 4;
	}
};

struct Box {
	char label[16];
	Square square;
};

int main()
{
	Box *box = new Box;
	char label[40];

	memset(label, 'v', sizeof label);
	ROOT_CAUSE();
#ifdef FIXED
	memcpy(box->label, label, sizeof box->label);
#else
	memcpy(reinterpret_cast<char *>(box), label, 24);
#endif
	bug_work(6000);
	Shape *volatile shape = &box->square;
	return shape->area() != 4;
}
