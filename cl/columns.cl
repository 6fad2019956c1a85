/* columns.cl: the columns of sinograms, sorted in ascending order and restored.
 *
 * A sinogram is transposed, so that a column is contiguous. A value and its projection are one whole number: the
 * value's bits, changed so that they sort as integers, above the projection's number. So no two are equal, and equal
 * values keep their order. An item of `sort_columns` has eight numbers in registers for up to three steps of a bitonic
 * merge, and all numbers of a column, or of a tile of it, are in local memory between these. The first step of a merge
 * compares the first number with the last, the second with the last but one ..., so all runs ascend.
 *
 * Tiles of a column that is too long for local memory are merged in global memory: how many values of the other run
 * come before a value says where it goes.
 *
 * Defines
 *   POINTS       values of a column, or of a tile of it, that are sorted in local memory: a power of two, at least 8
 *   COLUMNS      columns of a work-group of `sort_columns`, which has POINTS / 8 items for each
 *   INDEX        type of the number of a projection
 *   TILE         side of a tile that is transposed; a work-group has TILE_ROWS rows of items
 *   GROUP        work-group of kernels without local memory
 *
 * Layouts
 *   sinograms    [slice][projection][bin]
 *   columns      [slice][bin][projection]
 *   ranked       [slice][bin][rank]           the columns' values in ascending order
 *   order        [slice][bin][rank]           the projections that they come from
 *   ranks        [slice][bin][projection]     the ranks that these have
 */
#ifndef POINTS
#define POINTS 64
#endif
#ifndef COLUMNS
#define COLUMNS 1
#endif
#ifndef INDEX
#define INDEX ushort
#endif
#ifndef TILE
#define TILE 32
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 8
#endif
#ifndef GROUP
#define GROUP 64
#endif

#define ITEMS (POINTS / 8)
/* Larger than every number of a value and its projection. */
#define NOTHING 0xffffffffffffffffUL
/* Place of a number in local memory, so that neither consecutive numbers nor every eighth share a bank. */
#define AT(i) ((i) + ((i) >> 4))
#define ASCEND(a, b) \
    { \
        const ulong smaller = min(a, b); \
        b = max(a, b); \
        a = smaller; \
    }

/* Images [row][column], made finite, to [column][row].
 * Work-group: TILE, TILE_ROWS. Global size: columns and rows in tiles, slices. */
__kernel __attribute__((reqd_work_group_size(TILE, TILE_ROWS, 1)))
void transpose(__global const float *restrict images, __global float *restrict out, ulong first, ulong first_out,
               int rows, int columns)
{
    /* one more, so that columns are in different banks */
    __local float tile[TILE][TILE + 1];
    const int x = get_local_id(0), left = get_group_id(0) * TILE, top = get_group_id(1) * TILE;
    const ulong image = (ulong)get_global_id(2) * rows * columns;
    for (int y = get_local_id(1); y < TILE; y += TILE_ROWS)
        if (top + y < rows && left + x < columns)
            tile[y][x] = finite_or_0(images[first + image + (ulong)(top + y) * columns + left + x]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int y = get_local_id(1); y < TILE; y += TILE_ROWS)
        if (left + y < columns && top + x < rows)
            out[first_out + image + (ulong)(left + y) * rows + top + x] = tile[x][y];
}

/* Sorts columns of `length` values, or every tile of POINTS values of them. `ranked` may be `columns`. With a single
 * tile `index` gets ranks, otherwise the order within the column.
 * Work-group: ITEMS * COLUMNS. Global size: ITEMS for each bin, rounded up to COLUMNS bins; tiles, slices. */
