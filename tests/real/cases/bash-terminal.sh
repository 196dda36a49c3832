# An interactive bash on a pseudo-terminal: ^Z, fg, ^C and exit typed at the keyboard.
/usr/bin/python3 "$programs/terminal.py" translated bash --norc --noprofile -i
