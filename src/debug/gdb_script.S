/* The commands that gdb gets, in its Python: gdb_commands.py. */
	.section .rodata
	.globl	gdb_script, gdb_script_end
gdb_script:
	.incbin	SCRIPT_FILE
gdb_script_end:
	.section .note.GNU-stack, "", @progbits
