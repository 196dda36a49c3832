/*
 * What a patch costs in the ring: nanoseconds to encode and to decode, bytes before and
 * after zstd, for kinds of accesses that programs make. `make bench-coding`.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "../tests/fuzz/random.h"
#include "recording/decode.h"
#include "recording/encode.h"

#define PATCHES 200000
#define ROUNDS  7

struct patch {
	uint64_t position;
	uint64_t address;
	uint64_t words[EVENT_LINE_WORDS];
	uint8_t mask;
};

static struct patch patches[PATCHES];
static uint8_t log_bytes[ENCODE_KEYFRAME_MAXIMUM + PATCHES * ENCODE_PATCH_MAXIMUM];
static struct rng rng;

/* ---- accesses ---- */

/* A flag that another thread sets and clears. */
static void flag(struct patch *patch, uint64_t i)
{
	patch->address = 0x7ffff7a01040;
	patch->mask = 1 << 2;
	patch->words[2] = i & 1;
}

/* Pointers from a queue that others fill: a few thousand objects, some much more often than others. */
static void pointers(struct patch *patch, uint64_t i)
{
	uint64_t object = rng_below(&rng, 1 + rng_below(&rng, 1 + rng_below(&rng, 4000)));

	patch->address = 0x7ffff0000000 + i % 64 * 64;
	patch->mask = (uint8_t)(1 << i % 8);
	patch->words[i % 8] = 0x7fffe8000b20 + object * 0x1b0;
}

/* Reading a file of code, which the kernel put into a buffer of 64 KB. */
static void file(struct patch *patch, uint64_t i)
{
	static uint8_t content[1 << 20];
	static bool loaded;

	if (!loaded) {
		int fd = open("/proc/self/exe", O_RDONLY);
		for (size_t at = 0; at < sizeof content;) {
			ssize_t got = pread(fd, content + at, sizeof content - at, (off_t)(at % 65536));
			if (got <= 0)
				err(1, "/proc/self/exe");
			at += (size_t)got;
		}
		close(fd);
		loaded = true;
	}
	patch->address = 0x55555557a000 + i % 1024 * 64;
	patch->mask = 0xff;
	memcpy(patch->words, content + i * 64 % sizeof content, 64);
}

/* An array of 32-bit numbers below 1000. */
static void numbers(struct patch *patch, uint64_t i)
{
	patch->address = 0x7fffd0000000 + i * 64;
	patch->mask = 0xff;
	for (int word = 0; word < EVENT_LINE_WORDS; word++)
		patch->words[word] = rng_below(&rng, 1000) | (uint64_t)rng_below(&rng, 1000) << 32;
}

/* Structures all over eight regions: one to three words, counters and pointers. */
static void structures(struct patch *patch, uint64_t i)
{
	(void)i;
	patch->address = 0x7fff00000000 + ((uint64_t)rng_below(&rng, 8) << 28) + rng_below(&rng, 1000) * 64;
	patch->mask = 0;
	for (int word = 0; word < 3; word++)
		patch->mask |= (uint8_t)(1 << rng_below(&rng, 8));
	for (int word = 0; word < EVENT_LINE_WORDS; word++)
		patch->words[word] =
		        word % 2 ? rng_below(&rng, 100000)
		                 : 0x7ffff7000000 + rng_below(&rng, 1 + rng_below(&rng, 200)) * 64;
}

/* ---- measuring ---- */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static size_t encode_all(void)
{
	static struct dictionary_entry entries[1 << DICTIONARY_DEFAULT_BITS];
	const struct event_keyframe keyframe = {.leans_on = 0};
	struct coder coder;

	coder_init(&coder, entries, DICTIONARY_DEFAULT_BITS);
	uint8_t *at = encode_keyframe(&coder, log_bytes, 0, &keyframe);
	for (size_t i = 0; i < PATCHES; i++)
		at = encode_patch(&coder, at, patches[i].position, patches[i].address, patches[i].mask,
		        patches[i].words);
	return (size_t)(at - log_bytes);
}

static void decode_all(size_t size)
{
	static struct decoder decoder;
	static struct event event;
	size_t count = 0;

	decoder_init(&decoder, log_bytes, size);
	while (decoder_next(&decoder, &event) == DECODE_EVENT)
		count++;
	if (count != PATCHES + 1)
		errx(1, "%s", decode_status_text(decoder.status));
}

static size_t compressed_size(size_t size)
{
	size_t room = ZSTD_compressBound(size);
	void *packed = malloc(room);
	size_t result = ZSTD_compress(packed, room, log_bytes, size, 3);

	free(packed);
	return result;
}

static void measure(const char *name, void (*access)(struct patch *patch, uint64_t i))
{
	double encode = 1e18, decode = 1e18;
	uint64_t position = 0;
	size_t size = 0;

	rng = rng_stream(1, 1);
	for (size_t i = 0; i < PATCHES; i++) {
		access(&patches[i], i);
		position += 1 + rng_below(&rng, 200);
		patches[i].position = position;
	}
	for (int round = 0; round < ROUNDS; round++) {
		double start = now();
		size = encode_all();
		double middle = now();
		decode_all(size);
		double end = now();
		encode = middle - start < encode ? middle - start : encode;
		decode = end - middle < decode ? end - middle : decode;
	}
	printf("%-12s %9.1f %9.1f %9.1f %9.1f\n", name, encode / PATCHES, decode / PATCHES,
	        (double)size / PATCHES, (double)compressed_size(size) / PATCHES);
}

int main(void)
{
	printf("%-12s %9s %9s %9s %9s\n", "per patch", "ns write", "ns read", "bytes", "zstd");
	measure("flag", flag);
	measure("pointers", pointers);
	measure("file", file);
	measure("numbers", numbers);
	measure("structures", structures);
	return 0;
}
