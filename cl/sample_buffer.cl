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
#define LOAD(at, row) LOAD_HALVES(at, row)
#elif SLICES == 1
typedef float stored_t;
#define LOAD(at, row) (row)[at]
#else
typedef values_t stored_t;
#define LOAD(at, row) (row)[at]
#endif

#define SINOGRAM __global const stored_t *restrict

/* The value of projection `p` at position `h`; `bins` is the detector's width. */
inline values_t sample(__global const stored_t *restrict sinogram, int bins, int p, position_t h)
{
#if HALF_STORAGE
    __global const half *row = sinogram + (ulong)p * (bins + 2 * GUARD) * SLICES;
#else
    __global const stored_t *row = sinogram + (ulong)p * (bins + 2 * GUARD);
#endif
#if LINEAR
    const float below = floor(h.rest);
    const int i = clamp((int)(h.whole + below), -GUARD, bins) + GUARD;
    const float w = h.rest - below;
    const values_t a = LOAD(i, row);
    const values_t b = LOAD(i + 1, row);
    return mad((values_t)(w), b - a, a);
#else
    const int i = clamp((int)(h.whole + floor(h.rest + 0.5f)), -GUARD, bins) + GUARD;
    return LOAD(i, row);
#endif
}
