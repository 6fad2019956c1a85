/* samples.cl: samples of projections as files store them.
 *
 * Defines
 *   SAMPLE_BYTES  1, 2 or 4
 *   SAMPLE_KIND   0 unsigned, 1 signed, 2 float
 *   SWAP          1 the bytes of a sample are in the other order
 */
#ifndef SAMPLE_BYTES
#define SAMPLE_BYTES 2
#endif
#ifndef SAMPLE_KIND
#define SAMPLE_KIND 0
#endif
#ifndef SWAP
#define SWAP 0
#endif

#if SAMPLE_BYTES == 1
typedef uchar stored_t;
#elif SAMPLE_BYTES == 2
typedef ushort stored_t;
#else
typedef uint stored_t;
#endif

inline __attribute__((always_inline)) float sample_value(stored_t stored)
{
#if SWAP && SAMPLE_BYTES == 2
    stored = rotate(stored, (ushort)8);
#elif SWAP && SAMPLE_BYTES == 4
    stored = as_uint(as_uchar4(stored).wzyx);
#endif
#if SAMPLE_KIND == 0
    return convert_float(stored);
#elif SAMPLE_BYTES == 1
    return convert_float(as_char(stored));
#elif SAMPLE_BYTES == 2 && SAMPLE_KIND == 1
    return convert_float(as_short(stored));
#elif SAMPLE_BYTES == 2
    return vload_half(0, (const __private half *)&stored);
#elif SAMPLE_KIND == 1
    return convert_float(as_int(stored));
#else
    return as_float(stored);
#endif
}
