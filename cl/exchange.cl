/* exchange.cl: values handed between the items of a warp without local memory.
 *
 *   SHUFFLE  0 none: kernels go through local memory; 1 the sub-group extensions; 2 inline assembly of the device
 */
#ifndef SHUFFLE
#define SHUFFLE 0
#endif

#if SHUFFLE == 1
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle_relative : enable
#define SHUFFLE_XOR(value, mask) sub_group_shuffle_xor(value, (uint)(mask))
#define SHUFFLE_DOWN(value, delta) sub_group_shuffle_down(value, (uint)(delta))
#elif SHUFFLE == 2
HELPER float shuffle_xor_word(float value, int mask)
{
    float other;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=f"(other) : "f"(value), "r"(mask));
    return other;
}

HELPER float shuffle_down_word(float value, int delta)
{
    float other;
    __asm__ volatile("shfl.sync.down.b32 %0, %1, %2, 31, -1;" : "=f"(other) : "f"(value), "r"(delta));
    return other;
}
#define SHUFFLE_XOR(value, mask) shuffle_xor_word(value, mask)
#define SHUFFLE_DOWN(value, delta) shuffle_down_word(value, delta)
#endif

#if SHUFFLE
/* Vectors go component by component. */
HELPER values_t shuffle_xor(values_t value, int mask)
{
    values_t other;
#define SHUFFLE_ONE(s, member) other member = SHUFFLE_XOR(value member, mask);
    EACH_SLICE(SHUFFLE_ONE)
#undef SHUFFLE_ONE
    return other;
}

HELPER values_t shuffle_down(values_t value, int delta)
{
    values_t other;
#define SHUFFLE_ONE(s, member) other member = SHUFFLE_DOWN(value member, delta);
    EACH_SLICE(SHUFFLE_ONE)
#undef SHUFFLE_ONE
    return other;
}
#endif
