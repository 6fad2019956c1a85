/* split_state.cl: what is known of every slice in the iterations of least squares, and its gradients and bounds.
 *
 * Defines
 *   SIDE  of an image: a power of 2
 *
 * Layouts
 *   weights  [slice][8] float: of the gradient, of the bounds; the length that gradients lose, the least share of them that
 *            remains, the least value of a slice, the least eigenvalue of the preconditioner, the factor that makes sums of squared
 *            changes relative to the contrast, the share of a pixel in one of twice its size
 *   state    [slice] float4: length of the step, last change relative to the contrast, iterations, 1 when no more are needed
 */
#ifndef SIDE
#define SIDE 256
#endif

typedef struct {
    float gradient, bounds, loss, least_share, lowest, least_eigenvalue, of_changes;
} slice_weights_t;

#define STEP(state) ((state).x)
#define HAS_ENDED(state) ((state).w != 0.0f)

HELPER slice_weights_t weights_of(__global const float *weights, int slice)
{
    const float8 all = vload8(slice, weights);
    const slice_weights_t own = {all.s0, all.s1, all.s2, all.s3, all.s4, all.s5, all.s6};
    return own;
}

/* Differences of an image to its right and lower neighbours, around the torus. */
HELPER float2 gradient_at(__global const float *image, int y, int x)
{
    const int right = (x + 1) % SIDE, below = (y + 1) % SIDE;
    const float here = image[y * SIDE + x];
    return (float2)(image[y * SIDE + right] - here, image[below * SIDE + x] - here);
}

/* What remains of a gradient. */
HELPER float2 shrunk(float2 t, slice_weights_t own)
{
    return t * fmax(1.0f - own.loss * rsqrt(fmax(dot(t, t), 1e-36f)), own.least_share);
}

/* A value within the bounds of its slice: not below the lowest, and 0 outside the disc. */
HELPER float within_bounds(float value, int2 disc, int x, slice_weights_t own)
{
    return x >= disc.x && x < disc.y ? fmax(value, own.lowest) : 0.0f;
}
