/*
 * The vector registers of a thread as a recording has them, in the order of XSAVE: the legacy image, a header
 * that tells by XSTATE_BV which components are not in their initial state, and the components one behind the
 * other. That is the compact form of XSAVEC for all of VECTORS_WIDE, and the standard form as far as AVX;
 * from there on the standard form has its components where the processor says (CPUID leaf 13).
 *
 * An image is VECTORS_AVX_BYTES long, or VECTORS_BYTES where the program has the registers of AVX-512.
 */
#ifndef BUGNET_RECORDING_VECTORS_H
#define BUGNET_RECORDING_VECTORS_H

/* State components, by their bits in XCR0. */
#define VECTORS_X87       0x01
#define VECTORS_SSE       0x02
#define VECTORS_AVX       0x04
#define VECTORS_MASKS     0x20 /* k0 to k7 */
#define VECTORS_ZMM_HIGH  0x40 /* the upper halves of zmm0 to zmm15 */
#define VECTORS_ZMM_MORE  0x80 /* zmm16 to zmm31 */
#define VECTORS_UP_TO_AVX (VECTORS_X87 | VECTORS_SSE | VECTORS_AVX)
#define VECTORS_AVX512    (VECTORS_MASKS | VECTORS_ZMM_HIGH | VECTORS_ZMM_MORE)
#define VECTORS_WIDE      (VECTORS_UP_TO_AVX | VECTORS_AVX512)

/* Where they are. */
#define VECTORS_AT_MXCSR    24
#define VECTORS_AT_PRESENT  512 /* XSTATE_BV */
#define VECTORS_AT_FORM     520 /* XCOMP_BV */
#define VECTORS_AT_AVX      576
#define VECTORS_AT_MASKS    832
#define VECTORS_AT_ZMM_HIGH 896
#define VECTORS_AT_ZMM_MORE 1408
#define VECTORS_AVX_BYTES   832
#define VECTORS_BYTES       2432

#define VECTORS_COMPACT (1ul << 63) /* in XCOMP_BV: the compact form */

#define VECTORS_INITIAL_MXCSR 0x1f80u

#endif
