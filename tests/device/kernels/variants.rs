//! Variants of every family of kernels.

use fbp::kernel::{
    Alu, Balance, Cache, Common, Exchange, GridItems, Gridding, Hybrid, Interpolation, Mapping, Offsets, Oversample,
    Parameters, Positions, Rounding, Sampler, Standard, Tensor, Texture, Vector,
};

/// A kernel's parameters, the slices per pass and the interpolations to try it with.
type Variant = (Parameters, Vec<u32>, Vec<Interpolation>);

/// Every value of every parameter of every family, each at least once, and the combinations that share code.
pub fn variants() -> Vec<Variant> {
    let both = || vec![Interpolation::Linear, Interpolation::Nearest];
    let mut list: Vec<Variant> = Vec::new();
    for sampler in [Sampler::Buffer, Sampler::Image] {
        let common = Common { sampler, ..Common::default() };
        let standard = Standard { common: split(&common), z_order: true, ..Standard::default() };
        let relaxed = Common { relaxed_math: true, ..common.clone() };
        let synchronized = Standard { common: relaxed, synchronized: true, ..Standard::default() };
        list.push((Parameters::Standard(synchronized), vec![1, 4], both()));
        list.push((Parameters::Standard(standard.clone()), vec![1, 4], both()));
        let absolute = Standard { positions: Positions::Absolute, ..standard };
        list.push((Parameters::Standard(absolute.clone()), vec![1, 4], both()));
        list.push((Parameters::Standard(Standard { common: common.clone(), ..absolute }), vec![2], both()));
        list.extend(textures(&common).into_iter().map(|(t, slices)| (Parameters::Texture(t), slices, both())));
        let alu = Alu { common: common.clone(), ..Alu::default() };
        list.extend(alus(&alu).into_iter().map(|(alu, slices)| (Parameters::Alu(alu), slices, both())));
        let linear = || vec![Interpolation::Linear];
        list.extend(
            oversamples(&alu)
                .into_iter()
                .map(|(alu, slices)| (Parameters::Oversample(Oversample(alu)), slices, linear())),
        );
        let hybrid = |alu: Alu| Hybrid { texture_blocks: 1, alu_blocks: 1, balance: Balance::Multiprocessor, alu };
        list.push((Parameters::Hybrid(hybrid(alu.clone())), vec![1, 2], both()));
        let absolute = Alu { positions: Positions::Absolute, ..alu.clone() };
        list.push((Parameters::Hybrid(hybrid(absolute)), vec![1], both()));
        let large = Alu { block: 64, row_items: 32, cached_projections: 8, cache: Cache::Advanced, ..alu };
        list.push((Parameters::Hybrid(Hybrid { texture_blocks: 3, alu_blocks: 5, ..hybrid(large) }), vec![1], both()));
    }
    list.extend(of_many_slices().into_iter().map(|(parameters, slices)| (parameters, slices, both())));
    list.extend(griddings().map(|(gridding, slices)| (gridding.into(), slices, vec![Interpolation::Exact])));
    list
}

fn griddings() -> impl Iterator<Item = (Gridding, Vec<u32>)> {
    let cells = Gridding::default();
    let tiles = Gridding { items: GridItems::Tiles, ..cells.clone() };
    let list = [
        (Gridding { rows: 1, columns: 1, ..cells.clone() }, vec![1]),
        (Gridding { rows: 2, columns: 8, ..cells.clone() }, vec![4, 16]),
        (Gridding { tile: 16, rows: 4, columns: 4, ..cells }, vec![2, 8]),
        (Gridding { tile: 8, columns: 1, ..tiles.clone() }, vec![1]),
        (Gridding { tile: 16, columns: 2, ..tiles.clone() }, vec![2, 8]),
        (Gridding { tile: 32, columns: 8, ..tiles }, vec![4]),
    ];
    list.into_iter()
}

fn split(common: &Common) -> Common {
    Common { packed_constants: false, unroll: 4, ..common.clone() }
}

fn textures(common: &Common) -> Vec<(Texture, Vec<u32>)> {
    let texture = Texture { common: common.clone(), ..Texture::default() };
    let draft = Texture { projections_at_once: 16, ..texture.clone() };
    let textures = [
        texture.clone(),
        Texture { reduction: Exchange::Shuffle, same_centre: true, ..texture.clone() },
        Texture { projections_at_once: 2, cached_constants: 64, ..texture.clone() },
        Texture { projections_at_once: 8, reduction: Exchange::Shuffle, ..texture.clone() },
        Texture { cached_constants: 256, direct_writes: true, ..texture.clone() },
        Texture { cached_constants: 16, regroup: true, shared_buffer: true, ..texture.clone() },
        Texture {
            common: split(common),
            cached_constants: 8,
            shared_buffer: true,
            same_centre: true,
            ..texture.clone()
        },
        draft.clone(),
        Texture { float_index: true, direct_writes: true, reduction: Exchange::Shuffle, ..draft.clone() },
        Texture { cached_constants: 32, regroup: true, ..draft },
    ];
    let slices = |number| if number < 4 { vec![1, 2, 4] } else { vec![1] };
    textures.into_iter().enumerate().map(|(number, texture)| (texture, slices(number))).collect()
}

