/*
 * A storm of signals while vector state is restored in all the ways there are: what comes after is what was asked for,
 * although the handler, in which all signals are blocked, leaves other values everywhere.
 */
#include "check.h"
#include <signal.h>
#include <sys/time.h>

static volatile unsigned signals;

static void handler(int sig)
{
	static const uint64_t noise[4] = {1, 2, 3, 4};
	(void)sig;
	signals++;
	__asm__ volatile("movups %0, %%xmm3; movups %0, %%xmm15; fninit; fldz; fldz" : : "m"(noise) : "xmm3", "xmm15");
}

struct image {
	uint8_t bytes[832] __attribute__((aligned(64)));
};

static void make_image(struct image *image, unsigned n)
{
	uint16_t control = 0x37f;
	uint32_t mxcsr = 0x1f80;
	uint64_t present = 3;

	memset(image, 0, sizeof *image);
	memcpy(image->bytes, &control, 2);
	image->bytes[4] = 0xff; /* all of the x87 registers are in use */
	memcpy(image->bytes + 24, &mxcsr, 4);
	for (unsigned i = 0; i < 8; i++)
		memset(image->bytes + 32 + 16 * i, (int)(n + i), 10);
	for (unsigned i = 0; i < 256; i++)
		image->bytes[160 + i] = (uint8_t)(n * 7 + i);
	memcpy(image->bytes + 512, &present, 8);
}

/* All of it in one piece of assembly, so that the compiler has no use for the registers in between. */
#define TRY(how, text, n)                                                                                    \
	do {                                                                                                 \
		struct image from, now = {0};                                                                \
		make_image(&from, n);                                                                        \
		__asm__ volatile(text "\n\tfxsave64 %0; fninit"                                              \
		                 : "+m"(now), "+m"(from)                                                     \
		                 : "a"(3), "d"(0)                                                            \
		                 : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",  \
		                 "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");       \
		compare(&now, &from, how);                                                                   \
	} while (0)

static void compare(const struct image *now, const struct image *wanted, const char *how)
{
	if (memcmp(now->bytes, wanted->bytes, 2) || memcmp(now->bytes + 32, wanted->bytes + 32, 128) ||
	        memcmp(now->bytes + 160, wanted->bytes + 160, 256))
		fail("%s: other vector registers after %u signals", how, signals);
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval rate = {{0, 250}, {0, 250}};
	sigfillset(&action.sa_mask);
	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &rate, NULL));
	for (unsigned n = 0; n < 3000 || signals < 500; n++) {
		TRY("fxrstor64", "fxrstor64 %1", n);
		TRY("fxrstor", "fxrstor %1", n);
		TRY("xrstor64", "xrstor64 %1", n);
		TRY("xrstor", "xrstor %1", n);
	}
	printf("right\n");
	return done();
}
