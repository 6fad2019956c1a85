/* sample_image.cl: the sinogram as an image, read and interpolated by the texture unit (paper, 5.1 to 5.3).
 *
 *   FORGED  1: two half values travel in the bits of each float channel; only for kernels that read whole bins,
 *           where the unit hands them over untouched (paper, 5.3). 0: a channel is a slice; channels past SLICES
 *           are unused.
 *
 * The border colour is 0, so bins outside the detector count as 0.
 */
#ifndef FORGED
#define FORGED 0
#endif

#define SINOGRAM __read_only image2d_t

__constant sampler_t WHOLE_BINS = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
__constant sampler_t BETWEEN_BINS = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR;

HELPER values_t slices_of_texel(float4 texel)
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

/* The value of projection `p` in the bin with the whole number `bin`; texel centres are at half-integers. */
HELPER values_t fetch_bin(__read_only image2d_t sinogram, int bins, int p, float bin)
{
    return slices_of_texel(read_imagef(sinogram, WHOLE_BINS, (float2)(bin + 0.5f, p + 0.5f)));
}

/* The value of projection `p` at `rest` after bin `whole`, between two bins. */
HELPER values_t fetch_between(__read_only image2d_t sinogram, int bins, int p, float whole, float rest)
{
    return slices_of_texel(read_imagef(sinogram, BETWEEN_BINS, (float2)(whole + rest + 0.5f, p + 0.5f)));
}

/* What is added to a position, once for several pixels, for `fetch_at`. */
#define FROM_EDGE 0.5f

/* The value between bins (LINEAR) or of the nearest bin at `at`, FROM_EDGE included, in the row whose centre is `row`: all
 * by the unit, as Algorithm 3 has it. */
HELPER values_t fetch_at(__read_only image2d_t sinogram, int bins, float row, float at)
{
#if LINEAR
    return slices_of_texel(read_imagef(sinogram, BETWEEN_BINS, (float2)(at, row)));
#else
    return slices_of_texel(read_imagef(sinogram, WHOLE_BINS, (float2)(at, row)));
#endif
}
