/* build: -fpie -pie -Wl,-z,lazy -fplt */
/* link: -lm */
/* Control flow of all kinds, with lazy binding: each library function is resolved at its first call. */
#include "control-flow.h"
