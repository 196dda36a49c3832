/* build: -fpie -pie -Wl,-z,now -fno-plt */
/* link: -lm */
/* Control flow of all kinds, with everything bound at the start and no PLT. */
#include "control-flow.h"
