# The driver, and cc1 and as on their own: what they make must be the same byte for byte.
# timeout: 120
printf '#define STB_IMAGE_RESIZE_IMPLEMENTATION\n#include <stb/stb_image_resize.h>\n' >resize.c
printf '#define STB_TRUETYPE_IMPLEMENTATION\n#include <stb/stb_truetype.h>\n' >font.c
report translated gcc -O2 -c resize.c -o resize.o
gcc -E font.c -o font.i
report translated "$(gcc -print-prog-name=cc1)" -quiet -fpreprocessed -O2 -g font.i -o font.s
report translated as --gdwarf-5 font.s -o font.o
md5sum resize.o font.s font.o
printf 'int f(int x) { return y; }\n' >wrong.c
report translated gcc -c wrong.c
