/* extend_rows.cl: rows of a whole turn, extended to the slice's diameter and weighted.
 *
 * Layouts
 *   seen       [slice][projection][bin of the detector]
 *   weights    [projection][bin of the detector], or once for all projections
 *   sinograms  [slice][projection][bin]
 */

/* Global size: bins of an extended row, projections, slices. `before` zeros precede the detector's bins; the weights of the
 * next projection follow after `step` values. */
__kernel void extend_rows(__global const float *restrict seen, __global const float *restrict weights,
                          __global float *restrict sinograms, ulong first, int detector, int before, int step)
{
    const int bin = get_global_id(0), p = get_global_id(1), projections = get_global_size(1);
    const ulong row = (ulong)get_global_id(2) * projections + p;
    const int at = bin - before;
    float value = 0.0f;
    if (at >= 0 && at < detector)
        value = seen[row * detector + at] * weights[(ulong)p * step + at];
    sinograms[first + row * get_global_size(0) + bin] = value;
}
