/*
 * For programs that want to be looked at: one header, nothing to link with.
 *
 *	#include <bugnet/bugnet.h>
 *	...
 *	if (sum != expected)
 *		bugnet_save("wrong sum");
 *
 * Under `bugnet record` this saves what the program did up to here, and the program goes on. Otherwise it
 * does nothing, in a microsecond or less: it is a CPUID instruction with a number that no processor has. It
 * makes no system call, takes no lock, and may be called anywhere, also in a signal handler.
 */
#ifndef BUGNET_BUGNET_H
#define BUGNET_BUGNET_H

#define BUGNET_LEAF      0x42474e54u /* what bugnet looks for in eax */
#define BUGNET_LEAF_SAVE 1u          /* and in ecx; rdi has the address of the text */
#define BUGNET_SIGNATURE 0x6e677562u /* in ebx, if it was bugnet that answered */

#if defined(__x86_64__)
/* `why` is told by `bugnet info`. Returns 1 if the program is recorded and a file is being made, else 0. */
static __inline__ int bugnet_save(const char *why)
{
	unsigned a = BUGNET_LEAF, b = 0, c = BUGNET_LEAF_SAVE, d = 0;

	__asm__ __volatile__("cpuid" : "+a"(a), "+b"(b), "+c"(c), "+d"(d) : "D"(why) : "memory");
	return a == BUGNET_LEAF && b == BUGNET_SIGNATURE && c == 1;
}
#else
static __inline__ int bugnet_save(const char *why)
{
	(void)why;
	return 0;
}
#endif

#endif
