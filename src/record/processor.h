/* This machine's processor. */
#ifndef BUGNET_RECORD_PROCESSOR_H
#define BUGNET_RECORD_PROCESSOR_H

#define PROCESSOR_NAME_SIZE 49

/* The model's name, as the processor gives it, without the blanks around it; may be empty. */
void processor_name(char name[PROCESSOR_NAME_SIZE]);
/* What it can do, as /proc/cpuinfo lists it; the caller frees it. NULL: not known. */
char *processor_flags(void);

#endif
