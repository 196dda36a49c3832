/* build: -fpie -pie */
/* link: -lm */
/* Control flow of all kinds, as a position-independent executable (the default of Debian). */
#include "control-flow.h"
