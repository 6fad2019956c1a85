/* remove_outliers.cl: pixels that differ too much from the median of their neighbourhood are replaced by it.
 *
 * A work-group takes GROUP bins of ROWS rows of a projection, with what is around them, into local memory; an item goes
 * down a column. A pixel is compared with the median without computing that: differences to the pixel rise as values fall,
 * in rounded arithmetic, too. So a pixel is brighter than the median by more than the threshold if it is brighter by more
 * than the threshold than more than half of the values. Most pixels fail a condition for that: at least one of the values
 * before the pixel must be among these, because less than half come after it. Likewise for dark ones.
 *
 * Defines, beside those of samples.cl
 *   SIZE        rows and bins of a neighbourhood, an odd number
 *   BOTH        1 dark pixels are replaced, too
 *   SATURATION  1 saturated samples are counted
 *   GROUP       work-group
 *   ROWS        most rows of a work-group
 *
 * Layouts
 *   samples  [projection][row that was read][bin]
 *   values   [projection][wanted row][bin]
 *   counts   [row] {replaced, saturated}
 */
#ifndef SIZE
#define SIZE 3
#endif
#ifndef BOTH
#define BOTH 0
#endif
#ifndef SATURATION
#define SATURATION 1
#endif
#ifndef GROUP
#define GROUP 64
#endif
#ifndef ROWS
#define ROWS 16
#endif

#define REACH (SIZE / 2)
#define WIDTH (GROUP + 2 * REACH)

/* A place beyond either end, mirrored with the outermost value repeated. */
HELPER int mirrored(int place, int length)
{
    if (place >= 0 && place < length)
        return place;
    int folded = place % (2 * length);
    folded += folded < 0 ? 2 * length : 0;
    return min(folded, 2 * length - 1 - folded);
}

/* Whether the pixel in the middle differs from the median by more than the threshold. */
HELPER bool is_outlier(__local const float *corner, float threshold)
{
    const float pixel = corner[REACH * WIDTH + REACH];
    int darker = 0, brighter = 0;
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++) {
            const float excess = pixel - corner[y * WIDTH + x];
            darker += excess > threshold;
            brighter += BOTH & (-excess > threshold);
        }
    return max(darker, brighter) > SIZE * SIZE / 2;
}

#if SIZE == 3
HELPER float middle(float a, float b, float c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* The median of a neighbourhood: columns in order, then the middle of the largest low, the middle and the smallest high
 * value. */
HELPER float median_from(__local const float *corner)
{
    float low = -INFINITY, centre[3], high = INFINITY;
    for (int x = 0; x < 3; x++) {
        const float a = corner[x], b = corner[WIDTH + x], c = corner[2 * WIDTH + x];
        const float less = fmin(a, b), more = fmax(a, b);
        low = fmax(low, fmin(less, c));
        centre[x] = fmax(less, fmin(more, c));
        high = fmin(high, fmax(more, c));
    }
    return middle(low, middle(centre[0], centre[1], centre[2]), high);
}
#else
/* The median of a neighbourhood: bit by bit the largest number that at most half of the values are less than. Bits that
 * all values share are known. */
HELPER float median_from(__local const float *corner)
{
    const uint first = ascending(corner[0]);
    uint differing = 0;
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++)
            differing |= ascending(corner[y * WIDTH + x]) ^ first;
    uint key = first & ~differing;
    while (differing != 0) {
        const uint bit = 1u << (31 - clz(differing));
        differing ^= bit;
        int less = 0;
        for (int y = 0; y < SIZE; y++)
            for (int x = 0; x < SIZE; x++)
                less += ascending(corner[y * WIDTH + x]) < (key | bit);
        key |= less <= SIZE * SIZE / 2 ? bit : 0;
    }
    return from_ascending(key);
}
#endif

/* The lowest and the highest of some values. */
typedef struct {
    float low, high;
} extremes_t;

/* With more values between two others. */
HELPER extremes_t extremes(extremes_t some, float low, float high)
{
    const extremes_t all = {fmin(some.low, low), fmax(some.high, high)};
    return all;
}

/* Global size: bins rounded up to GROUP, projections, wanted rows divided by ROWS; work-group GROUP. `read`, `wanted` and
 * `counted` are rows of the detector, first and first after them, of its `height`; counts of the last are those from
 * `first_row` on. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void remove_outliers(__global const stored_t *restrict samples, __global float *restrict values,
                     __global uint *restrict counts, int bins, int height, int2 read, int2 wanted, int2 counted,
                     int first_row, float threshold, float saturation)
{
    __local float tile[(ROWS + 2 * REACH) * WIDTH];
    __local uint found[2 * ROWS];
    const int item = get_local_id(0), first_bin = get_group_id(0) * GROUP;
    const ulong p = get_global_id(1);
    const int done = get_global_id(2) * ROWS, rows = min(ROWS, wanted.y - wanted.x - done);
    __global const stored_t *frame = samples + p * (read.y - read.x) * bins;
    __global float *out = values + (p * (wanted.y - wanted.x) + done) * bins;
    for (int i = item; i < 2 * ROWS; i += GROUP)
        found[i] = 0;
    for (int i = item; i < (rows + 2 * REACH) * WIDTH; i += GROUP) {
        const int row = mirrored(wanted.x + done - REACH + i / WIDTH, height);
        const int bin = mirrored(first_bin - REACH + i % WIDTH, bins);
        tile[i] = sample_value(frame[(ulong)(row - read.x) * bins + bin]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int bin = first_bin + item;
    if (bin < bins) {
        /* of the last rows */
        extremes_t above[REACH];
        const extremes_t none = {INFINITY, -INFINITY};
        UNROLL_ALL
        for (int i = 0; i < REACH; i++)
            above[i] = none;
        for (int y = 0; y < rows + REACH; y++) {
            __local const float *line = tile + y * WIDTH + item;
            extremes_t all = none;
            UNROLL_ALL
            for (int x = 0; x < REACH; x++)
                all = extremes(all, line[x], line[x]);
            const float pixel = line[REACH];
            if (y >= REACH) {
                extremes_t before = all;
                UNROLL_ALL
                for (int i = 0; i < REACH; i++)
                    before = extremes(before, above[i].low, above[i].high);
                __local const float *corner = line - REACH * WIDTH;
                const int row = y - REACH;
                const bool suspicious = (pixel - before.low > threshold) | (BOTH & (before.high - pixel > threshold));
                const bool replaced = suspicious && is_outlier(corner, threshold);
                out[(ulong)row * bins + bin] = replaced ? median_from(corner) : pixel;
                if (replaced)
                    atomic_inc(found + 2 * row);
                if (SATURATION && pixel >= saturation)
                    atomic_inc(found + 2 * row + 1);
            }
            UNROLL_ALL
            for (int x = REACH; x < SIZE; x++)
                all = extremes(all, line[x], line[x]);
            UNROLL_ALL
            for (int i = REACH - 1; i > 0; i--)
                above[i] = above[i - 1];
            above[0] = all;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < 2 * rows; i += GROUP) {
        const int row = wanted.x + done + i / 2;
        if (found[i] > 0 && row >= counted.x && row < counted.y)
            atomic_add(counts + 2 * (first_row + row - counted.x) + i % 2, found[i]);
    }
}
