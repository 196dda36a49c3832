/* The readers, by the first byte of an input. */
#ifndef FUZZ_READERS_H
#define FUZZ_READERS_H

enum {
	READER_CONTAINER,
	READER_EVENTS,
	READER_META,
	READER_CODELOG,
	READER_THREAD,
	READER_ELF,
	READER_CODE,
	READER_COUNT,
};

#endif
