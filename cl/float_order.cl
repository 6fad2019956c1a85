/* float_order.cl: floats as integers of the same order. */

/* The bits of a float as an integer with the same order. */
HELPER uint ascending(float value)
{
    const uint bits = as_uint(value);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The inverse of `ascending`. */
HELPER float from_ascending(uint number)
{
    return as_float(number >> 31 ? number & 0x7fffffffu : ~number);
}
