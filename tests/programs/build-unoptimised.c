/* build: -O0 -fno-pie -no-pie */
/* link: -lm */
/* Control flow of all kinds, compiled without optimisation: every variable in memory. */
#include "control-flow.h"
