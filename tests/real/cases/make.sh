# make -j2 with a job server, recipes, failures and -k; the compilers it starts native and then translated as well.
cat >Makefile <<'END'
objects := $(foreach n,1 2 3 4 5 6,part$n.o)
.SECONDARY:
all: program ; @./program
program: $(objects) ; @$(CC) -o $@ $^
part%.o: part%.c ; @$(CC) -O1 -c -o $@ $<
part%.c: ; @printf 'int part%s(void){return %s;}\n' $* $* >$@ && if [ $* = 1 ]; then printf '#include <stdio.h>\nint part6(void);int main(void){printf("%%d\\n",part1()+part6());return 0;}\n' >>$@; fi
bad: bad1 bad2 good ; @true
bad%: ; @exit $*
good: ; @echo good
END
report translated make -j2
rm -f *.o *.c program
report translated --children make -s -j2
report translated make -k bad 2>&1 | sed 's/^make.*: \*\*\*/***/' | sort
