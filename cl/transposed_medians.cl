/* transposed_medians.cl: running medians across the columns of transposed images.
 *
 * An item follows one row, from column to column. Neighbouring items have neighbouring rows, which are contiguous, and
 * a value that leaves the window is read a second time.
 *
 * Defines
 *   GROUP    work-group
 *   and those of median.cl, with TRANSPOSED 1
 *
 * Layouts
 *   values, out   [slice][column][row]; columns are mirrored at both ends
 */
#ifndef GROUP
#define GROUP 64
#endif

/* Work-group: GROUP. Global size: rows rounded up, segments of `segment` columns, slices. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void transposed_medians(__global const float *restrict values, __global float *restrict out, ulong first,
                        ulong first_out, int columns, int rows, int segment)
{
    const int start = get_global_id(1) * segment, end = min(start + segment, columns);
    if ((int)get_global_id(0) >= rows)
        return;
    const ulong at = (ulong)get_global_id(2) * columns * rows + get_global_id(0);
    const line_t row = {values + first + at, columns, rows};
    __global float *to = out + first_out + at;
    window_t window;
    fill_window(&window, row, start - SIZE / 2);
    for (int column = start; column < end; column++) {
        to[(ulong)column * rows] = median_of(&window);
        move_window(&window, row, column - SIZE / 2);
    }
}
