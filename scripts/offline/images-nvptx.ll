; Image reads for LLVM's NVPTX back end, which has no library for them: texture instructions with the image argument
; as the texture's handle, whatever the sampler. Makes kernels compile; the code is never run.
; Also the two native functions that the library leaves to an instruction that the back end does not select.
target triple = "nvptx64--nvidiacl"

declare { float, float, float, float } @llvm.nvvm.tex.unified.2d.v4f32.f32(i64, float, float)
declare { float, float, float, float } @llvm.nvvm.tex.unified.2d.v4f32.s32(i64, i32, i32)
declare { float, float, float, float } @llvm.nvvm.tex.unified.2d.array.v4f32.f32(i64, i32, float, float)
declare float @llvm.nvvm.sin.approx.f(float)
declare float @llvm.nvvm.cos.approx.f(float)

define ptr addrspace(4) @__translate_sampler_initializer(i32 %bits) alwaysinline nounwind {
  %sampler = inttoptr i32 %bits to ptr addrspace(4)
  ret ptr addrspace(4) %sampler
}

define <4 x float> @__texel({ float, float, float, float } %read) alwaysinline nounwind {
  %r = extractvalue { float, float, float, float } %read, 0
  %g = extractvalue { float, float, float, float } %read, 1
  %b = extractvalue { float, float, float, float } %read, 2
  %a = extractvalue { float, float, float, float } %read, 3
  %t0 = insertelement <4 x float> poison, float %r, i32 0
  %t1 = insertelement <4 x float> %t0, float %g, i32 1
  %t2 = insertelement <4 x float> %t1, float %b, i32 2
  %t3 = insertelement <4 x float> %t2, float %a, i32 3
  ret <4 x float> %t3
}

; read_imagef(image2d_t, sampler_t, float2)
define <4 x float> @_Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_f(ptr addrspace(1) %image, ptr addrspace(4) %sampler, <2 x float> %at) alwaysinline nounwind {
  %handle = ptrtoint ptr addrspace(1) %image to i64
  %x = extractelement <2 x float> %at, i32 0
  %y = extractelement <2 x float> %at, i32 1
  %read = call { float, float, float, float } @llvm.nvvm.tex.unified.2d.v4f32.f32(i64 %handle, float %x, float %y)
  %texel = call <4 x float> @__texel({ float, float, float, float } %read)
  ret <4 x float> %texel
}

; read_imagef(image2d_t, sampler_t, int2)
define <4 x float> @_Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_i(ptr addrspace(1) %image, ptr addrspace(4) %sampler, <2 x i32> %at) alwaysinline nounwind {
  %handle = ptrtoint ptr addrspace(1) %image to i64
  %x = extractelement <2 x i32> %at, i32 0
  %y = extractelement <2 x i32> %at, i32 1
  %read = call { float, float, float, float } @llvm.nvvm.tex.unified.2d.v4f32.s32(i64 %handle, i32 %x, i32 %y)
  %texel = call <4 x float> @__texel({ float, float, float, float } %read)
  ret <4 x float> %texel
}

; read_imagef(image2d_array_t, sampler_t, float4)
define <4 x float> @_Z11read_imagef20ocl_image2d_array_ro11ocl_samplerDv4_f(ptr addrspace(1) %image, ptr addrspace(4) %sampler, <4 x float> %at) alwaysinline nounwind {
  %handle = ptrtoint ptr addrspace(1) %image to i64
  %x = extractelement <4 x float> %at, i32 0
  %y = extractelement <4 x float> %at, i32 1
  %layer = extractelement <4 x float> %at, i32 2
  %whole = fptosi float %layer to i32
  %read = call { float, float, float, float } @llvm.nvvm.tex.unified.2d.array.v4f32.f32(i64 %handle, i32 %whole, float %x, float %y)
  %texel = call <4 x float> @__texel({ float, float, float, float } %read)
  ret <4 x float> %texel
}

define float @_Z10native_sinf(float %x) alwaysinline nounwind {
  %y = call float @llvm.nvvm.sin.approx.f(float %x)
  ret float %y
}

define float @_Z10native_cosf(float %x) alwaysinline nounwind {
  %y = call float @llvm.nvvm.cos.approx.f(float %x)
  ret float %y
}
