# bugnet: build, test, install. `make demo` and `make test` install what is missing.
CC       ?= cc
CXX      ?= c++
PREFIX   ?= /usr/local
DESTDIR  ?=
B        := build
V        ?= 0
Q        := $(if $(filter 0,$(V)),@)

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wpointer-arith
CFLAGS   ?= -O2 -g
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARNINGS) -Isrc -MMD -MP $(CFLAGS)
LIBS     := -lZydis -lzstd -lxxhash -ldw -lelf -lpthread

# The stub runs inside the target: freestanding, and without touching vector registers.
STUB_CFLAGS := -std=gnu11 -O2 -g -ffreestanding -fno-stack-protector -fPIE -fvisibility=hidden \
	-mgeneral-regs-only -fno-asynchronous-unwind-tables -fno-jump-tables -fcf-protection=none \
	-fno-tree-loop-distribute-patterns $(WARNINGS) -Isrc -MMD -MP

TRANSLATE_OBJECTS := $(patsubst src/%.c,$(B)/%.o,$(wildcard src/translate/*.c))
RECORDING_OBJECTS := $(patsubst src/%.c,$(B)/%.o,$(wildcard src/recording/*.c))
RECORD_OBJECTS    := $(patsubst src/%.c,$(B)/%.o,$(wildcard src/record/*.c)) $(B)/record/stub_image.o
REPLAY_OBJECTS    := $(patsubst src/%.c,$(B)/%.o,$(wildcard src/replay/*.c))
EXPLAIN_OBJECTS   := $(patsubst src/%.c,$(B)/%.o,$(wildcard src/explain/*.c))
DEBUG_OBJECTS     := $(patsubst src/%.c,$(B)/%.o,$(wildcard src/debug/*.c)) $(B)/debug/gdb_script.o
CLI_OBJECTS       := $(patsubst src/%.c,$(B)/%.o,$(wildcard src/cli/*.c))
STUB_OBJECTS      := $(B)/target/entry.o $(patsubst src/%.c,$(B)/%.o,$(wildcard src/target/*.c))
LIBRARY_OBJECTS   := $(TRANSLATE_OBJECTS) $(RECORDING_OBJECTS) $(RECORD_OBJECTS) $(REPLAY_OBJECTS) $(DEBUG_OBJECTS) $(EXPLAIN_OBJECTS) $(filter-out $(B)/cli/main.o,$(CLI_OBJECTS))

.PHONY: all demo test soak fuzz fuzz-readers bench bench-coding bench-figures bench-atomics bench-attach bench-gdb bench-threads install clean format check-format \
	packages-build packages-fuzz \
	packages-test tests
all: $(B)/bugnet

$(B)/bugnet: $(LIBRARY_OBJECTS) $(B)/cli/main.o
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/%.o: src/%.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# The numbers of system calls and their names, as this machine's kernel headers have them.
$(B)/generated/syscall_names.inc: Makefile
	@mkdir -p $(@D)
	$(Q)echo '#include <asm/unistd_64.h>' | $(CC) -E -dM - | \
		sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$$/[\2] = "\1",/p' >$@

$(B)/recording/names.o: $(B)/generated/syscall_names.inc
$(B)/recording/names.o: ALL_CFLAGS += -I$(B)/generated

$(B)/target/%.o: src/target/%.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(STUB_CFLAGS) -c -o $@ $<

$(B)/target/%.o: src/target/%.S
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(STUB_CFLAGS) -c -o $@ $<

$(B)/target/stub.elf: $(STUB_OBJECTS) src/target/link.ld
	$(if $(Q),@echo "  $@")
	$(Q)$(LD) -static -nostdlib -T src/target/link.ld -o $@ $(STUB_OBJECTS)

$(B)/target/stub.bin: $(B)/target/stub.elf
	$(if $(Q),@echo "  $@")
	$(Q)objcopy -O binary -j .text $< $@

$(B)/record/stub_image.o: src/record/stub_image.S $(B)/target/stub.bin
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -DSTUB_FILE='"$(B)/target/stub.bin"' -c -o $@ $<

$(B)/debug/gdb_script.o: src/debug/gdb_script.S src/debug/gdb_commands.py
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -DSCRIPT_FILE='"src/debug/gdb_commands.py"' -c -o $@ $<

-include $(wildcard $(B)/*/*.d $(B)/*/*/*.d)

# ---- tests ----
UNIT_TESTS        := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/*.c))
INSTRUCTION_TESTS := $(patsubst tests/instructions/%.c,$(B)/tests/instructions/%,$(wildcard tests/instructions/*.c))
PROGRAM_TESTS     := $(patsubst tests/programs/%.c,$(B)/tests/programs/%,$(wildcard tests/programs/*.c)) \
	$(patsubst tests/programs/%.cc,$(B)/tests/programs/%,$(wildcard tests/programs/*.cc))
RACE_TESTS        := $(foreach n,$(basename $(notdir $(wildcard tests/races/*.c tests/races/*.cc))),$(B)/tests/races/$(n) $(B)/tests/races/$(n)-fixed)
THREAD_TESTS      := $(patsubst tests/threads/%.c,$(B)/tests/threads/%,$(wildcard tests/threads/*.c))
GDB_TESTS         := $(addprefix $(B)/tests/gdb/,list list-optimised list-static list-stripped containers workers kernel ending publish unknown jit strings loops wide beside alike called called-static history present walk libraries libfirst.so libsecond.so)
FUZZ_SOURCES      := $(wildcard tests/fuzz/*.c)

tests: $(B)/bugnet $(UNIT_TESTS) $(INSTRUCTION_TESTS) $(PROGRAM_TESTS) $(RACE_TESTS) $(THREAD_TESTS) $(GDB_TESTS) \
	$(B)/tests/fuzz $(B)/tests/fuzz-low \
	$(B)/tests/make-recording $(B)/tests/tamper-recording $(B)/tests/readers-corpus

$(B)/tests/unit/%: tests/unit/%.c $(LIBRARY_OBJECTS)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(LIBRARY_OBJECTS) $(LIBS) -lcmocka

$(B)/tests/%-recording: tests/recordings/%.c $(RECORDING_OBJECTS)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c %.o,$^) -lzstd -lxxhash

$(B)/tests/instructions/%: tests/instructions/%.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -O2 -g -pthread -Wall -o $@ $<

$(B)/tests/programs/%: tests/programs/%.c tests/build-program $(wildcard tests/programs/*.h)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)tests/build-program $< $@

$(B)/tests/programs/%: tests/programs/%.cc tests/build-program $(wildcard tests/programs/*.h)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)tests/build-program $< $@

$(B)/tests/races/%-fixed: tests/races/%.c tests/races/race.h
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -O1 -g -Wall -pthread -DFIXED -o $@ $<

$(B)/tests/races/%: tests/races/%.c tests/races/race.h
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -O1 -g -Wall -pthread -o $@ $<

$(B)/tests/races/%-fixed: tests/races/%.cc
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CXX) -O1 -g -Wall -pthread -DFIXED -o $@ $<

$(B)/tests/races/%: tests/races/%.cc
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CXX) -O1 -g -Wall -pthread -o $@ $<

$(B)/tests/threads/%: tests/threads/%.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -O1 -g -Wall -pthread -o $@ $<

$(B)/tests/gdb/walk: tests/gdb/walk.c $(LIBRARY_OBJECTS)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(LIBRARY_OBJECTS) $(LIBS)

$(B)/tests/gdb/list-optimised: GDB_CFLAGS := -O2
$(B)/tests/gdb/list-static: GDB_CFLAGS := -static
$(B)/tests/gdb/list-stripped: GDB_CFLAGS := -s
$(B)/tests/gdb/list%: tests/gdb/list.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -g -Wall $(GDB_CFLAGS) -o $@ $<

$(B)/tests/gdb/list: tests/gdb/list.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -g -Wall -o $@ $<

$(B)/tests/gdb/workers $(B)/tests/gdb/ending $(B)/tests/gdb/publish $(B)/tests/gdb/history $(B)/tests/gdb/present: $(B)/tests/gdb/%: tests/gdb/%.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -g -Wall -pthread -o $@ $<

$(B)/tests/gdb/kernel $(B)/tests/gdb/unknown $(B)/tests/gdb/jit $(B)/tests/gdb/strings $(B)/tests/gdb/loops $(B)/tests/gdb/wide $(B)/tests/gdb/beside $(B)/tests/gdb/alike $(B)/tests/gdb/called: $(B)/tests/gdb/%: tests/gdb/%.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -g -Wall -Wextra -o $@ $<

$(B)/tests/gdb/called-static: tests/gdb/called.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -g -Wall -Wextra -static -o $@ $<

$(B)/tests/gdb/libfirst.so: GDB_CFLAGS := -DFIRST -shared -fPIC
$(B)/tests/gdb/libsecond.so: GDB_CFLAGS := -DSECOND -shared -fPIC
$(B)/tests/gdb/libraries: GDB_CFLAGS := -Wl,-rpath,'$$ORIGIN'
$(B)/tests/gdb/libraries $(B)/tests/gdb/libfirst.so $(B)/tests/gdb/libsecond.so: tests/gdb/libraries.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -g -Wall $(GDB_CFLAGS) -o $@ $<

$(B)/tests/gdb/containers: tests/gdb/containers.cc
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CXX) -std=c++17 -g -Wall -o $@ $<

$(B)/tests/fuzz: $(FUZZ_SOURCES) $(wildcard tests/fuzz/*.h)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARNINGS) -O2 -g -o $@ $(FUZZ_SOURCES) -lZydis

# The same in low memory, where recording folds addresses.
$(B)/tests/fuzz-low: $(FUZZ_SOURCES) $(wildcard tests/fuzz/*.h)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARNINGS) -O2 -g -fno-pie -no-pie -o $@ $(FUZZ_SOURCES) -lZydis

test: packages-test
	@$(MAKE) --no-print-directory tests
	@tests/run

REPEAT ?= 3
# Everything that is recorded and replayed, also what takes long.
soak: export SUITE_TIMEOUT = 0
soak: packages-test
	@$(MAKE) --no-print-directory tests
	@REPEAT=$(REPEAT) tests/run record replay
	@RECORD_OPTIONS="--compare" tests/run record
	@RECORD_OPTIONS="--interval 1000" TIMEOUT=600 tests/run record
	@RECORD_OPTIONS="--compare --interval 1000" TIMEOUT=600 tests/run record
	@RECORD_OPTIONS="--interval 10K --bound 3" TIMEOUT=600 tests/run record
	@RECORD_OPTIONS="--children" TIMEOUT=600 tests/run record
	@REPLAYS=100 ALL=1 TIMEOUT=600 tests/run order
	@SOAK_SECONDS=3600 tests/run -k soak ring
	@ROUNDS=100 tests/run attach
	@SERVER_SECONDS=120 tests/run servers
	@tests/real/run --record

packages-build:
	@scripts/install-packages build

packages-fuzz:
	@scripts/install-packages build fuzz

packages-test:
	@scripts/install-packages build test

# Sequences: run, and recorded and replayed, without AVX-512 and with it.
N        ?= 1000000
N_RECORD ?= 50000
FUZZ     := tests/fuzz/compare --bugnet $(B)/bugnet $(if $(SEED),--seed $(SEED))
# With AVX-512, where the CPU has it.
FUZZ_WIDE := $(if $(shell grep -wo -m1 avx512vl /proc/cpuinfo),$(FUZZ) --wide,@: $(FUZZ))
fuzz: packages-build
	@$(MAKE) --no-print-directory $(B)/bugnet $(B)/tests/fuzz $(B)/tests/fuzz-low
	$(FUZZ) --count $(N) --no-wide
	$(FUZZ) --count $(N_RECORD) --record --no-wide
	$(FUZZ) --count $(N_RECORD) --record --no-wide --fuzz $(B)/tests/fuzz-low
	$(FUZZ) --count $(N_RECORD) --record --no-wide --without sharing
	$(FUZZ_WIDE) --count $(N)
	$(FUZZ_WIDE) --count $(N_RECORD) --record
	$(FUZZ_WIDE) --count $(N_RECORD) --record --fuzz $(B)/tests/fuzz-low
	$(FUZZ_WIDE) --count $(N_RECORD) --record --without sharing

# ---- the readers of recordings, fuzzed ----
CLANG         ?= clang
SECONDS       ?= 60
READER_CORPUS := tests/fuzz-readers/corpus
READER_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARNINGS) -Isrc -O1 -g

$(B)/tests/fuzz-readers: tests/fuzz-readers/readers.c $(wildcard src/recording/*.[ch]) $(B)/generated/syscall_names.inc
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CLANG) $(READER_CFLAGS) -I$(B)/generated -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -o $@ $(filter %.c,$^) -lzstd -lxxhash

# The corpus, and what becomes of it byte by byte: no fuzzer needed, so it is part of the tests.
$(B)/tests/readers-corpus: tests/fuzz-readers/corpus.c tests/fuzz-readers/readers.c $(wildcard src/recording/*.[ch]) \
		$(B)/generated/syscall_names.inc
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(READER_CFLAGS) -I$(B)/generated -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -o $@ $(filter %.c,$^) -lzstd -lxxhash

$(B)/tests/fuzz-seeds: tests/fuzz-readers/seeds.c tests/unit/recording_random.h $(RECORDING_OBJECTS)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(READER_CFLAGS) -o $@ $(filter %.c %.o,$^) -lzstd -lxxhash

# New inputs are kept in the build directory; those of the tree are made by build/tests/fuzz-seeds.
fuzz-readers: packages-fuzz
	@$(MAKE) --no-print-directory $(B)/tests/fuzz-readers
	@mkdir -p $(B)/tests/fuzz-readers-corpus
	$(B)/tests/fuzz-readers -max_total_time=$(SECONDS) -max_len=8192 -timeout=10 -rss_limit_mb=1024 \
		-artifact_prefix=$(B)/tests/ $(B)/tests/fuzz-readers-corpus $(READER_CORPUS)

# BENCH="--quick --rows gzip,lua": options of bench/run, or of bench/figures
bench: packages-build
	@$(MAKE) --no-print-directory $(B)/bugnet $(B)/bench/logsize
	@bench/run $(BENCH)

FIGURES ?= $(B)/figures
bench-figures: packages-build
	@$(MAKE) --no-print-directory $(B)/bugnet $(B)/bench/logsize
	@bench/figures $(BENCH) $(FIGURES)

$(B)/bench/logsize: bench/logsize.c $(RECORDING_OBJECTS)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c %.o,$^) -lzstd -lxxhash

$(B)/bench/coding: bench/coding.c tests/fuzz/random.h $(RECORDING_OBJECTS)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  $@")
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c %.o,$^) -lzstd -lxxhash

bench-coding: packages-build
	@$(MAKE) --no-print-directory $(B)/bench/coding
	@$(B)/bench/coding

# The cost of what orders threads.
# How long attaching stops a program.
bench-attach: packages-build
	@$(MAKE) --no-print-directory $(B)/bugnet
	@bench/attach $(BENCH)

# How long moves in a recording take, in gdb.
bench-gdb: packages-build
	@$(MAKE) --no-print-directory $(B)/bugnet
	@bench/gdb $(BENCH)

bench-atomics: packages-build
	@$(MAKE) --no-print-directory $(B)/bugnet
	@bench/atomics

# Two threads against one, and the memory of idle ones.
bench-threads: packages-build
	@scripts/install-packages bench
	@$(MAKE) --no-print-directory $(B)/bugnet
	@bench/threads $(BENCH)

demo:
	@scripts/install-packages build demo
	@$(MAKE) --no-print-directory $(B)/bugnet
	@scripts/demo

# ---- the rest ----
install: $(B)/bugnet
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include/bugnet $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(B)/bugnet $(DESTDIR)$(PREFIX)/bin/bugnet
	install -m 644 include/bugnet/bugnet.h $(DESTDIR)$(PREFIX)/include/bugnet/
	install -m 644 man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/share/doc/bugnet
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' systemd/bugnet@.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/bugnet@.service
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' systemd/front.conf >$(DESTDIR)$(PREFIX)/share/doc/bugnet/front.conf

FORMATTED := $(wildcard src/*/*.[ch] include/*/*.h tests/unit/*.[ch] tests/fuzz-readers/*.[ch] tests/recordings/*.c bench/*.c)
format:
	clang-format -i $(FORMATTED)
check-format:
	@clang-format --dry-run -Werror $(FORMATTED)

clean:
	rm -rf $(B)
