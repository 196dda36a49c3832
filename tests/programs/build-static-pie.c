/* build: -static-pie -fpie */
/* link: -lm */
/* Control flow of all kinds, static and position-independent: it relocates itself. */
#include "control-flow.h"
