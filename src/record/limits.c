#include "record/limits.h"

#include <stddef.h>
#include <sys/resource.h>

void limits_give_back(pid_t pid, const struct process_memory *memory)
{
	static const int resources[LIMITS] = {[LIMIT_SPACE] = RLIMIT_AS, [LIMIT_DATA] = RLIMIT_DATA};

	for (unsigned i = 0; i < LIMITS; i++) {
		const struct limit *limit = &memory->limits[i];
		struct rlimit now, own = {limit->own.soft, limit->own.hard};
		/* Others may have set them meanwhile. */
		if (prlimit(pid, resources[i], NULL, &now) == 0 && now.rlim_cur == limit->kernels.soft &&
		        now.rlim_max == limit->kernels.hard)
			prlimit(pid, resources[i], &own, NULL);
	}
}
