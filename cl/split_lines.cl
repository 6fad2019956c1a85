/* split_lines.cl: lines of images in the iterations of least squares with a total variation (docs/least-squares.md).
 *
 * An image has SIDE x SIDE real values. Its rows y and y + SIDE / 2 are the real and the imaginary part of one complex row,
 * so that rows need half of the transforms. Before columns are transformed, the two are taken apart with the opposite
 * frequency of the row; column 0 to LENGTH / 2 are enough for real images. With LENGTH 2 SIDE, images are
 * zero beyond SIDE in rows and columns.
 *
 * Defines, beside those of transform_row.cl and split_state.cl: LENGTH is that of a row and a column, SIDE or twice that
 *   LINES     pairs of rows of a work-group, or columns, which are its first dimension
 *   COLUMNS   1 the kernel for columns, 0 those for rows
 *
 * Layouts, each with SIDE x SIDE values for every slice unless it says so
 *   images    [slice][y][x] float: `image` is the slice f, `projected` Q f, `bounded` its bounded part with the multiplier
 *   split     [slice][y][x] float2: the gradient that was split off, with its multiplier, along x and y
 *   spectra   [slice][y < SIDE / 2][frequency < LENGTH] float2
 *   response  [frequency along x <= LENGTH / 2][frequency along y < LENGTH] float, the spectrum of a kernel
 *   disc      [y] first pixel that may differ from 0, and the first behind these
 *   weights   see split_state.cl
 *   state     see split_state.cl
 *   sums      [slice][work-group] float2
 *   turns     see transform_row.cl
 */
#ifndef LINES
#define LINES 1
#endif
#ifndef COLUMNS
#define COLUMNS 0
#endif
#define PADDED (LENGTH / SIDE)
#define PAIRS (SIDE / 2)
#define ONE_BY_ONE PRAGMA(unroll 1)
/* Values of a row that an item holds and that are not padding, and half of those of a column. */
#define KEPT (POINTS / PADDED)
#define HALF (KEPT / 2)

#if COLUMNS
/* The sum of the items of a work-group, always in the same order; item 0 has it. */
HELPER float2 sum_of_group(float2 value, __local float *room)
{
    const int items = get_local_size(0) * get_local_size(1), item = get_local_id(1) * get_local_size(0) + get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    vstore2(value, item, room);
    for (int step = items / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < step)
            vstore2(vload2(item, room) + vload2(item + step, room), item, room);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return vload2(0, room);
}

/* Work-group: LINES, LENGTH / 16. Global size: LENGTH / 2 + 1 columns rounded up to LINES, LENGTH / 16, slices.
 *
 * With LENGTH 2 SIDE it multiplies by `response`, which contains the scale of both transforms, and sums d Q d. Otherwise it applies the
 * inverse of `response`, plus the Laplacian times its weight, plus the least eigenvalue, and sums r d, and the Laplacian's and the
 * bounds' part of the curvature; `laplacian` has 2 - 2 cos of every frequency. */
