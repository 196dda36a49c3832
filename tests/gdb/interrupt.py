# `bugnet replay` at a terminal: interrupt.py BUGNET RECORDING. What ^C sends goes to everybody in front of it, and only gdb minds.
import sys
from keyboard import Terminal

bugnet, recording = sys.argv[1:]
terminal = Terminal([bugnet, "replay", recording])
terminal.wait_for("(gdb)")
terminal.type("set confirm off\n", "(gdb)")
terminal.type("seek 120000\n", "(gdb)")
terminal.type("reverse-stepi\n", "(gdb)")
terminal.type("\x03", "Quit", "(gdb)")
terminal.type("reverse-stepi\n", "(gdb)")
terminal.type("when\n", "position 119998 ", "(gdb)")
terminal.quit()
print("passed")
