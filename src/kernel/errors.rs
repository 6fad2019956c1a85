//! Errors of kernels: rules that a profile breaks, and kernels that cannot read their layout of the sinogram.

use super::Algorithm;
use crate::error::messages;

messages! {
    /// Rule that the parameters of a kernel break.
    pub enum KernelRuleError: Usage {
        Illegal { name: String, value: String, legal: String } => "{name} {value} must be {legal}",
        ImageSlices { most: u32 } => "sampler `image` serves at most 4 slices, not {most}",
        OtherSlices { algorithm: Algorithm, first: u32, last: u32, slices: Vec<u32> } =>
            "a {algorithm} kernel has {first} to {last} slices, not {slices:?}"; "change `slices`",
        TooManySlices { others: String, most: u32 } =>
            "only {others} kernels support {most} slices at once"; "choose one of them, or change `slices`",
        NoFloats { algorithm: Algorithm } => "a {algorithm} kernel reads floats: storage must be `float`",
        NoBuffer { algorithm: Algorithm } => "a {algorithm} kernel reads a buffer: sampler must be `buffer`",
        ZOrderGroup => "z-order needs a work-group of 16 x 16",
        CachedConstants { cached: u32, step: u32 } =>
            "cached-constants {cached} must be a multiple of {step} up to 1024",
        NoCachedConstants =>
            "regroup and shared-buffer need cached-constants"; "give a number above 0, or leave these two out",
        NothingToRegroup => "same-centre leaves nothing to regroup"; "leave one of them out",
        Stage { stage: u32 } => "stage {stage} must be a multiple of cached-projections",
        StageWithoutOffsets => "stage caches offsets: it needs offsets `row` or `column`",
        Arrays { arrays: u32 } => "arrays {arrays} must be 1, 2 or 4 and divide the slices",
        AdvancedArrays => "the advanced cache needs an array for every slice",
        AdvancedOversampling => "oversampling does not support the advanced cache: cache must be `standard`",
        AdvancedPairs =>
            "the advanced cache excludes half-cache and write-pairs"; "leave these two out, or choose cache `standard`",
        RowItems { items: u32, bins: u32 } => "row-items {items} must divide the {bins} bins of a row",
        PairSlices =>
            "write-pairs is for one slice of float values"; "leave it out, or give slices 1 without half-cache",
        PairItems { items: u32 } => "row-items {items} must divide the pairs of bins of a row",
        RelaxedRounding =>
            "rounding by floating-point additions fails with relaxed-math";
            "leave relaxed-math out, or choose rounding `convert`",
        NoHalves => "matrix units need halves: storage must be `half`",
        Lead { lead: u32, most: u32 } => "lead {lead} must be 1 to {most}, one less than buffers",
        Flush { flush: u32, stage: u32 } => "flush {flush} must be a multiple of stage {stage}",
        ManySlicesByTiles => "16 slices need items = \"cells\""; "give it, or change `slices`",
        LargeTileByCells => "tile 32 needs items = \"tiles\"",
    }
}

messages! {
    /// Why a kernel cannot read its layout of the sinogram.
    pub(super) enum KernelSpecError: Usage {
        SlicesPerPass { name: String } =>
            "kernel {name}: this number of slices per pass is not supported"; "choose another --slices-per-pass",
        FewChannels { name: String } =>
            "kernel {name}: the texel has fewer channels than slices"; "choose a smaller --slices-per-pass",
        PackedHalves { name: String } =>
            "kernel {name}: packed halves cannot be interpolated by the texture unit";
            "choose a smaller --slices-per-pass",
        NoImageSampler { name: String } =>
            "kernel {name}: an image needs the sampler `image`"; "choose another --algorithm",
    }
}
