/* Processes in pid namespaces below ours go by numbers that mean somebody else to us. */
#ifndef BUGNET_RECORD_NAMESPACE_H
#define BUGNET_RECORD_NAMESPACE_H

#include <sys/types.h>

/* Our number for the process or thread that process `member`, by its own namespace's count, calls `id`; 0
 * when there is none. */
pid_t namespace_resolve(pid_t member, pid_t id);

#endif