__kernel __attribute__((reqd_work_group_size(LINES, ROW_ITEMS, 1)))
void transform_split_columns(__global float2 *restrict spectra, __global const float *restrict response,
                             __global const float *restrict laplacian, __global const float2 *restrict turns,
                             __global const float *restrict weights, __global const float4 *restrict state,
                             __global float2 *restrict sums, float scale)
{
    __local exchanged_t rooms[ROW_ROOM * ROOM_STRIDE];
    __local exchanged_t *room = rooms + get_local_id(0) % ROOM_STRIDE;
    const int item = get_local_id(1), x = get_global_id(0), slice = get_global_id(2);
    if (HAS_ENDED(state[slice]))
        return;
    const bool exists = x <= LENGTH / 2;
    const int opposite = (LENGTH - x) % LENGTH;
    __global float2 *rows = spectra + (ulong)slice * PAIRS * LENGTH;
    float2 v[POINTS];
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        v[n] = (float2)(0.0f, 0.0f);
    if (exists)
        UNROLL_ALL
        for (int n = 0; n < HALF; n++) {
            __global const float2 *row = rows + (item + n * ROW_ITEMS) * LENGTH;
            const float2 a = row[x], b = row[opposite];
            v[n] = 0.5f * (float2)(a.x + b.x, a.y - b.y);
            v[n + HALF] = 0.5f * (float2)(a.y + b.y, b.x - a.x);
        }
    transform_row(v, room, turns, item, -1.0f);
#if PADDED == 1
    const slice_weights_t own = weights_of(weights, slice);
#endif
    float2 sum = (float2)(0.0f, 0.0f);
    if (exists)
        UNROLL_ALL
        for (int n = 0; n < POINTS; n++) {
            const int y = item + n * ROW_ITEMS;
            const float squares = dot(v[n], v[n]);
#if PADDED == 1
            const float of_gradient = own.gradient * (laplacian[x] + laplacian[y]);
            const float factor = 1.0f / (response[x * LENGTH + y] + of_gradient + own.least_eigenvalue);
            sum += scale * squares * factor * (float2)(1.0f, factor * (of_gradient + own.bounds));
            v[n] *= scale * factor;
#else
            const float factor = response[x * LENGTH + y];
            sum.x += factor * squares;
            v[n] *= factor;
#endif
        }
    transform_row(v, room, turns, item, 1.0f);
    if (exists)
        UNROLL_ALL
        for (int n = 0; n < HALF; n++) {
            __global float2 *row = rows + (item + n * ROW_ITEMS) * LENGTH;
            const float2 a = v[n], b = v[n + HALF];
            row[x] = (float2)(a.x - b.y, a.y + b.x);
            if (x != opposite)
                row[opposite] = (float2)(a.x + b.y, b.x - a.y);
        }
    /* all other frequencies stand for their opposite, too */
    sum = sum_of_group(x == opposite ? sum : 2.0f * sum, (__local float *)rooms);
    if (get_local_id(0) == 0 && item == 0)
        sums[slice * get_num_groups(0) + get_group_id(0)] = sum;
}
#else

HELPER int place_of(int y, int x)
{
    return y * SIDE + x;
}

/* The two rows of a pair are transformed in place. */
HELPER void store_spectra(float2 *v, __global float2 *spectra, int pair, int slice, int item)
{
    __global float2 *to = spectra + ((ulong)slice * PAIRS + pair) * LENGTH;
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        to[item + n * ROW_ITEMS] = v[n];
}

HELPER void restore_rows(float2 *v, __global const float2 *spectra, __local exchanged_t *room,
                         __global const float2 *restrict turns, int pair, int slice, int item)
{
    __global const float2 *from = spectra + ((ulong)slice * PAIRS + pair) * LENGTH;
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        v[n] = from[item + n * ROW_ITEMS];
    transform_row(v, room, turns, item, 1.0f);
}

/* Of each kernel for rows: work-group LENGTH / 16, LINES; global size LENGTH / 16, SIDE / 2, slices. Slices that have ended are
 * left as they are. */
#define ROWS_KERNEL __kernel __attribute__((reqd_work_group_size(ROW_ITEMS, LINES, 1)))
#define ROWS_OF_SLICE                                                              \
    __local exchanged_t rooms[LINES * ROW_ROOM];                                   \
    __local exchanged_t *room = rooms + get_local_id(1) * ROW_ROOM;                \
    const int item = get_local_id(0), pair = get_global_id(1), slice = get_global_id(2); \
    const ulong own_slice = (ulong)slice * SIDE * SIDE;                            \
    if (HAS_ENDED(state[slice]))                                                   \
        return;

/* Images to spectra. */
ROWS_KERNEL
void transform_split_rows(__global const float *restrict images, __global float2 *restrict spectra,
                          __global const float2 *restrict turns, __global const float4 *restrict state)
{
    ROWS_OF_SLICE
    float2 v[POINTS];
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++) {
        __global const float *at = images + own_slice + place_of(pair, item + n * ROW_ITEMS);
        v[n] = n < KEPT ? (float2)(at[0], at[PAIRS * SIDE]) : (float2)(0.0f, 0.0f);
    }
    transform_row(v, room, turns, item, -1.0f);
    store_spectra(v, spectra, pair, slice, item);
}

/* Spectra to images. */
ROWS_KERNEL
void restore_split_rows(__global const float2 *restrict spectra, __global float *restrict images,
                        __global const float2 *restrict turns, __global const float4 *restrict state)
{
    ROWS_OF_SLICE
    float2 v[POINTS];
    restore_rows(v, spectra, room, turns, pair, slice, item);
    UNROLL_ALL
    for (int n = 0; n < KEPT; n++) {
        __global float *at = images + own_slice + place_of(pair, item + n * ROW_ITEMS);
        at[0] = v[n].x;
        at[PAIRS * SIDE] = v[n].y;
    }
}

