/*
 * String instructions while recording: movs, stos, lods, cmps, scas.
 *
 * Replay executes the instruction on memory as the log says it was when the
 * instruction began. So what it reads must be read from memory once, before it
 * is used, and what it has written itself must not be looked at in memory again:
 * another thread may have changed it meanwhile. The extents of both streams say
 * which bytes are settled; their shadow is what they are. The log keeps words: see settle.
 *
 * The work is done in pieces that lie within one page of each stream, or one
 * line where the end is not known beforehand. Memory faults by pages, so a piece
 * is done or it is not, and only the first element of a piece can fault. An
 * element that crosses the border is a piece of its own.
 *
 * Between two pieces the registers are what they are between two iterations. A
 * fault, a trap or a signal is due then. A fault is raised by touching what the element
 * touches: the instruction itself may be another by now, it can overwrite itself. When the instruction is
 * entered again at the same position, nothing has been executed in between, as when the signal was ignored:
 * it then goes on counting iterations, because the log knows of one execution only.
 */
#include "target/flags.h"
#include "target/stub.h"

#define PAGE_BYTES 0x1000u
#define LINE_BYTES 64u

struct string {
	struct thread *thread;
	unsigned kind, size;
	unsigned repeat; /* STRING_REPEAT */
	unsigned reach;  /* a piece does not go beyond so many aligned bytes */
	bool backward;
	bool narrow;          /* 32-bit addresses and count */
	bool refused;         /* the piece that is done now could not be done before */
	uint64_t source_base; /* of the segment */
	/* Memory whose shadow is what the instruction sees there; kept in the thread, should it be left. */
	struct extent *source, *destination;
};

/* ---- registers ---- */

static uint64_t segment_base(const struct thread *thread, unsigned segment)
{
	uint64_t base = 0;

	if (segment == 1)
		__asm__("rdfsbase %0" : "=r"(base));
	else if (segment == 2)
		base = thread->slots[SLOT_PROGRAM_GS];
	return base;
}

static uint64_t offset(const struct string *s, unsigned reg)
{
	uint64_t value = s->thread->regs.gpr[reg];

	return s->narrow ? (uint32_t)value : value;
}

static uint64_t source_address(const struct string *s)
{
	return s->source_base + offset(s, RSI);
}

static uint64_t destination_address(const struct string *s)
{
	return offset(s, RDI);
}

static bool has_source(const struct string *s)
{
	return s->kind == STRING_MOVS || s->kind == STRING_LODS || s->kind == STRING_CMPS;
}

static bool has_destination(const struct string *s)
{
	return s->kind != STRING_LODS;
}

static uint64_t remaining(const struct string *s)
{
	return s->repeat ? offset(s, RCX) : 1;
}

static void add(struct string *s, unsigned reg, uint64_t amount)
{
	uint64_t value = s->thread->regs.gpr[reg] + amount;

	s->thread->regs.gpr[reg] = s->narrow ? (uint32_t)value : value;
}

/* So many iterations were done. */
static void advance(struct string *s, uint64_t count)
{
	uint64_t bytes = s->backward ? -(count * s->size) : count * s->size;

	if (has_source(s))
		add(s, RSI, bytes);
	if (has_destination(s))
		add(s, RDI, bytes);
	if (s->repeat)
		add(s, RCX, -count);
	s->thread->iterations += count;
}

/*
 * Without an iteration no memory is touched, but with 32-bit addresses the CPU
 * may clear upper halves: it is asked.
 */
static void do_nothing(struct string *s)
{
	uint64_t *gpr = s->thread->regs.gpr, unused;

	if (!s->narrow)
		return;
	if (!has_source(s))
		__asm__ volatile("addr32 rep stosb" : "+D"(gpr[RDI]), "+c"(gpr[RCX]) : "a"(0) : "memory");
	else if (!has_destination(s))
		__asm__ volatile("addr32 rep lodsb"
		                 : "+S"(gpr[RSI]), "+c"(gpr[RCX]), "=a"(unused)
		                 :
		                 : "memory");
	else
		__asm__ volatile("addr32 rep movsb"
		                 : "+S"(gpr[RSI]), "+D"(gpr[RDI]), "+c"(gpr[RCX])
		                 :
		                 : "memory");
}

/* ---- what is settled ---- */

/* The bytes of `count` elements, of which the one at `address` comes first. */
static struct extent extent_of(const struct string *s, uint64_t address, uint64_t count)
{
	uint64_t bytes = count * s->size;

	if (s->backward)
		return (struct extent){address + s->size - bytes, address + s->size};
	return (struct extent){address, address + bytes};
}

