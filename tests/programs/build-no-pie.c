/* build: -fno-pie -no-pie */
/* link: -lm */
/* Control flow of all kinds, at a fixed low address. */
#include "control-flow.h"
