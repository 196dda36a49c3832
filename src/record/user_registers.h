/* A thread's registers as ptrace has them, and as the stub has them. */
#ifndef BUGNET_RECORD_USER_REGISTERS_H
#define BUGNET_RECORD_USER_REGISTERS_H

#include <sys/user.h>

#include "target/layout.h"

static inline struct registers registers_from_user(const struct user_regs_struct *r)
{
	return (struct registers){
	        .gpr = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi, r->r8, r->r9, r->r10,
	                r->r11, r->r12, r->r13, r->r14, r->r15},
	        .pc = r->rip,
	        .flags = r->eflags,
	};
}

/* Segments and their bases stay what they are; no system call is under way. */
static inline void registers_to_user(struct user_regs_struct *r, const struct registers *from)
{
	const uint64_t *gpr = from->gpr;

	r->rax = gpr[RAX], r->rcx = gpr[RCX], r->rdx = gpr[RDX], r->rbx = gpr[RBX];
	r->rsp = gpr[RSP], r->rbp = gpr[RBP], r->rsi = gpr[RSI], r->rdi = gpr[RDI];
	r->r8 = gpr[R8], r->r9 = gpr[R9], r->r10 = gpr[R10], r->r11 = gpr[R11];
	r->r12 = gpr[R12], r->r13 = gpr[R13], r->r14 = gpr[R14], r->r15 = gpr[R15];
	r->rip = from->pc;
	r->eflags = from->flags;
	r->orig_rax = (uint64_t)-1;
}

#endif