#if PADDED == 1
/* What was split off, z, without its multiplier u and the slice's own gradient. Before the first iteration, z is that gradient and
 * `split` has u; later it has z + u, of which z is what remains. */
HELPER float2 split_residual(__global const float *image, __global const float2 *split, slice_weights_t own, int number, int y, int x)
{
    const float2 t = split[place_of(y, x)];
    return number == 0 ? -t : 2.0f * shrunk(t, own) - t - gradient_at(image, y, x);
}

/* Transforms the residual of the step along the slice: b - Q f + rho times the divergence of what split_residual returns + nu times the
 * same of the bounds. */
ROWS_KERNEL
void transform_residuals(__global const int2 *restrict disc, __global const float *restrict data,
                         __global const float *restrict images, __global const float *restrict projected,
                         __global const float *restrict bounded, __global const float2 *restrict splits,
                         __global const float *restrict weights, __global const float4 *restrict state,
                         __global float2 *restrict spectra, __global const float2 *restrict turns, int number)
{
    ROWS_OF_SLICE
    const slice_weights_t own = weights_of(weights, slice);
    __global const float *image = images + own_slice;
    __global const float2 *split = splits + own_slice;
    /* one value after the other, through places that the item alone uses: with all of them in flight, registers do not suffice */
    __local float *own_values = (__local float *)room + item * POINTS;
    float2 v[POINTS];
    UNROLL_ALL
    for (int part = 0; part < 2; part++) {
        const int y = pair + part * PAIRS, above = (y + SIDE - 1) % SIDE;
        const int2 inside = disc[y];
        ONE_BY_ONE
        for (int n = 0; n < POINTS; n++) {
            const int x = item + n * ROW_ITEMS, place = place_of(y, x), left = (x + SIDE - 1) % SIDE;
            const float2 here = split_residual(image, split, own, number, y, x);
            const float divergence = split_residual(image, split, own, number, y, left).x - here.x +
                                     split_residual(image, split, own, number, above, x).y - here.y;
            const float t = bounded[own_slice + place];
            const float outside = 2.0f * within_bounds(t, inside, x, own) - t - image[place];
            own_values[(n + item) % POINTS] =
                data[own_slice + place] - projected[own_slice + place] + own.gradient * divergence + own.bounds * outside;
        }
        UNROLL_ALL
        for (int n = 0; n < POINTS; n++)
            if (part == 0)
                v[n].x = own_values[(n + item) % POINTS];
            else
                v[n].y = own_values[(n + item) % POINTS];
    }
    transform_row(v, room, turns, item, -1.0f);
    store_spectra(v, spectra, pair, slice, item);
}
#else
/* Moves slices along their directions, whose projections the spectra are of, with all that follows; sums the squares of the
 * changes of what is within bounds, for every pair of rows. */
ROWS_KERNEL
void advance_slices(__global const int2 *restrict disc, __global const float2 *restrict spectra,
                    __global const float *restrict directions, __global float *restrict images,
                    __global float *restrict projected, __global float *restrict bounded, __global const float *restrict weights,
                    __global const float4 *restrict state, __global float *restrict changes,
                    __global const float2 *restrict turns, float relax)
{
    ROWS_OF_SLICE
    const slice_weights_t own = weights_of(weights, slice);
    const float step = STEP(state[slice]);
    float2 v[POINTS];
    restore_rows(v, spectra, room, turns, pair, slice, item);
    float changed = 0.0f;
    UNROLL_ALL
    for (int n = 0; n < KEPT; n++)
        UNROLL_ALL
        for (int part = 0; part < 2; part++) {
            const int x = item + n * ROW_ITEMS, y = pair + part * PAIRS;
            const ulong place = own_slice + place_of(y, x);
            const float f = images[place] + step * directions[place], t = bounded[place];
            const float before = within_bounds(t, disc[y], x, own), after = t + relax * (f - before);
            const float change = within_bounds(after, disc[y], x, own) - before;
            images[place] = f;
            projected[place] += step * (part == 0 ? v[n].x : v[n].y);
            bounded[place] = after;
            changed += change * change;
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    __local float *parts = (__local float *)room;
    parts[item] = changed;
    for (int count = ROW_ITEMS / 2; count > 0; count /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < count)
            parts[item] += parts[item + count];
    }
    if (item == 0)
        changes[slice * PAIRS + pair] = parts[0];
}
#endif
#endif
