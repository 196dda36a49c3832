# The driver with all that it starts: cc1, as, collect2 and ld translated too; then the program they made.
# timeout: 120
cat >write.c <<'END'
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>
int main(void)
{
	static unsigned char pixel[64 * 64 * 3];

	for (unsigned i = 0; i < sizeof(pixel); i++)
		pixel[i] = i * i >> 5;
	return !stbi_write_png("picture.png", 64, 64, 3, pixel, 64 * 3);
}
END
report translated --children gcc -O2 -pipe write.c -o program -lm
md5sum <program
report translated ./program
md5sum <picture.png
# Another name: what was recorded is replayed with the files it ran from.
report translated --children gcc -O2 -flto write.c -o program-lto -lm
report translated ./program-lto
