/* extend_rows.cl: rows of a whole turn, extended to the slice's diameter and weighted.
 *
 * Defines
 *   GROUP      work-group
 *
 * Layouts
 *   seen       [slice][projection][bin of the detector]
 *   weights    [projection][bin of the detector], or once for all projections
 *   sinograms  [slice][projection][bin]
 */
#ifndef GROUP
#define GROUP 64
#endif

/* Global size: `bins` of an extended row rounded up to GROUP, projections, slices; work-group GROUP. `before` zeros precede
 * the detector's bins; the weights of the next projection follow after `step` values. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void extend_rows(__global const float *restrict seen, __global const float *restrict weights,
                          __global float *restrict sinograms, ulong first, int bins, int detector, int before, int step)
{
    const int bin = get_global_id(0), p = get_global_id(1), projections = get_global_size(1);
    const ulong row = (ulong)get_global_id(2) * projections + p;
    const int at = bin - before;
    if (bin >= bins)
        return;
    float value = 0.0f;
    if (at >= 0 && at < detector)
        value = seen[row * detector + at] * weights[(ulong)p * step + at];
    sinograms[first + row * bins + bin] = value;
}
