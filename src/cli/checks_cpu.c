/* bugnet doctor: the processor. */
#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "cli/checks.h"
#include "record/processor.h"

/* AT_HWCAP2: the kernel has set CR4.FSGSBASE. */
#define HWCAP2_FSGSBASE_BIT (1u << 1)

/* CPUID feature bits. */
#define LEAF1_ECX_OSXSAVE  (1u << 27)
#define LEAF1_ECX_VIRTUAL  (1u << 31)
#define LEAF7_EBX_FSGSBASE (1u << 0)
#define LEAF7_EBX_AVX2     (1u << 5)
#define LEAF7_EBX_BMI2     (1u << 8)
#define LEAF7_EBX_AVX512F  (1u << 16)
#define LEAF7_EDX_AMX_TILE (1u << 24)

struct registers {
	uint32_t eax, ebx, ecx, edx;
};

/* All zero when the leaf does not exist. */
static struct registers leaf(uint32_t number)
{
	struct registers r = {0};

	__get_cpuid_count(number, 0, &r.eax, &r.ebx, &r.ecx, &r.edx);
	return r;
}

void check_cpu(struct finding *finding)
{
	char brand[PROCESSOR_NAME_SIZE];
	char hypervisor[13] = {0};

	processor_name(brand);
	if (leaf(1).ecx & LEAF1_ECX_VIRTUAL) {
		struct registers r;

		__cpuid(0x40000000, r.eax, r.ebx, r.ecx, r.edx);
		memcpy(hypervisor, &r.ebx, 12);
	}
	finding_what(finding, "x86-64, %s%s%s", *brand ? brand : "unnamed processor",
	        *hypervisor ? ", virtualised by " : "", hypervisor);
}

bool fsgsbase_enabled(void)
{
	return getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE_BIT;
}

void check_fsgsbase(struct finding *finding)
{
	if (!(leaf(7).ebx & LEAF7_EBX_FSGSBASE)) {
		finding_what(finding, "the processor has no FSGSBASE instructions");
		finding_mend(finding, CHECK_FAIL,
		        "use a processor from Intel Ivy Bridge, AMD Excavator or later; in a virtual machine "
		        "let the guest see FSGSBASE");
	} else if (!fsgsbase_enabled()) {
		finding_what(finding, "the processor has FSGSBASE but the kernel does not enable it");
		finding_mend(finding, CHECK_FAIL,
		        "use Linux 5.9 or later and remove 'nofsgsbase' from its command line");
	} else {
		finding_what(finding, "processor and kernel have it");
	}
}

void check_xsave(struct finding *finding)
{
	if (!(leaf(1).ecx & LEAF1_ECX_OSXSAVE)) {
		finding_what(finding, "XSAVE is missing or not enabled: vector registers cannot be kept");
		finding_mend(finding, CHECK_FAIL,
		        "remove 'noxsave' from the kernel's command line; in a virtual machine let the guest "
		        "see XSAVE");
		return;
	}
	finding_what(finding, "enabled, the state takes %u bytes", leaf(0xd).ebx);
}

void check_avx2(struct finding *finding)
{
	finding_what(finding, leaf(7).ebx & LEAF7_EBX_AVX2 ? "present" : "not present; not needed");
}

void check_bmi2(struct finding *finding)
{
	finding_what(finding, leaf(7).ebx & LEAF7_EBX_BMI2 ? "present" : "not present; not needed");
}

void check_avx512(struct finding *finding)
{
	struct registers r = leaf(7);
	bool avx512 = r.ebx & LEAF7_EBX_AVX512F;
	bool amx = r.edx & LEAF7_EDX_AMX_TILE;

	finding_what(finding, "%s%s",
	        avx512 ? "present; hidden from recorded programs without --cpu native"
	               : "not present; not needed",
	        amx ? "; AMX is present, and hidden" : "");
}