/* Adds to the end, in the direction of the instruction; an address that wrapped around begins anew. */
static void extend(const struct string *s, struct extent *settled, struct extent more)
{
	if (s->backward && settled->low == more.high)
		settled->low = more.low;
	else if (!s->backward && settled->high == more.low)
		settled->high = more.high;
	else
		*settled = more;
}

static bool contains(const struct extent *settled, const struct extent *e)
{
	return e->low >= settled->low && e->high <= settled->high;
}

static bool check(struct string *s, uint64_t low, uint64_t high)
{
	return low >= high || shadow_check_bytes(s->thread, low, high - low);
}

static bool check_but(struct string *s, struct extent e, const struct extent *settled)
{
	if (settled->low >= e.high || settled->high <= e.low)
		return check(s, e.low, e.high);
	return check(s, e.low, settled->low) && check(s, settled->high, e.high);
}

/*
 * It is no fault: there is no room for the shadow. The log ends before the instruction, of which replay does
 * nothing; the thread goes on natively in the middle of it.
 */
static _Noreturn void go_on_natively(struct string *s)
{
	struct thread *thread = s->thread;
	struct registers here = thread->regs;

	thread->slots[SLOT_POSITION]--;
	advance(s, -thread->iterations);
	publish_position(thread);
	log_end(thread, LOG_END_RELEASED, 0, NULL);
	thread->regs = here;
	release(thread);
}

/*
 * The element at the address cannot be accessed. Before the first iteration the instruction itself may say
 * how it faults. Comes back when the memory is there now: the piece is to be tried again.
 */
