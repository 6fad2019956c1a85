/* probe-image */

/* ---- probe_image.cl ---- */
/* probe_image.cl: does an image format hand back what was put in?
 *
 * Reads an image at `count` positions (x, y), all four channels, once with each sampler:
 * values [0, count) nearest, [count, 2 count) linear.
 */
__constant sampler_t PROBE_NEAREST = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
__constant sampler_t PROBE_LINEAR = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR;

__kernel void probe_image(__read_only image2d_t image, __global const float2 *at, __global float4 *values)
{
    const int i = get_global_id(0);
    values[i] = read_imagef(image, PROBE_NEAREST, at[i]);
    values[get_global_size(0) + i] = read_imagef(image, PROBE_LINEAR, at[i]);
}
