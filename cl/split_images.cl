/* split_images.cl: images of least squares with a total variation, pixel by pixel (docs/least-squares.md).
 *
 * Defines, beside those of split_state.cl
 *   GROUP  work-items of a work-group, a power of 2, at most SIDE
 *
 * Layouts: see split_lines.cl, and
 *   sums   [slice][y] float2, of each row of an image
 *   parts  [slice][part] float2 or float, `count` of them
 */
#ifndef GROUP
#define GROUP 64
#endif

/* The sum of the items of a work-group, always in the same order. */
HELPER float2 sum_of_items(float2 value, __local float2 *room)
{
    const int item = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    room[item] = value;
    for (int step = GROUP / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < step)
            room[item] += room[item + step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return room[0];
}

#define OF_GROUP __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))

/* Neighbouring bins become one, which is their mean. Global size: bins of all halved rows, rounded up to GROUP. */
OF_GROUP
void halve_rows(__global const float *restrict rows, __global float *restrict halved, ulong first, ulong count)
{
    const ulong i = get_global_id(0);
    if (i < count)
        halved[i] = 0.5f * (rows[first + 2 * i] + rows[first + 2 * i + 1]);
}

/* Sets pixels outside the disc to 0, and sums what remains and its squares. Global size: GROUP, SIDE, slices. */
OF_GROUP
void keep_disc(__global const int2 *restrict disc, __global float *restrict images, __global float2 *restrict sums)
{
    __local float2 room[GROUP];
    const int y = get_global_id(1), slice = get_global_id(2);
    __global float *row = images + ((ulong)slice * SIDE + y) * SIDE;
    float2 sum = (float2)(0.0f, 0.0f);
    for (int x = get_local_id(0); x < SIDE; x += GROUP) {
        const float value = x >= disc[y].x && x < disc[y].y ? row[x] : 0.0f;
        row[x] = value;
        sum += (float2)(value, value * value);
    }
    sum = sum_of_items(sum, room);
    if (get_local_id(0) == 0)
        sums[slice * SIDE + y] = sum;
}

/* Stores images within their bounds. Global size: SIDE, SIDE, slices. */
OF_GROUP
void bound_images(__global const int2 *restrict disc, __global const float *restrict images, __global float *restrict bounded,
                  __global const float *restrict weights)
{
    const int x = get_global_id(0), y = get_global_id(1), slice = get_global_id(2);
    const ulong place = ((ulong)slice * SIDE + y) * SIDE + x;
    bounded[place] = within_bounds(images[place], disc[y], x, weights_of(weights, slice));
}

/* Sets split gradients and multipliers to 0. Global size as above. */
OF_GROUP
void clear_split(__global float2 *restrict splits)
{
    const int x = get_global_id(0), y = get_global_id(1), slice = get_global_id(2);
    splits[((ulong)slice * SIDE + y) * SIDE + x] = (float2)(0.0f, 0.0f);
}

/* Updates the split gradients after the step of iteration `number`: in the first one they have the multiplier alone, and what was
 * split off is the gradient of the slice before its step. Global size as above. */
OF_GROUP
void move_split(__global const float *restrict images, __global const float *restrict directions,
                __global float2 *restrict splits, __global const float *restrict weights,
                __global const float4 *restrict state, float relax, int number)
{
    const int x = get_global_id(0), y = get_global_id(1), slice = get_global_id(2);
    const ulong own_slice = (ulong)slice * SIDE * SIDE;
    if (HAS_ENDED(state[slice]))
        return;
    __global float2 *at = splits + own_slice + y * SIDE + x;
    const float2 t = at[0], gradient = gradient_at(images + own_slice, y, x);
    if (number == 0)
        at[0] = t + gradient - (1.0f - relax) * STEP(state[slice]) * gradient_at(directions + own_slice, y, x);
    else
        at[0] = t + relax * (gradient - shrunk(t, weights_of(weights, slice)));
}

/* Replaces the sums of gradients and multipliers by the multipliers, in units of what gradients lose. Global size as above. */
OF_GROUP
void keep_multipliers(__global float2 *restrict split, __global const float *restrict weights)
{
    const int x = get_global_id(0), y = get_global_id(1), slice = get_global_id(2);
    const slice_weights_t own = weights_of(weights, slice);
    __global float2 *at = split + ((ulong)slice * SIDE + y) * SIDE + x;
    at[0] = own.loss > 0.0f ? (at[0] - shrunk(at[0], own)) / own.loss : (float2)(0.0f, 0.0f);
}

/* Images of half the side, whose pixels have so many `values`, by linear interpolation around the torus, times the weight with this
 * number. Global size: SIDE times values, SIDE, slices. */
OF_GROUP
void double_images(__global const float *restrict images, __global float *restrict doubled,
                   __global const float *restrict weights, int values, int weight)
{
    const int half_side = SIDE / 2, x = get_global_id(0) / values, value = get_global_id(0) % values;
    const int y = get_global_id(1), slice = get_global_id(2);
    /* the pixel that this one is in, and the one that it is next to */
    const int x0 = x / 2, x1 = (x0 + half_side + (x % 2 == 0 ? -1 : 1)) % half_side;
    const int y0 = y / 2, y1 = (y0 + half_side + (y % 2 == 0 ? -1 : 1)) % half_side;
    __global const float *from = images + (ulong)slice * half_side * half_side * values + value;
    const float near = 0.75f * from[(y0 * half_side + x0) * values] + 0.25f * from[(y0 * half_side + x1) * values];
    const float far = 0.75f * from[(y1 * half_side + x0) * values] + 0.25f * from[(y1 * half_side + x1) * values];
    doubled[((ulong)slice * SIDE + y) * SIDE * values + get_global_id(0)] =
        weights[8 * slice + weight] * (0.75f * near + 0.25f * far);
}

/* Finds the length of the step of every slice, from parts of the sums that transform_split_columns made: of r d, of the curvature of
 * gradient and bounds, and of d Q d. Global size: GROUP, slices. */
OF_GROUP
void find_steps(__global const float2 *restrict of_solving, __global const float2 *restrict of_projecting,
                __global float4 *restrict state, int solving, int projecting)
{
    __local float2 room[GROUP];
    const int slice = get_global_id(1);
    if (HAS_ENDED(state[slice]))
        return;
    float2 sum = (float2)(0.0f, 0.0f), curvature = sum;
    for (int i = get_local_id(0); i < solving; i += GROUP)
        sum += of_solving[slice * solving + i];
    for (int i = get_local_id(0); i < projecting; i += GROUP)
        curvature += of_projecting[slice * projecting + i];
    sum = sum_of_items(sum, room);
    curvature = sum_of_items(curvature, room);
    if (get_local_id(0) != 0)
        return;
    const float all = sum.y + curvature.x;
    if (all > 0.0f)
        state[slice].x = sum.x / all;
    else
        state[slice].w = 1.0f;
}

/* Counts an iteration, and ends slices that changed less than `tolerance`, once there were as many as `fewest`. Global size as above. */
OF_GROUP
void judge_changes(__global const float *restrict changes, __global const float *restrict weights,
                   __global float4 *restrict state, int count, int fewest, float tolerance)
{
    __local float2 room[GROUP];
    const int slice = get_global_id(1);
    if (HAS_ENDED(state[slice]))
        return;
    float2 sum = (float2)(0.0f, 0.0f);
    for (int i = get_local_id(0); i < count; i += GROUP)
        sum.x += changes[slice * count + i];
    sum = sum_of_items(sum, room);
    if (get_local_id(0) != 0)
        return;
    float4 own = state[slice];
    own.y = sqrt(sum.x * weights_of(weights, slice).of_changes);
    own.z += 1.0f;
    if (own.y < tolerance && own.z >= (float)fewest)
        own.w = 1.0f;
    state[slice] = own;
}

/* Sums of each row of images: the product with the data, and the penalty of gradients, which are quadratic below `quadratic` of
 * a slice. Global size: GROUP, SIDE, slices. */
OF_GROUP
void measure_rows(__global const float *restrict images, __global const float *restrict data,
                  __global const float *restrict quadratic, __global float2 *restrict sums)
{
    __local float2 room[GROUP];
    const int y = get_global_id(1), slice = get_global_id(2);
    const ulong own = (ulong)slice * SIDE * SIDE;
    float2 sum = (float2)(0.0f, 0.0f);
    for (int x = get_local_id(0); x < SIDE; x += GROUP) {
        const float2 gradient = gradient_at(images + own, y, x);
        const float length = sqrt(dot(gradient, gradient)), huber = quadratic[slice];
        sum.x += images[own + y * SIDE + x] * data[own + y * SIDE + x];
        sum.y += length < huber ? length * length / (2.0f * huber) : length - 0.5f * huber;
    }
    sum = sum_of_items(sum, room);
    if (get_local_id(0) == 0)
        sums[slice * SIDE + y] = sum;
}

/* Stores a region of images, whose first pixel is (`x0`, `y0`), as slices from value `first` on. Global size: `width` rounded up to
 * GROUP, height, slices. */
OF_GROUP
void store_region(__global const float *restrict images, __global float *restrict slices, ulong first, int x0, int y0, int width)
{
    const int x = get_global_id(0), y = get_global_id(1), slice = get_global_id(2), height = get_global_size(1);
    if (x < width)
        slices[first + ((ulong)slice * height + y) * width + x] = images[((ulong)slice * SIDE + y0 + y) * SIDE + x0 + x];
}
