/* lar, lsl, verr, verw, and the instructions that show system registers (the kernel may answer in the CPU's
 * place). */
#include "instruction.h"

SNIPPET(lar_, "mov $-1, %rax; lar %edi, %eax; jz 1f; mov $-2, %rax; 1: ret");
SNIPPET(lar_memory, "mov $-1, %rax; larw (%rdi), %ax; jz 1f; mov $-2, %rax; 1: movzwl %ax, %eax; ret");
SNIPPET(lsl_, "mov $-1, %rax; lsl %edi, %eax; jz 1f; mov $-2, %rax; 1: ret");
SNIPPET(verr_, "xor %eax, %eax; verr %di; setz %al; ret");
SNIPPET(verw_, "xor %eax, %eax; verw %di; setz %al; ret");
SNIPPET(smsw_, "xor %eax, %eax; smsw %ax; ret");
SNIPPET(smsw_memory, "smsw (%rdi); ret");
SNIPPET(sldt_, "xor %eax, %eax; sldt %eax; ret");
SNIPPET(str_, "xor %eax, %eax; str %eax; ret");
SNIPPET(sgdt_, "sgdt (%rdi); ret");
SNIPPET(sidt_, "sidt (%rdi); ret");
SNIPPET(get_cs, "mov %cs, %eax; ret");
SNIPPET(get_ss, "mov %ss, %eax; ret");
SNIPPET(get_ds, "mov %ds, %eax; mov %es, %ecx; or %ecx, %eax; ret");
SNIPPET(store_cs, "movw %cs, (%rdi); ret");

int main(void)
{
	unsigned char bytes[16];
	catch_faults();
	NAME_SNIPPET(smsw_);
	NAME_SNIPPET(smsw_memory);
	NAME_SNIPPET(sldt_);
	NAME_SNIPPET(str_);
	NAME_SNIPPET(sgdt_);
	NAME_SNIPPET(sidt_);
	CHECK_EQ(call(get_cs, 0, 0, 0, 0), 0x33);
	CHECK_EQ(call(get_ss, 0, 0, 0, 0), 0x2b);
	CHECK_EQ(call(get_ds, 0, 0, 0, 0), 0);
	uint16_t cs[2] = {0, 0x7777};
	call(store_cs, ADDRESS(cs), 0, 0, 0);
	CHECK(cs[0] == 0x33 && cs[1] == 0x7777);
	/* null, user data, user code, kernel, none */
	static const uint16_t selectors[] = {0, 0x23, 0x2b, 0x33, 0x10, 0x18, 0x1234, 0xffff};
	for (unsigned n = 0; n < sizeof selectors / sizeof *selectors; n++) {
		uint64_t s = selectors[n];
		printf("%#llx: lar %#llx lsl %#llx verr %llu verw %llu\n", (unsigned long long)s,
		        (unsigned long long)call(lar_, s, 0, 0, 0),
		        (unsigned long long)call(lsl_, s, 0, 0, 0),
		        (unsigned long long)call(verr_, s, 0, 0, 0),
		        (unsigned long long)call(verw_, s, 0, 0, 0));
	}
	CHECK_EQ(call(verr_, 0x2b, 0, 0, 0), 1);
	CHECK_EQ(call(verw_, 0x2b, 0, 0, 0), 1);
	CHECK_EQ(call(verw_, 0x33, 0, 0, 0), 0);
	uint16_t in_memory = 0x2b;
	printf("lar from memory: %#llx\n",
	        (unsigned long long)call(lar_memory, ADDRESS(&in_memory), 0, 0, 0));
	/* These are answered, answered with something else, or refused: the same way in every run. */
	static const struct {
		const char *name, *code;
	} system[] = {{"smsw", smsw_}, {"smsw to memory", smsw_memory}, {"sldt", sldt_}, {"str", str_},
	        {"sgdt", sgdt_}, {"sidt", sidt_}};
	for (unsigned n = 0; n < sizeof system / sizeof *system; n++) {
		memset(bytes, 0xee, sizeof bytes);
		faults(system[n].code, ADDRESS(bytes), 0, 0, 0);
		show_fault(system[n].name);
		CHECK_EQ(bytes[10], 0xee);
		if (!caught.signal)
			show_bytes(system[n].name, bytes, 2);
	}
	return 0;
}
