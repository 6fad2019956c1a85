/* halves.cl: values as halves for matrix units.
 *
 *   SPLIT  1 a value is the sum of two halves, which together carry 22 bits; 0 one half
 *
 * A bin is a row of ROW_BYTES: the halves of all slices, then with SPLIT what is left of them, then 16 bytes, so that
 * the same piece of eight rows one after another lies in different banks of local memory.
 */
#ifndef SPLIT
#define SPLIT 0
#endif

#define ROW_VALUES (SLICES * (1 + SPLIT))
#define ROW_BYTES (2 * ROW_VALUES + 16)

/* The nearest half, as a float. */
HELPER float rounded_to_half(float value)
{
    uint bits = 0;
    vstore_half_rte(value, 0, (half *)&bits);
    return vload_half(0, (const half *)&bits);
}