fn alus(alu: &Alu) -> Vec<(Alu, Vec<u32>)> {
    vec![
        (alu.clone(), vec![1, 2, 4]),
        (Alu { common: split(&alu.common), mapping: Mapping::Rows, offsets: Offsets::None, ..alu.clone() }, vec![1, 4]),
        (Alu { positions: Positions::Absolute, ..alu.clone() }, vec![1, 4]),
        (
            Alu {
                positions: Positions::Absolute,
                common: split(&alu.common),
                offsets: Offsets::None,
                rounding: Rounding::Float,
                ..alu.clone()
            },
            vec![1],
        ),
        (
            Alu {
                positions: Positions::Absolute,
                cache: Cache::Advanced,
                offsets: Offsets::Column,
                mapping: Mapping::Block,
                stage: 32,
                ..alu.clone()
            },
            vec![1],
        ),
        (Alu { mapping: Mapping::Block, offsets: Offsets::Column, rotation_cache: true, ..alu.clone() }, vec![1, 4]),
        (
            Alu {
                mapping: Mapping::Squares,
                offsets: Offsets::Column,
                items: 128,
                cached_projections: 8,
                ..alu.clone()
            },
            vec![2],
        ),
        (Alu { mapping: Mapping::Block, block: 64, row_items: 32, cached_projections: 8, ..alu.clone() }, vec![1, 2]),
        (Alu { items: 128, cached_projections: 8, stage: 256, ..alu.clone() }, vec![1, 2]),
        (
            Alu {
                block: 64,
                row_items: 16,
                cached_projections: 8,
                write_pairs: true,
                rounding: Rounding::Float,
                ..alu.clone()
            },
            vec![1],
        ),
        (Alu { row_items: 8, write_pairs: true, rounding: Rounding::FloatIndex, ..alu.clone() }, vec![1]),
        (Alu { rounding: Rounding::FloatIndex, arrays: 2, ..alu.clone() }, vec![2, 4]),
        (Alu { rounding: Rounding::Float, arrays: 4, stage: 32, ..alu.clone() }, vec![4]),
        (Alu { half_cache: true, ..alu.clone() }, vec![1, 4]),
        (Alu { half_cache: true, arrays: 2, ..alu.clone() }, vec![4]),
        (Alu { cache: Cache::Advanced, offsets: Offsets::Column, mapping: Mapping::Block, ..alu.clone() }, vec![1]),
        (Alu { cache: Cache::Advanced, exchange: Exchange::Shuffle, rotation_cache: true, ..alu.clone() }, vec![1]),
        (
            Alu {
                cache: Cache::Advanced,
                block: 64,
                row_items: 32,
                cached_projections: 8,
                rounding: Rounding::Float,
                ..alu.clone()
            },
            vec![1],
        ),
        (Alu { cache: Cache::Advanced, arrays: 2, rounding: Rounding::FloatIndex, ..alu.clone() }, vec![2]),
        (Alu { cache: Cache::Advanced, arrays: 4, cached_projections: 8, ..alu.clone() }, vec![4]),
    ]
}

fn oversamples(alu: &Alu) -> Vec<(Alu, Vec<u32>)> {
    let oversample = Alu { row_items: 32, cached_projections: 8, ..alu.clone() };
    vec![
        (oversample.clone(), vec![1, 2]),
        (Alu { positions: Positions::Absolute, ..oversample.clone() }, vec![1]),
        (
            Alu {
                arrays: 2,
                row_items: 64,
                cached_projections: 4,
                offsets: Offsets::Column,
                mapping: Mapping::Block,
                ..oversample.clone()
            },
            vec![2, 4],
        ),
        (
            Alu { arrays: 4, cached_projections: 4, rounding: Rounding::Float, stage: 256, ..oversample.clone() },
            vec![4],
        ),
        (
            Alu { block: 64, cached_projections: 4, write_pairs: true, rounding: Rounding::FloatIndex, ..oversample },
            vec![1],
        ),
    ]
}

/// Kernels of eight slices and more.
fn of_many_slices() -> Vec<(Parameters, Vec<u32>)> {
    let tensor = Tensor::default();
    let one = Tensor { warps: [2, 1], squares: [1, 2], band: 4, ..tensor.clone() };
    let split = Tensor {
        split: true,
        flush: 16,
        common: Common { packed_constants: false, ..tensor.common.clone() },
        ..tensor
    };
    let vector = Vector::default();
    let large = Vector {
        tile: 32,
        columns: 8,
        projections_at_once: 3,
        common: Common { packed_constants: false, ..vector.common.clone() },
    };
    vec![
        (Parameters::Tensor(one), vec![16, 64]),
        (Parameters::Tensor(split), vec![32]),
        (Parameters::Vector(vector), vec![16, 32]),
        (Parameters::Vector(large), vec![16]),
        // for processors
        (Parameters::Alu(Alu::default()), vec![8, 16]),
    ]
}
