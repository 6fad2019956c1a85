/* transposed_medians.cl: running medians across the columns of transposed images.
 *
 * An item follows one row, from column to column. Neighbouring items have neighbouring rows, which are contiguous, and
 * a value that leaves the window is read a second time. Values are compared as integers with the order of the floats.
 *
 * `slide_medians` has the sorted window in registers; it suits small windows. `follow_medians` has the median, and how
 * many values of the window are smaller and equal; where the median moves, it finds the next one in the window.
 *
 * Defines
 *   WINDOW   columns of the window of `slide_medians`, odd
 *   GROUP    work-group
 *
 * Layouts
 *   values, out   [slice][column][row]; columns are mirrored at both ends
 */
#ifndef WINDOW
#define WINDOW 5
#endif
#ifndef GROUP
#define GROUP 64
#endif

#define REACH (WINDOW / 2)

/* Value of column `column` of the row that starts at `row`. */
HELPER uint value_at(__global const float *row, int column, int columns, int rows)
{
    return ascending(row[(ulong)mirrored(column, columns) * rows]);
}

/* Work-group: GROUP. Global size: rows rounded up, segments of `segment` columns, slices. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void slide_medians(__global const float *restrict values, __global float *restrict out, ulong first, ulong first_out,
                   int columns, int rows, int segment)
{
    const int start = get_global_id(1) * segment, end = min(start + segment, columns);
    if ((int)get_global_id(0) >= rows)
        return;
    const ulong at = (ulong)get_global_id(2) * columns * rows + get_global_id(0);
    __global const float *row = values + first + at;
    __global float *to = out + first_out + at;
    uint window[WINDOW];
    UNROLL_ALL
    for (int i = 0; i < WINDOW; i++)
        window[i] = 0xffffffffu;
    for (int column = start - REACH; column <= start + REACH; column++) {
        const uint come = value_at(row, column, columns, rows);
        UNROLL_ALL
        for (int i = WINDOW - 1; i > 0; i--)
            window[i] = max(window[i - 1], min(window[i], come));
        window[0] = min(window[0], come);
    }
    for (int column = start; column < end; column++) {
        const uint gone = value_at(row, column - REACH, columns, rows);
        const uint come = value_at(row, column + REACH + 1, columns, rows);
        to[(ulong)column * rows] = from_ascending(window[REACH]);
        /* values from the one that goes on move down, then those above the one that comes move up */
        uint before = window[0] < gone ? window[0] : window[1];
        window[0] = min(before, come);
        UNROLL_ALL
        for (int i = 1; i < WINDOW - 1; i++) {
            const uint now = window[i] < gone ? window[i] : window[i + 1];
            window[i] = max(before, min(now, come));
            before = now;
        }
        window[WINDOW - 1] = max(before, come);
    }
}

/* Windows of any odd `size`. Work-group and global size as above. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void follow_medians(__global const float *restrict values, __global float *restrict out, ulong first, ulong first_out,
                    int columns, int rows, int segment, int size)
{
    const int start = get_global_id(1) * segment, end = min(start + segment, columns), reach = size / 2;
    if ((int)get_global_id(0) >= rows || start >= end)
        return;
    const ulong at = (ulong)get_global_id(2) * columns * rows + get_global_id(0);
    __global const float *row = values + first + at;
    __global float *to = out + first_out + at;

    /* the first median, bit by bit from the highest: at most `reach` values are smaller */
    uint median = 0;
    for (uint bit = 0x80000000u; bit > 0; bit >>= 1) {
        int below = 0;
        for (int column = start - reach; column <= start + reach; column++)
            below += value_at(row, column, columns, rows) < (median | bit);
        if (below <= reach)
            median |= bit;
    }
    int smaller = 0, equal = 0;
    for (int column = start - reach; column <= start + reach; column++) {
        const uint value = value_at(row, column, columns, rows);
        smaller += value < median;
        equal += value == median;
    }

    for (int column = start; column < end; column++) {
        to[(ulong)column * rows] = from_ascending(median);
        const uint gone = value_at(row, column - reach, columns, rows);
        const uint come = value_at(row, column + reach + 1, columns, rows);
        smaller += (come < median) - (gone < median);
        equal += (come == median) - (gone == median);
        const bool down = smaller > reach, up = smaller + equal <= reach;
        if (!down && !up)
            continue;
        /* the nearest value on one side, and how many there are; above the median in reverse order */
        const uint limit = up ? ~median : median;
        uint nearest = 0;
        int count = 0;
        for (int other = column - reach + 1; other <= column + reach + 1; other++) {
            const uint value = value_at(row, other, columns, rows), number = up ? ~value : value;
            if (number < limit) {
                const bool is_nearer = count == 0 || number > nearest;
                count = is_nearer ? 1 : count + (number == nearest);
                nearest = is_nearer ? number : nearest;
            }
        }
        smaller = up ? smaller + equal : smaller - count;
        equal = count;
        median = up ? ~nearest : nearest;
    }
}
