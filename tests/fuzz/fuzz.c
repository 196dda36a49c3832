/*
 * fuzz: runs random instruction sequences and prints digests of what they did. Run it natively and under a
 * translator with the same arguments: the outputs must be equal. See README.md; tests/fuzz/compare does both
 * runs.
 */
#include "fuzz.h"
#include <stdio.h>
#include <stdlib.h>
#include <stdarg.h>
#include <string.h>
#include <getopt.h>
#include <time.h>

enum { BLOCK = 100 };

struct settings settings = {.seed = 1, .watchdog = 2};

static struct {
	uint64_t start, count, dump;
	bool verbose, dumping, stats, reserve;
	unsigned storm;
	uint64_t nops[4]; /* a set: instructions of the dumped sequence to replace */
} options;

static struct sequence sequences[BLOCK];
static struct {
	unsigned long instructions, faults, completed, hung, signals[32];
} totals;

void fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fprintf(stderr, "fuzz: ");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	exit(2);
}

/* Replaces instructions by nops: how compare finds the ones that matter. */
static void apply_nops(struct sequence *s)
{
	for (unsigned n = 0; n < s->start_count && n < 256; n++) {
		unsigned end = n + 1 < s->start_count ? s->starts[n + 1] : s->code_length;
		if (options.nops[n / 64] >> n % 64 & 1)
			memset(s->code + s->starts[n], 0x90, end - s->starts[n]);
	}
}

static uint64_t run_one(const struct sequence *s)
{
	static struct outcome o;
	bool dumping = options.dumping && s->number == options.dump;
	if (dumping) {
		report_sequence(s);
		fflush(stdout); /* what runs may not come back */
	}
	run_sequence(s, &o);
	totals.instructions += s->start_count;
	totals.faults += o.fault_count;
	totals.completed += o.completed;
	totals.hung += o.hung;
	for (unsigned n = 0; n < o.fault_count; n++)
		totals.signals[o.faults[n].signal & 31]++;
	if (dumping)
		report_outcome(s, &o);
	if (options.verbose) {
		printf("%lu %016lx %s", s->number, o.digest, o.hung ? "hung" : o.completed ? "end" : "fault");
		for (unsigned n = 0; n < o.fault_count; n++)
			printf(" %d@%lx", o.faults[n].signal,
			        (unsigned long)(o.faults[n].at.pc - s->address));
		printf("\n");
	}
	return o.digest;
}

/*
 * The sequences `first` to `last` of one block; they share the arena and the way their code is written. All
 * of the block are generated in any case, so that each runs in the same surroundings.
 */
static uint64_t run_block(uint64_t first, uint64_t last)
{
	uint64_t block = first / BLOCK * BLOCK, digest = 0;
	struct rng r = rng_stream(settings.seed ^ 0x626c6f636bu, block);
	unsigned arena = rng_below(&r, ARENAS), n = rng_below(&r, 100);
	enum code_mode mode = n < 70 ? CODE_PROTECTED : n < 85 ? CODE_REWRITTEN : CODE_TWO_VIEWS;
	if ((mode == CODE_REWRITTEN && settings.without & WITHOUT_REWRITTEN) ||
	        (mode == CODE_TWO_VIEWS && settings.without & WITHOUT_TWO_VIEWS))
		mode = CODE_PROTECTED;
	code_open(arena, mode);
	for (unsigned i = 0; i < BLOCK; i++) {
		generate(&sequences[i], block + i, arena, mode);
		if (options.dumping && block + i == options.dump)
			apply_nops(&sequences[i]);
		if (mode == CODE_PROTECTED)
			code_write(&sequences[i]);
	}
	code_seal(arena, mode);
	for (uint64_t i = first; i <= last; i++) {
		const struct sequence *s = &sequences[i - block];
		if (mode != CODE_PROTECTED)
			code_write(s);
		digest = mix64(digest) ^ run_one(s);
	}
	code_close(arena, mode);
	return digest;
}

static const char usage[] =
        "usage: fuzz [--seed S] [--count N] [--start I] [--verbose] [--dump I [--nop LIST]] [--stats]\n"
        "            [--wide] [--avx512] [--reserve] [--storm MICROSECONDS] [--watchdog SECONDS] [--no-bases] "
        "[--read-flags] [--without LIST]\n"
        "Runs sequences I to I+N-1 of seed S and prints a digest for each block of 100.\n"
        "  --verbose   one line per sequence\n"
        "  --dump I    the code of sequence I, and all registers before and after; without --count only I is "
        "run\n"
        "  --stats     what ran and how fast, on standard error\n"
        "  --wide      with the registers and instructions of AVX-512; only where the program is offered them\n"
        "  --avx512    also AVX-512 and AMX instructions; only where the CPU has neither\n"
        "  --reserve   occupy 2 GB on both sides of the test memory (odd seeds do so always)\n"
        "  --storm     a SIGALRM this often, instead of four times a second\n"
        "  --watchdog  end a sequence that takes longer than this (2)\n"
        "  --no-bases  leave the fs and gs bases alone\n"
        "  --read-flags  at faults, leave out status flags that the sequence does not read any more\n"
        "  --without   leaves out: ac, segments, xsave, code that is rewritten or has two-views, or all sharing of memory\n";

static uint64_t number(const char *name, const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);
	if (end == text || *end)
		fail("--%s needs a number, not '%s'", name, text);
	return value;
}