__kernel __attribute__((reqd_work_group_size(ITEMS * COLUMNS, 1, 1)))
void sort_columns(__global const float *columns, __global float *ranked, __global INDEX *restrict index, ulong first,
                  ulong first_ranked, int bins, int length)
{
    __local ulong numbers[COLUMNS][POINTS + POINTS / 16];
    const int item = get_local_id(0) % ITEMS, which = get_local_id(0) / ITEMS;
    const int bin = get_group_id(0) * COLUMNS + which, start = get_group_id(1) * POINTS;
    const int count = bin < bins ? min(POINTS, length - start) : 0;
    const ulong at = ((ulong)get_global_id(2) * bins + bin) * length + start;
    __local ulong *column = numbers[which];
    ulong v[8];

    for (int i = item; i < POINTS; i += ITEMS)
        column[AT(i)] = i < count ? (ulong)ascending(columns[first + at + i]) << 32 | (uint)(start + i) : NOTHING;
    barrier(CLK_LOCAL_MEM_FENCE);

    /* eight consecutive numbers in registers (Batcher's odd-even merge sort) */
    UNROLL_ALL
    for (int e = 0; e < 8; e++)
        v[e] = column[AT(8 * item + e)];
    UNROLL_ALL
    for (int e = 0; e < 8; e += 4) {
        ASCEND(v[e], v[e + 1])
        ASCEND(v[e + 2], v[e + 3])
        ASCEND(v[e], v[e + 2])
        ASCEND(v[e + 1], v[e + 3])
        ASCEND(v[e + 1], v[e + 2])
    }
    UNROLL_ALL
    for (int e = 0; e < 4; e++)
        ASCEND(v[e], v[e + 4])
    ASCEND(v[2], v[4])
    ASCEND(v[3], v[5])
    ASCEND(v[1], v[2])
    ASCEND(v[3], v[4])
    ASCEND(v[5], v[6])
    UNROLL_ALL
    for (int e = 0; e < 8; e++)
        column[AT(8 * item + e)] = v[e];
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int run = 16; run <= POINTS; run *= 2) {
        /* strides run / 2 to run / 8, the second half backwards, so that its largest address has its first number */
        int stride = run / 8;
        int low = item & (stride - 1), base = 8 * (item - low) + low;
        UNROLL_ALL
        for (int e = 0; e < 8; e++)
            v[e] = column[AT((base + e * stride) ^ (e < 4 ? 0 : run / 2 - 1))];
        UNROLL_ALL
        for (int e = 0; e < 4; e++)
            ASCEND(v[e], v[e + 4])
        ASCEND(v[0], v[2])
        ASCEND(v[1], v[3])
        ASCEND(v[0], v[1])
        ASCEND(v[2], v[3])
        ASCEND(v[6], v[4])
        ASCEND(v[7], v[5])
        ASCEND(v[5], v[4])
        ASCEND(v[7], v[6])
        UNROLL_ALL
        for (int e = 0; e < 8; e++)
            column[AT((base + e * stride) ^ (e < 4 ? 0 : run / 2 - 1))] = v[e];
        barrier(CLK_LOCAL_MEM_FENCE);

        /* the smaller ones, up to three at a time; the last are 4, 2 and 1 */
        stride = 1;
        while (stride * 8 <= run / 16)
            stride *= 8;
        for (; stride > 0; stride /= 8) {
            low = item & (stride - 1);
            base = 8 * (item - low) + low;
            UNROLL_ALL
            for (int e = 0; e < 8; e++)
                v[e] = column[AT(base + e * stride)];
            if (stride * 4 <= run / 16) {
                UNROLL_ALL
                for (int e = 0; e < 4; e++)
                    ASCEND(v[e], v[e + 4])
            }
            if (stride * 2 <= run / 16) {
                UNROLL_ALL
                for (int e = 0; e < 8; e += 4) {
                    ASCEND(v[e], v[e + 2])
                    ASCEND(v[e + 1], v[e + 3])
                }
            }
            UNROLL_ALL
            for (int e = 0; e < 8; e += 2)
                ASCEND(v[e], v[e + 1])
            UNROLL_ALL
            for (int e = 0; e < 8; e++)
                column[AT(base + e * stride)] = v[e];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

    for (int i = item; i < count; i += ITEMS)
        ranked[first_ranked + at + i] = from_ascending((uint)(column[AT(i)] >> 32));
    if (length <= POINTS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL_ALL
        for (int e = 0; e < 8; e++)
            if (8 * item + e < count)
                column[AT((uint)v[e])] = 8 * item + e;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = item; i < count; i += ITEMS)
        index[at + i] = (INDEX)(uint)column[AT(i)];
}

/* Merges pairs of sorted runs of `run` values of columns. `index` is their order, and becomes that of the merged runs,
 * or, if they are the complete columns, the ranks.
 * Work-group: GROUP. Global size: values of a column rounded up, any number for the bins, slices. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void merge_runs(__global const float *restrict ranked, __global float *restrict out,
                __global const INDEX *restrict index, __global INDEX *restrict index_out, ulong first,
                ulong first_out, int bins, int length, int run)
{
    const int i = get_global_id(0), start = i / run / 2 * run * 2;
    const bool is_left = i < start + run, is_last = 2 * (long)run >= length;
    if (i >= length)
        return;
    for (int bin = get_global_id(1); bin < bins; bin += get_global_size(1)) {
        const ulong at = ((ulong)get_global_id(2) * bins + bin) * length;
        __global const float *column = ranked + first + at;
        const float value = column[i];
        const uint number = ascending(value);
        /* values of the other run before this one; of equal ones those on the left come first */
        const int other = is_left ? min(start + run, length) : start, end = min(other + run, length);
        int low = other, high = end;
        while (low < high) {
            const int middle = low + (high - low) / 2;
            const uint there = ascending(column[middle]);
            if (there < number || (!is_left && there == number))
                low = middle + 1;
            else
                high = middle;
        }
        const int to = (is_left ? i : i - run) + low - other;
        const INDEX projection = index[at + i];
        out[first_out + at + to] = value;
        if (is_last)
            index_out[at + projection] = (INDEX)to;
        else
            index_out[at + to] = projection;
    }
}

