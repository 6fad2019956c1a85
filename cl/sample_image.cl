/* sample_image.cl: the sinogram as an image, read (and for LINEAR interpolated) by the texture unit (paper, 5.1 to 5.3).
 *
 *   FORGED  1: two half values travel in the bits of each float channel; only for LINEAR 0, where the unit
 *           hands them over untouched (paper, 5.3). 0: a channel is a slice; channels past SLICES are unused.
 *
 * The border colour is 0, so bins outside the detector count as 0.
 */
#ifndef FORGED
#define FORGED 0
#endif

#define SINOGRAM __read_only image2d_t

#if LINEAR
__constant sampler_t SINOGRAM_SAMPLER = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR;
#else
__constant sampler_t SINOGRAM_SAMPLER = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
#endif

inline values_t slices_of_texel(float4 texel)
{
#if FORGED && SLICES == 2
    const float bits = texel.x;
    return vload_half2(0, (const half *)&bits);
#elif FORGED && SLICES == 4
    const float2 bits = texel.xy;
    return vload_half4(0, (const half *)&bits);
#elif SLICES == 1
    return texel.x;
#elif SLICES == 2
    return texel.xy;
#else
    return texel;
#endif
}

/* The value of projection `p` at position `h`; texel centres are at half-integers. */
inline values_t sample(__read_only image2d_t sinogram, int bins, int p, position_t h)
{
#if LINEAR
    const float bin = h.whole + h.rest;
#else
    const float bin = h.whole + floor(h.rest + 0.5f);
#endif
    return slices_of_texel(read_imagef(sinogram, SINOGRAM_SAMPLER, (float2)(bin + 0.5f, p + 0.5f)));
}
