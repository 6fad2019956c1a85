; Image reads for LLVM's r600 back end, which has no library for them: texture 2 with sampler 0, whatever is passed.
; Makes kernels compile to real fetches and registers; nothing binds the texture, so the code is never run.
target triple = "r600--"

declare <4 x float> @llvm.r600.tex(<4 x float>, i32, i32, i32, i32, i32, i32, i32, i32, i32) nounwind readnone

define ptr addrspace(4) @__translate_sampler_initializer(i32 %bits) alwaysinline nounwind {
  %sampler = inttoptr i32 %bits to ptr addrspace(4)
  ret ptr addrspace(4) %sampler
}

; read_imagef(image2d_t, sampler_t, float2)
define <4 x float> @_Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_f(ptr addrspace(4) %image, ptr addrspace(4) %sampler, <2 x float> %at) alwaysinline nounwind {
  %xy = shufflevector <2 x float> %at, <2 x float> poison, <4 x i32> <i32 0, i32 1, i32 poison, i32 poison>
  %texel = call <4 x float> @llvm.r600.tex(<4 x float> %xy, i32 0, i32 0, i32 0, i32 2, i32 0, i32 0, i32 0, i32 0, i32 0)
  ret <4 x float> %texel
}

; read_imagef(image2d_t, sampler_t, int2)
define <4 x float> @_Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_i(ptr addrspace(4) %image, ptr addrspace(4) %sampler, <2 x i32> %at) alwaysinline nounwind {
  %position = sitofp <2 x i32> %at to <2 x float>
  %texel = call <4 x float> @_Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_f(ptr addrspace(4) %image, ptr addrspace(4) %sampler, <2 x float> %position)
  ret <4 x float> %texel
}

; read_imagef(image2d_array_t, sampler_t, float4)
define <4 x float> @_Z11read_imagef20ocl_image2d_array_ro11ocl_samplerDv4_f(ptr addrspace(4) %image, ptr addrspace(4) %sampler, <4 x float> %at) alwaysinline nounwind {
  %texel = call <4 x float> @llvm.r600.tex(<4 x float> %at, i32 0, i32 0, i32 0, i32 2, i32 0, i32 0, i32 0, i32 0, i32 0)
  ret <4 x float> %texel
}
