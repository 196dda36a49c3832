/* The stub, as the linker made it from src/target. */
	.section .rodata
	.globl	stub_image, stub_image_end
	.balign	4096
stub_image:
	.incbin	STUB_FILE
stub_image_end:
	.section .note.GNU-stack, "", @progbits
