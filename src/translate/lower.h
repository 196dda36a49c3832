/* Lowering: from decoded blocks to code, records and entries. */
#ifndef BUGNET_TRANSLATE_LOWER_H
#define BUGNET_TRANSLATE_LOWER_H

#include "translate/emit.h"

/* Emits all blocks of the region in the order of their pcs, without the tail. */
void lower_region(struct emitter *emitter, struct region *region, const struct translate_request *request);

#endif
