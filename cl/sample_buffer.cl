/* sample_buffer.cl: the sinogram in a plain buffer, for devices without the image format and for CPUs.
 *
 * Every row has GUARD zero bins before and after it, so a position is clamped once and never tested:
 * bins outside the detector count as 0, as they do with an image's border.
 */
#ifndef GUARD
#define GUARD 2
#endif

#if HALF_STORAGE
typedef half stored_t;
#define ELEMENT SLICES
#define LOAD(row, at) LOAD_HALVES(at, row)
#else
typedef values_t stored_t;
#define ELEMENT 1
#define LOAD(row, at) (row)[at]
#endif

#define SINOGRAM __global const stored_t *restrict

/* Row of projection `p`, from its first guard bin on. */
HELPER __global const stored_t *sinogram_row(__global const stored_t *sinogram, int bins, int p)
{
    return sinogram + (ulong)p * (bins + 2 * GUARD) * ELEMENT;
}

/* The value of projection `p` in the bin with the whole number `bin`. */
HELPER values_t fetch_bin(__global const stored_t *sinogram, int bins, int p, float bin)
{
    return LOAD(sinogram_row(sinogram, bins, p), clamp((int)bin, -GUARD, bins) + GUARD);
}

/* The value of projection `p` at `rest` after bin `whole`, between two bins. */
HELPER values_t fetch_between(__global const stored_t *sinogram, int bins, int p, float whole, float rest)
{
    __global const stored_t *row = sinogram_row(sinogram, bins, p);
    const float below = floor(rest);
    const int i = clamp((int)(whole + below), -GUARD, bins) + GUARD;
    const values_t a = LOAD(row, i), b = LOAD(row, i + 1);
    return mad((values_t)(rest - below), b - a, a);
}

/* See sample_image.cl. */
#define FROM_EDGE (LINEAR ? -0.0f : 0.5f)

HELPER values_t fetch_at(__global const stored_t *sinogram, int bins, float row, float at)
{
#if LINEAR
    return fetch_between(sinogram, bins, (int)row, -0.0f, at);
#else
    return fetch_bin(sinogram, bins, (int)row, floor(at));
#endif
}
