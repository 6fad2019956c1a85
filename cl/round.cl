/* round.cl: from a position in a local cache to whole cell and rest, by the units that a device has to spare
 * (paper, 6.6). Positions are small and never negative.
 *
 *   ROUNDING  0 conversion instructions
 *             1 floating-point: adding 2^23 leaves a whole number, whose low bits are the index
 *             2 floating-point for the index in bytes, too
 *
 * 1 and 2 need additions to be done as written: they go wrong under relaxed arithmetic.
 */
#ifndef ROUNDING
#define ROUNDING 0
#endif

#ifndef OVERSAMPLE
#define OVERSAMPLE 1
#endif

/* Linear interpolation between cells needs the lower one; otherwise it is the nearest. */
#define ROUND_DOWN (LINEAR && OVERSAMPLE == 1)

#define TWO_23 8388608.0f
#define TWO_23_BITS 0x4B000000

/* Pointer to the cell at `h` rounded down (ROUND_DOWN) or to the nearest; `rest` becomes the distance from it. */
#if ROUNDING == 0
#define CELL_AT(cells, h, rest) (cells) + cell_index(h, &(rest))
HELPER int cell_index(float h, float *rest)
{
#if ROUND_DOWN
    const float whole = floor(h);
    *rest = h - whole;
    return (int)whole;
#else
    *rest = 0.0f;
    return (int)(h + 0.5f);
#endif
}
#else
HELPER float cell_shifted(float h, float *rest)
{
#if ROUND_DOWN
    const float shifted = (h - 0.499999f) + TWO_23;
    *rest = h - (shifted - TWO_23);
#else
    const float shifted = h + TWO_23;
    *rest = 0.0f;
#endif
    return shifted;
}
#if ROUNDING == 1
#define CELL_AT(cells, h, rest) (cells) + (as_int(cell_shifted(h, &(rest))) - TWO_23_BITS)
#else
/* size * (2^23 + i) - (size - 1) * 2^23 is 2^23 + size * i: the index in bytes, still in the low bits */
#define CELL_AT(cells, h, rest) \
    (__local const cell_t *)((__local const char *)(cells) + \
        (as_int((float)sizeof(cell_t) * cell_shifted(h, &(rest)) - ((float)sizeof(cell_t) - 1.0f) * TWO_23) - TWO_23_BITS))
#endif
#endif
