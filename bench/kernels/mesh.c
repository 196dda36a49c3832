// Relaxation of a square grid, every inner point set to the mean of its four neighbours in place: `mesh
// [ITERATIONS [SIZE]]`, by default RDB's 1000 iterations over 1000x1000 points. Each pass reads the whole
// grid, which is the worst case for a first-load log. Prints the largest change of the last pass and the sum
// of the grid.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double relax(double *grid, int size)
{
	double largest = 0;

	for (int row = 1; row < size - 1; row++) {
		for (int column = 1; column < size - 1; column++) {
			double *point = grid + (size_t)row * size + column;
			double mean = (point[-1] + point[1] + point[-size] + point[size]) / 4;
			double change = fabs(mean - *point);

			if (change > largest)
				largest = change;
			*point = mean;
		}
	}
	return largest;
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 1000;
	int size = argc > 2 ? atoi(argv[2]) : 1000;
	double change = 0, sum = 0;
	double *grid;

	if (iterations < 0 || size < 3) {
		fprintf(stderr, "usage: mesh [ITERATIONS [SIZE]]\n");
		return 2;
	}
	grid = calloc((size_t)size * size, sizeof(*grid));
	if (!grid) {
		perror("mesh");
		return 1;
	}
	for (int i = 0; i < size; i++) {
		grid[i] = sin(i * 3.0 / size);
		grid[(size_t)i * size] = i / (double)size;
	}
	for (int i = 0; i < iterations; i++)
		change = relax(grid, size);
	for (size_t i = 0; i < (size_t)size * size; i++)
		sum += grid[i];
	printf("change %.9g, sum %.9g\n", change, sum);
	free(grid);
	return 0;
}
