/* build: -O3 -march=haswell -ffp-contract=off */
/* link: -lm */
/* Control flow of all kinds, compiled for a CPU with AVX2, BMI and FMA. */
#include "control-flow.h"
