/* build: -fstack-protector-all -fcf-protection=full -D_FORTIFY_SOURCE=2 */
/* link: -lm */
/* Control flow of all kinds, hardened: stack protector everywhere, endbr64, fortified. */
#include "control-flow.h"
