# window_compare.py WHOLE WINDOW: lines of tests/gdb/window.py for some places. What the window tells is true, and it tells something.
import sys

whole, window = ([line.split()[2:] for line in open(name, encoding="utf-8")] for name in sys.argv[1:])
for all_told, told in zip(whole, window, strict=True):
	if told != all_told[:len(told)]:
		sys.exit(f"{told} instead of {all_told}")
callers, variables = window[0::2], window[1::2]
if len(callers) < 4 or not any(variables):
	sys.exit(f"it tells only {window}")
