/* padding.cl: rows that are continued beyond the detector.
 *
 * Defines
 *   PADDING  0 zero, 1 edge, 2 mirror: what continues a row
 */
#ifndef PADDING
#define PADDING 1
#endif

/* The bin whose value stands at position `x` of a padded row, or -1 for zero. The row fills 0..bins, its continuation to the
 * right the first half of the rest, the one to the left (positions -1, -2, ... from the end) the other half. */
HELPER int padded_bin(int x, int bins, int length)
{
    int i = x;
    if (x >= bins + (length - bins + 1) / 2)
        i = x - length;
#if PADDING == 0
    return i < bins ? max(i, -1) : -1;
#else
#if PADDING == 2
    /* mirrored at one end after the other: beyond short rows there is more than twice their length */
    if (i < 0 || i >= bins) {
        i %= 2 * bins;
        if (i < 0)
            i += 2 * bins;
        i = min(i, 2 * bins - 1 - i);
    }
#endif
    return clamp(i, 0, bins - 1);
#endif
}

/* The value at position `x` of a padded row. */
HELPER float padded(__global const float *row, int x, int bins, int length)
{
    const int i = padded_bin(x, bins, length);
#if PADDING == 0
    return i < 0 ? 0.0f : row[i];
#else
    return row[i];
#endif
}
