/* sinograms.cl: what kernels that correct sinograms have in common.
 *
 * Layouts
 *   values   [value], from value `first` on
 */

/* The value, or 0 if it is infinite or no number. */
HELPER float finite_or_0(float value)
{
    return isfinite(value) ? value : 0.0f;
}

/* Index `i` of a line of `count` values that is mirrored at its ends; the outermost values are repeated. */
HELPER int mirrored(int i, int count)
{
    if (i < 0 || i >= count) {
        i %= 2 * count;
        if (i < 0)
            i += 2 * count;
        i = min(i, 2 * count - 1 - i);
    }
    return i;
}

/* Global size: values. */
__kernel void make_finite(__global float *values, ulong first)
{
    const ulong i = first + get_global_id(0);
    values[i] = finite_or_0(values[i]);
}