static void refuse(struct string *s, uint64_t address, bool writes)
{
	struct thread *thread = s->thread;
	uint64_t last = address + s->size - 1;

	if (!thread->iterations || (thread->mask & (SIGBIT(K_SIGSEGV) | SIGBIT(K_SIGBUS))))
		fault_natively(thread);
	touch((void *)address, writes);
	if (last / PAGE_BYTES != address / PAGE_BYTES)
		touch((void *)(last & -(uint64_t)PAGE_BYTES), writes);
	if (s->refused)
		go_on_natively(s);
	s->refused = true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How many elements from the address on are within its page or line; 1 when not even the first is. */
static uint64_t within_reach(const struct string *s, uint64_t address)
{
	uint64_t behind = address % s->reach, room = s->reach - behind;

	if (room < s->size)
		return 1;
	return s->backward ? behind / s->size + 1 : room / s->size;
}

/*
 * Settles a piece, and all that the instruction may yet read up to the end of its
 * page or line: that is cheaper at once, and touches no page that the piece does
 * not. `other` is the extent of the other stream. False: to be tried again.
 */
static bool settle(struct string *s, struct extent *settled, uint64_t address, uint64_t count,
        const struct extent *other)
{
	struct extent piece = extent_of(s, address, count);
	struct extent wanted = extent_of(s, address, least(remaining(s), within_reach(s, address)));

	if (contains(settled, &piece))
		return true;
	/* To the end of a word: words are logged as a whole, and behind it this instruction may have stored
	 * something when the next is settled. */
	if (s->backward)
		wanted.low &= -8ul;
	else
		wanted.high = (wanted.high + 7) & -8ul;
	if (s->backward && settled->low < wanted.high && settled->high >= wanted.high)
		wanted.high = settled->low;
	else if (!s->backward && settled->high > wanted.low && settled->low <= wanted.low)
		wanted.low = settled->high;
	if (!check_but(s, wanted, other)) {
		refuse(s, address, false);
		return false;
	}
	extend(s, settled, wanted);
	return true;
}

/* The settled bytes of a piece; those of an element that crosses a page are brought together in `spare`. */
static const uint8_t *settled_bytes(struct string *s, uint64_t address, uint64_t count, uint8_t spare[8])
{
	struct extent e = extent_of(s, address, count);
	unsigned first = PAGE_BYTES - e.low % PAGE_BYTES;

	if (e.high - e.low <= first)
		return shadow_of(s->thread, e.low);
	memcpy(spare, shadow_of(s->thread, e.low), first);
	memcpy(spare + first, shadow_of(s->thread, e.low + first), s->size - first);
	return spare;
}

/* Element number `i` of a piece of `count`, in the order of the iterations. */
static uint64_t element(const struct string *s, const uint8_t *bytes, uint64_t count, uint64_t i)
{
	const uint8_t *at = bytes + (s->backward ? count - 1 - i : i) * s->size;
	uint64_t value = 0;

	switch (s->size) {
	case 1:
		return *at;
	case 2:
		__builtin_memcpy(&value, at, 2);
		break;
	case 4:
		__builtin_memcpy(&value, at, 4);
		break;
	default:
		__builtin_memcpy(&value, at, 8);
	}
	return value;
}

/* ---- pieces ---- */

/* How many elements there are until an offset wraps around. */
static uint64_t until_wrap(const struct string *s, unsigned reg)
{
	uint64_t at = offset(s, reg);

	if (!s->narrow)
		return PAGE_BYTES;
	return s->backward ? at / s->size + 1 : ((1ul << 32) - at + s->size - 1) / s->size;
}

static uint64_t piece_size(const struct string *s)
{
	uint64_t count = remaining(s);

	if (has_source(s))
		count = least(least(count, within_reach(s, source_address(s))), until_wrap(s, RSI));
	if (has_destination(s))
		count = least(least(count, within_reach(s, destination_address(s))), until_wrap(s, RDI));
	if (s->thread->regs.flags & FLAG_TF)
		count = 1;
	return count;
}

/* How many elements were stored: all, or none, and it is to be tried again. */
static uint64_t store(struct string *s, const void *from, uint64_t count)
{
	struct extent e = extent_of(s, destination_address(s), count);

	if (store_program(s->thread, e.low, from, e.high - e.low) < 0) {
		refuse(s, destination_address(s), true);
		return 0;
	}
	extend(s, s->destination, e);
	return count;
}

/* What a movs piece writes it must not read. Upwards, what lies below its source may be overwritten. */
static uint64_t apart(const struct string *s, uint64_t count)
{
	uint64_t source = source_address(s), destination = destination_address(s);
	uint64_t distance = destination > source ? destination - source : source - destination;

	if (distance == 0 || distance >= count * s->size || (!s->backward && destination < source))
		return count;
	return distance < s->size ? 1 : distance / s->size;
}

static uint64_t do_movs(struct string *s, uint64_t count)
{
	uint8_t spare[8];

	count = apart(s, count);
	if (!settle(s, s->source, source_address(s), count, s->destination))
		return 0;
	const uint8_t *bytes = settled_bytes(s, source_address(s), count, spare);
	/* One element may overlap itself: all of it is read before it is written. */
	uint64_t one = element(s, bytes, count, 0);
	return store(s, count == 1 ? (const void *)&one : bytes, count);
}

/*
 * What was stored already is the pattern for what comes next, so that pieces
 * double until they are pages.
 */
static uint64_t do_stos(struct string *s, uint64_t count)
{
	static const uint64_t repeated[9] = {
	        [1] = 0x0101010101010101, [2] = 0x0001000100010001, [4] = 0x0000000100000001, [8] = 1};
	const struct extent *stored = s->destination;
	uint64_t ready = least(stored->high - stored->low, PAGE_BYTES);
	uint64_t pattern[8], mask = s->size == 8 ? -1ul : (1ul << 8 * s->size) - 1;

	if (ready >= sizeof pattern && (stored->low ^ (stored->low + ready - 1)) >> FOLD_BIT == 0) {
		count = least(count, ready / s->size);
		return store(s, shadow_of(s->thread, stored->low), count);
	}
	for (unsigned i = 0; i < 8; i++)
		pattern[i] = (s->thread->regs.gpr[RAX] & mask) * repeated[s->size];
	count = least(count, sizeof pattern / s->size);
	return store(s, pattern, count);
}

static uint64_t do_lods(struct string *s, uint64_t count)
{
	uint64_t *rax = &s->thread->regs.gpr[RAX], value;
	uint8_t spare[8];

	if (!settle(s, s->source, source_address(s), count, s->destination))
		return 0;
	value = element(s, settled_bytes(s, source_address(s), count, spare), count, count - 1);
	if (s->size >= 4)
		*rax = value;
	else
		*rax = s->size == 1 ? (*rax & ~0xfful) | value : (*rax & ~0xfffful) | value;
	return count;
}

static void compare(struct string *s, uint64_t a, uint64_t b)
{
	uint64_t flags = 0;

	switch (s->size) {
	case 1:
		__asm__(WITH_FLAGS("cmp %b2, %b1") : [flags] "+r"(flags) : "r"(a), "r"(b) : "cc");
		break;
	case 2:
		__asm__(WITH_FLAGS("cmp %w2, %w1") : [flags] "+r"(flags) : "r"(a), "r"(b) : "cc");
		break;
	case 4:
		__asm__(WITH_FLAGS("cmp %k2, %k1") : [flags] "+r"(flags) : "r"(a), "r"(b) : "cc");
		break;
	default:
		__asm__(WITH_FLAGS("cmp %2, %1") : [flags] "+r"(flags) : "r"(a), "r"(b) : "cc");
	}
	s->thread->regs.flags = merge_status(s->thread->regs.flags, flags);
}

/* Does the comparison end the repetition? */
static bool ends(const struct string *s, bool equal)
{
	return s->repeat && equal == (s->repeat == 2);
}

static uint64_t do_cmps(struct string *s, uint64_t count)
{
	uint8_t spare_left[8], spare_right[8];
	uint64_t a, b, done = 0;

	if (!settle(s, s->source, source_address(s), count, s->destination) ||
	        !settle(s, s->destination, destination_address(s), count, s->source))
		return 0;
	const uint8_t *left = settled_bytes(s, source_address(s), count, spare_left);
	const uint8_t *right = settled_bytes(s, destination_address(s), count, spare_right);
	do {
		a = element(s, left, count, done);
		b = element(s, right, count, done);
		done++;
	} while (done < count && !ends(s, a == b));
	compare(s, a, b);
	return done;
}

static uint64_t do_scas(struct string *s, uint64_t count)
{
	uint64_t mask = s->size == 8 ? -1ul : (1ul << 8 * s->size) - 1;
	uint64_t a = s->thread->regs.gpr[RAX] & mask, b, done = 0;
	uint8_t spare[8];

	if (!settle(s, s->destination, destination_address(s), count, s->source))
		return 0;
	const uint8_t *bytes = settled_bytes(s, destination_address(s), count, spare);
	do {
		b = element(s, bytes, count, done);
		done++;
	} while (done < count && !ends(s, a == b));
	compare(s, a, b);
	return done;
}

/* What the program cannot have is not worth a look; so no address of a piece wraps around either. */
static void check_address(struct string *s, uint64_t address)
{
	if ((int64_t)address < 0)
		fault_natively(s->thread);
	check_alignment(s->thread, address, s->size);
}

/* How many iterations were done: 0 when it is to be tried again. */
static uint64_t do_piece(struct string *s)
{
	uint64_t count = piece_size(s);

	if (has_source(s))
		check_address(s, source_address(s));
	if (has_destination(s))
		check_address(s, destination_address(s));
	switch (s->kind) {
	case STRING_MOVS:
		return do_movs(s, count);
	case STRING_STOS:
		return do_stos(s, count);
	case STRING_LODS:
		return do_lods(s, count);
	case STRING_CMPS:
		return do_cmps(s, count);
	default:
		return do_scas(s, count);
	}
}

/* ---- the instruction ---- */

/* The instruction is counted already while the stub works on it: its position is one less. */
static void begin(struct string *s)
{
	struct thread *thread = s->thread;
	uint64_t at = position(thread) - 1;

	if (thread->string_position != at || thread->string_pc != thread->regs.pc)
		thread->iterations = 0;
	if (!thread->iterations)
		thread->string_source = thread->string_destination = (struct extent){0};
	thread->string_position = at;
	thread->string_pc = thread->regs.pc;
	s->source = &thread->string_source;
	s->destination = &thread->string_destination;
}

uint64_t take_iterations(struct thread *thread)
{
	bool here = thread->string_position == position(thread) && thread->string_pc == thread->regs.pc;
	uint64_t iterations = here ? thread->iterations : 0;

	thread->iterations = 0;
	return iterations;
}

static bool is_done(const struct string *s)
{
	bool compares = s->kind == STRING_CMPS || s->kind == STRING_SCAS;

	return !s->repeat || remaining(s) == 0 || (compares && ends(s, s->thread->regs.flags & STATUS_ZF));
}

bool emulate_string(struct thread *thread, unsigned argument)
{
	struct string s = {
	        .thread = thread,
	        .kind = STRING_KIND(argument),
	        .size = STRING_SIZE(argument),
	        .repeat = STRING_REPEAT(argument),
	        .narrow = STRING_ADDRESS32(argument),
	        .backward = thread->regs.flags & FLAG_DF,
	        .source_base = segment_base(thread, STRING_SEGMENT(argument)),
	};

	s.reach = s.kind == STRING_CMPS || s.kind == STRING_SCAS ? LINE_BYTES : PAGE_BYTES;
	begin(&s);
	if (remaining(&s) == 0) {
		do_nothing(&s);
		return true;
	}
	for (;;) {
		uint64_t done = do_piece(&s);
		if (done) {
			s.refused = false;
			advance(&s, done);
			if (is_done(&s))
				return true;
		}
		bool traps = thread->regs.flags & FLAG_TF; /* behind each iteration */
		if ((traps && done) || __atomic_load_n(&thread->pending, __ATOMIC_RELAXED)) {
			if (!done)
				thread->step_armed = 0;
			return false;
		}
	}
}