/* Values in ascending order back to sinograms, made finite; added to what is there with `add`.
 * Work-group: TILE, TILE_ROWS. Global size: bins and projections in tiles, slices. */
__kernel __attribute__((reqd_work_group_size(TILE, TILE_ROWS, 1)))
void restore(__global const float *restrict ranked, __global const INDEX *restrict ranks,
             __global float *restrict sinograms, ulong first, ulong first_out, int bins, int length, int add)
{
    __local float tile[TILE][TILE + 1];
    const int x = get_local_id(0), left = get_group_id(0) * TILE, top = get_group_id(1) * TILE;
    const ulong image = (ulong)get_global_id(2) * bins * length;
    for (int y = get_local_id(1); y < TILE; y += TILE_ROWS)
        if (left + y < bins && top + x < length) {
            const ulong column = image + (ulong)(left + y) * length;
            tile[y][x] = ranked[first + column + ranks[column + top + x]];
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int y = get_local_id(1); y < TILE; y += TILE_ROWS)
        if (left + x < bins && top + y < length) {
            __global float *to = sinograms + first_out + image + (ulong)(top + y) * bins + left + x;
            *to = finite_or_0(add ? *to + tile[x][y] : tile[x][y]);
        }
}

/* Columns in ascending order times a factor plus a summand, which keeps their order, or, where the factor is negative,
 * replaced by `smooth`, which is in this order, too. `corrections` is [slice][bin]: the factor and what rounding took from
 * it, and the same of the summand, so that nearly all values are those of double precision.
 * Work-group: GROUP. Global size: values of a column rounded up, any number for the bins, slices. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void correct(__global float *restrict ranked, __global const float *restrict smooth,
             __global const float4 *restrict corrections, ulong first, ulong first_smooth, int bins, int length)
{
#pragma OPENCL FP_CONTRACT OFF
    const int i = get_global_id(0);
    if (i >= length)
        return;
    for (int bin = get_global_id(1); bin < bins; bin += get_global_size(1)) {
        const ulong column = ((ulong)get_global_id(2) * bins + bin) * length;
        const float4 correction = corrections[get_global_id(2) * bins + bin];
        __global float *value = ranked + first + column + i;
        if (correction.x < 0.0f)
            *value = smooth[first_smooth + column + i];
        else {
            const float product = *value * correction.x, rest = fma(*value, correction.x, -product);
            const float sum = product + correction.z, added = sum - product;
            *value = sum + ((product - (sum - added)) + (correction.z - added)
                            + (rest + *value * correction.y + correction.w));
        }
    }
}
