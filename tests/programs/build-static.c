/* build: -static -fno-pie -no-pie */
/* link: -lm */
/* Control flow of all kinds, static: no loader, IRELATIVE relocations applied by the program itself. */
#include "control-flow.h"
