// Conway's game of life on a torus: `life [GENERATIONS [SIZE]]`, by default RDB's 20,000 generations of a
// 100x100 world. Prints the number of live cells and a hash of the last world.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int wrap(int i, int size)
{
	return i < 0 ? i + size : i >= size ? i - size : i;
}

static int neighbours(const uint8_t *world, int size, int row, int column)
{
	int count = 0;

	for (int r = row - 1; r <= row + 1; r++) {
		for (int c = column - 1; c <= column + 1; c++) {
			if (r != row || c != column)
				count += world[wrap(r, size) * size + wrap(c, size)];
		}
	}
	return count;
}

static void step(const uint8_t *old, uint8_t *new, int size)
{
	for (int row = 0; row < size; row++) {
		for (int column = 0; column < size; column++) {
			int alive = neighbours(old, size, row, column);

			new[row * size + column] = alive == 3 || (alive == 2 && old[row * size + column]);
		}
	}
}

int main(int argc, char **argv)
{
	int generations = argc > 1 ? atoi(argv[1]) : 20000;
	int size = argc > 2 ? atoi(argv[2]) : 100;
	uint32_t seed = 1, hash = 2166136261u;
	uint8_t *world, *next;
	int alive = 0;

	if (generations < 0 || size < 1) {
		fprintf(stderr, "usage: life [GENERATIONS [SIZE]]\n");
		return 2;
	}
	world = malloc((size_t)size * size);
	next = malloc((size_t)size * size);
	if (!world || !next) {
		perror("life");
		return 1;
	}
	for (int i = 0; i < size * size; i++) {
		seed = seed * 1664525 + 1013904223;
		world[i] = seed >> 30 == 0;
	}
	for (int i = 0; i < generations; i++) {
		uint8_t *swap = world;

		step(world, next, size);
		world = next;
		next = swap;
	}
	for (int i = 0; i < size * size; i++) {
		alive += world[i];
		hash = (hash ^ world[i]) * 16777619;
	}
	printf("%d alive, hash %08x\n", alive, hash);
	free(world);
	free(next);
	return 0;
}
