/* The registers of AVX-512: at look() the quarter q of zmm N, counted in 64 bits, is N * 8 + q + round, and kN is ~N - round. */
#include <stdint.h>
#include <stdio.h>

static uint64_t vectors[32][8], masks[8];

void look(int round) __attribute__((noinline));
__asm__("look:\n"
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        "	vmovdqu64 vectors+64*\\n(%rip), %zmm\\n\n"
        ".endr\n"
        ".irp n,0,1,2,3,4,5,6,7\n"
        "	kmovq masks+8*\\n(%rip), %k\\n\n"
        ".endr\n"
        "looked:\n"
        "	vzeroupper\n"
        "	ret\n");

int twice(int n)
{
	return 2 * n;
}

int main(void)
{
	if (!__builtin_cpu_supports("avx512bw")) {
		puts("no AVX-512");
		return 77;
	}
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 32; i++) {
			for (unsigned q = 0; q < 8; q++)
				vectors[i][q] = i * 8 + q + (unsigned)round;
		}
		for (unsigned i = 0; i < 8; i++)
			masks[i] = ~(uint64_t)i - (unsigned)round;
		look(round);
	}
	return twice(0);
}
