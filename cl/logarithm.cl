/* logarithm.cl: -log of transmissions, the same on every device. */

#pragma OPENCL FP_CONTRACT OFF

/* The natural logarithm of a positive, normal number, to about one unit in the last place: x = 2^e m with m around 1, and
 * ln(m) = 2 atanh(s), s = (m - 1) / (m + 1), as a power series. Library functions differ from device to device. */
inline __attribute__((always_inline)) float natural_log(float x)
{
    const int bits = as_int(x);
    const int exponent = (bits - 0x3f3504f3) >> 23;
    const float m = as_float(bits - (exponent << 23)), e = (float)exponent;
    const float s = (m - 1.0f) / (m + 1.0f), z = s * s;
    const float series = z * (0.6666667f + z * (0.4f + z * (0.2857143f + z * (0.22222222f + z * 0.18181819f))));
    /* ln(2) in two parts, the first with so few bits that the product is exact */
    return e * 0.693359375f + (2.0f * s + (s * series + e * -0.00021219444f));
}

/* -log of a transmission; smaller ones than 1e-6 are raised to it. */
inline __attribute__((always_inline)) float line_integral(float transmission)
{
    return -natural_log(fmax(transmission, 1e-6f));
}
