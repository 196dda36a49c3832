/* build: -s */
/* link: -lm */
/* strip */
/* Control flow of all kinds, without symbols. */
#include "control-flow.h"
