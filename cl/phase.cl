/* phase.cl: the phases that shift a row. A shift is {whole bins, rest} to the left, so that whole turns are taken off exactly. */

/* The factor e^(2 pi i k shift / length) of frequency k, for a length that is a power of 2. */
HELPER float2 phase_of(int k, float2 shift, int length)
{
    /* modulo 2^32: the product may be larger */
    const int whole = (uint)k * (uint)(int)shift.x & (uint)(length - 1);
    const float halves = 2.0f / length * (whole + k * shift.y);
    return (float2)(cospi(halves), sinpi(halves));
}

/* A value turned by a phase, or the product of two phases. */
HELPER float2 turned(float2 value, float2 phase)
{
    return (float2)(value.x * phase.x - value.y * phase.y, value.x * phase.y + value.y * phase.x);
}