/* A list of names, separated by commas. */
static unsigned parse_without(char *list)
{
	static const char *const names[] = {"ac", "segments", "xsave", "rewritten", "two-views", "sharing"};
	unsigned without = 0;
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		unsigned n = 0;
		while (n < sizeof names / sizeof *names && strcmp(names[n], name) != 0)
			n++;
		if (n == sizeof names / sizeof *names)
			fail("--without does not know '%s'", name);
		without |= 1u << n;
	}
	return without & WITHOUT_SHARING ? without | WITHOUT_REWRITTEN | WITHOUT_TWO_VIEWS : without;
}

static void parse_nops(char *list)
{
	for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		uint64_t n = number("nop", word);
		if (n < 256)
			options.nops[n / 64] |= 1ull << n % 64;
	}
}

static void parse(int argc, char **argv)
{
	enum {
		SEED,
		COUNT,
		START,
		DUMP,
		STORM,
		WATCHDOG,
		VERBOSE,
		STATS,
		WIDE,
		AVX512,
		RESERVE,
		NO_BASES,
		READ_FLAGS,
		WITHOUT,
		NOP,
		HELP
	};
	static const struct option known[] = {{"seed", 1, NULL, SEED}, {"count", 1, NULL, COUNT},
	        {"start", 1, NULL, START}, {"dump", 1, NULL, DUMP}, {"storm", 1, NULL, STORM},
	        {"watchdog", 1, NULL, WATCHDOG}, {"verbose", 0, NULL, VERBOSE}, {"stats", 0, NULL, STATS},
	        {"wide", 0, NULL, WIDE}, {"avx512", 0, NULL, AVX512}, {"reserve", 0, NULL, RESERVE}, {"no-bases", 0, NULL, NO_BASES},
	        {"read-flags", 0, NULL, READ_FLAGS},
	        {"without", 1, NULL, WITHOUT}, {"nop", 1, NULL, NOP}, {"help", 0, NULL, HELP}, {0}};
	for (int option, index; (option = getopt_long(argc, argv, "", known, &index)) != -1;) {
		uint64_t value = option >= 0 && option <= WATCHDOG ? number(known[index].name, optarg) : 0;
		switch (option) {
		case SEED:
			settings.seed = value;
			break;
		case COUNT:
			options.count = value;
			break;
		case START:
			options.start = value;
			break;
		case DUMP:
			options.dumping = true;
			options.dump = value;
			break;
		case STORM:
			options.storm = (unsigned)value;
			break;
		case WATCHDOG:
			settings.watchdog = (unsigned)value;
			break;
		case VERBOSE:
			options.verbose = true;
			break;
		case STATS:
			options.stats = true;
			break;
		case WIDE:
			settings.wide = true;
			break;
		case AVX512:
			settings.avx512 = true;
			break;
		case RESERVE:
			options.reserve = true;
			break;
		case NO_BASES:
			settings.no_bases = true;
			break;
		case READ_FLAGS:
			settings.read_flags = true;
			break;
		case WITHOUT:
			settings.without = parse_without(optarg);
			break;
		case NOP:
			parse_nops(optarg);
			break;
		case HELP:
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (optind < argc)
		fail("unknown argument '%s'", argv[optind]);
	if (options.dumping && options.count == 0) {
		options.start = options.dump;
		options.count = 1;
	} else if (options.count == 0) {
		options.count = 10000;
	}
	settings.far = settings.seed & 1;
}

static void print_stats(const struct timespec *began)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	double seconds = (double)(now.tv_sec - began->tv_sec) + (double)(now.tv_nsec - began->tv_nsec) / 1e9;
	fprintf(stderr,
	        "fuzz: %lu sequences of %.1f instructions in %.2f s of CPU time (%.0f/s), %.1f%% reached "
	        "their end, %.2f faults each:",
	        options.count, (double)totals.instructions / (double)options.count, seconds,
	        (double)options.count / seconds, 100.0 * (double)totals.completed / (double)options.count,
	        (double)totals.faults / (double)options.count);
	for (int n = 1; n < 32; n++)
		if (totals.signals[n])
			fprintf(stderr, " %s %lu", sigabbrev_np(n), totals.signals[n]);
	fprintf(stderr, "; %lu hung; %u different mnemonics\n", totals.hung, encode_mnemonics());
}

static bool offers_wide(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

int main(int argc, char **argv)
{
	struct timespec began;
	parse(argc, argv);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	if (!__builtin_cpu_supports("avx2"))
		fail("this CPU has no AVX2");
	if (settings.wide && !offers_wide())
		fail("--wide: this CPU has no AVX-512 with its extensions F, BW, DQ and VL");
	setvbuf(stdout, NULL, _IOLBF, 0);
	state_setup();
	enter_setup();
	encode_setup();
	arena_setup(settings.far || options.reserve);
	code_setup();
	run_setup(options.storm);
	for (uint64_t i = options.start, end = options.start + options.count; i < end;) {
		uint64_t last = i / BLOCK * BLOCK + BLOCK - 1;
		if (last >= end)
			last = end - 1;
		uint64_t digest = run_block(i, last);
		if (!options.dumping)
			printf("block %lu-%lu %016lx\n", i, last, digest);
		i = last + 1;
	}
	if (options.stats)
		print_stats(&began);
	return run_bad_pcs ? 1 : 0;
}
