//! What one update costs, counted from the same [`KernelSpec`] that the generator writes the kernel from.
//!
//! The list is section 6.5 of the paper for the arithmetic kernel: work of a block for a projection is spread over the
//! block's pixels and slices, work of an item over the item's, work of a pixel over its slices. The other families are
//! counted in the same way from their files in `cl/`.

use crate::facts::ChannelType;
use crate::kernel::{KernelSpec, Matrix, Texel};
use crate::profile::{
    Alu, Cache, Common, Hybrid, Interpolation, OVERSAMPLE, Offsets, Parameters, Rounding, Sampler, Storage, Tensor,
    Texture, Vector,
};
use serde::Serialize;
use std::ops::{Add, AddAssign, Mul};

/// Operations and bytes of one update: one pixel, one projection, one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// Loads from constant memory, and their bytes.
    pub constant: f64,
    pub constant_bytes: f64,
    /// Loads and stores of local memory, and of buffers through the first cache; and their bytes.
    pub local: f64,
    pub local_bytes: f64,
    /// Floating-point instructions; a fused multiply-add is one.
    pub fp: f64,
    /// Rounding, and between integer and float.
    pub conversions: f64,
    /// Between half and float.
    pub half_conversions: f64,
    /// Shifts and products that find addresses.
    pub shifts: f64,
    /// Memory operations that prepare the inner loop, which take an issue slot of their own.
    pub staging: f64,
    /// Texels: of 32 bits; of 64 interpolated, and nearest; of 128 nearest.
    pub texels: [f64; 4],
    /// Multiply-adds of matrix units, and their instructions.
    pub matrix: f64,
    pub matrix_instructions: f64,
}

impl Add for Load {
    type Output = Load;

    fn add(self, other: Load) -> Load {
        Load {
            constant: self.constant + other.constant,
            constant_bytes: self.constant_bytes + other.constant_bytes,
            local: self.local + other.local,
            local_bytes: self.local_bytes + other.local_bytes,
            fp: self.fp + other.fp,
            conversions: self.conversions + other.conversions,
            half_conversions: self.half_conversions + other.half_conversions,
            shifts: self.shifts + other.shifts,
            staging: self.staging + other.staging,
            texels: [0, 1, 2, 3].map(|i| self.texels[i] + other.texels[i]),
            matrix: self.matrix + other.matrix,
            matrix_instructions: self.matrix_instructions + other.matrix_instructions,
        }
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Load) {
        *self = *self + other;
    }
}

impl Mul<f64> for Load {
    type Output = Load;

    fn mul(self, times: f64) -> Load {
        Load {
            constant: self.constant * times,
            constant_bytes: self.constant_bytes * times,
            local: self.local * times,
            local_bytes: self.local_bytes * times,
            fp: self.fp * times,
            conversions: self.conversions * times,
            half_conversions: self.half_conversions * times,
            shifts: self.shifts * times,
            staging: self.staging * times,
            texels: self.texels.map(|t| t * times),
            matrix: self.matrix * times,
            matrix_instructions: self.matrix_instructions * times,
        }
    }
}

impl Load {
    /// The load of a kernel.
    pub fn of(spec: &KernelSpec) -> Load {
        match &spec.parameters {
            Parameters::Standard(_) => standard(spec),
            Parameters::Texture(p) => texture(spec, p),
            Parameters::Alu(p) => alu(spec, p, 1),
            Parameters::Oversample(p) => alu(spec, p, OVERSAMPLE),
            Parameters::Hybrid(p) => hybrid(spec, p),
            Parameters::Tensor(p) => tensor(spec, p),
            Parameters::Vector(p) => vector(spec, p),
        }
    }

    fn local(count: f64, bytes: f64) -> Load {
        Load { local: count, local_bytes: count * bytes, ..Load::default() }
    }

    fn constant(count: f64, bytes: f64) -> Load {
        Load { constant: count, constant_bytes: count * bytes, ..Load::default() }
    }

    /// The same, all of it preparing the inner loop.
    fn staged(self) -> Load {
        Load { staging: self.constant + self.local, ..self }
    }

    fn texel(texel: Texel, interpolated: bool) -> Load {
        let mut texels = [0.0; 4];
        if let Some(format) = texel.format() {
            let channel = if format.channel_type == ChannelType::Half { 16 } else { 32 };
            match (format.channels.count() * channel, interpolated) {
                (..=32, _) => texels[0] = 1.0,
                (64, true) => texels[1] = 1.0,
                (64, false) => texels[2] = 1.0,
                // interpolated: two of 64 bits
                (_, true) => texels[1] = 2.0,
                (_, false) => texels[3] = 1.0,
            }
        }
        Load { texels, ..Load::default() }
    }
}

/// Reading the sinogram itself at a position, for one pixel with all its slices, and adding to the sums.
fn sample(spec: &KernelSpec) -> Load {
    let slices = f64::from(spec.slices);
    let linear = spec.interpolation == Interpolation::Linear;
    let half = spec.parameters.storage() == Storage::Half;
    if spec.texel.format().is_some() {
        let unpacked = if matches!(spec.texel, Texel::Forged(_)) { slices } else { 0.0 };
        return Load { fp: slices, half_conversions: unpacked, ..Load::texel(spec.texel, linear) };
    }
    let (reads, sums, rounds) = if linear { (2.0, 3.0, 2.0) } else { (1.0, 1.0, 1.0) };
    let bytes = if half { 2.0 } else { 4.0 };
    Load {
        // clamped twice
        fp: sums * slices + 2.0,
        conversions: rounds,
        shifts: 1.0,
        half_conversions: if half { reads * slices } else { 0.0 },
        ..Load::local(reads, slices * bytes)
    }
}

fn standard(spec: &KernelSpec) -> Load {
    // where the block's column and row start, cosine and sine; the position is a sum of four
    let place = Load::constant(3.0, 8.0) + Load { fp: 5.0, conversions: 1.0, shifts: 1.0, ..Load::default() };
    (place + sample(spec)) * (1.0 / f64::from(spec.slices))
}

fn texture(spec: &KernelSpec, p: &Texture) -> Load {
    let slices = f64::from(spec.slices);
    // an item has one of the projections side by side, and so many pixels: a work-group of 256 computes 256 pixels
    let pixels = f64::from(p.projections_at_once);
    let axis = if spec.same_centre { 0.0 } else { 1.0 };
    let constants = match p.cached_constants {
        0 => Load::constant(1.0 + axis, 8.0),
        // filled once by the block's items: 256 of them for 256 pixels
        _ => {
            Load::local(1.0 + axis, (8.0 + 4.0 * axis) / (1.0 + axis)).staged()
                + Load::constant(2.0 * pixels / 256.0, 8.0)
        }
    };
    let index = if p.float_index { 0.0 } else { 1.0 };
    let item = constants + Load { fp: 3.0 + (1.0 - index), conversions: index, shifts: 1.0, ..Load::default() };
    let pixel = Load { fp: 1.0, ..Load::default() } + sample(spec);
    item * (1.0 / (pixels * slices)) + pixel * (1.0 / slices)
}

/// Section 6.5, with one sample a bin or several.
fn alu(spec: &KernelSpec, p: &Alu, samples: u32) -> Load {
    let slices = f64::from(spec.slices);
    let pixels = f64::from(p.pixels());
    let of_block = 1.0 / (f64::from(p.items) * pixels * slices);
    let of_item = 1.0 / (pixels * slices);
    let linear = spec.interpolation == Interpolation::Linear && samples == 1;
    let advanced = p.cache == Cache::Advanced;
    let value_bytes = if p.half_cache { 2.0 } else { 4.0 };
    let arrays = f64::from(p.arrays);

    // 1. where a row starts: by every item that copies the row, or once with a third stage
    let row_items = f64::from(p.row_items);
    let starts = if p.stage > 0 { 1.0 } else { row_items };
    let mut block = Load::constant(starts, 16.0).staged() + Load::local(row_items, 4.0).staged();
    block += Load { fp: 4.0 * starts, conversions: starts, shifts: 2.0 * starts, ..Load::default() };

    // 2. the copy
    let cells = f64::from(p.row_bins() * samples);
    let fetch = match spec.texel.format() {
        Some(_) => Load { staging: 1.0, ..Load::texel(spec.texel, samples > 1) },
        None => {
            let bytes = if spec.parameters.storage() == Storage::Half { 2.0 } else { 4.0 };
            let reads = if samples > 1 { 2.0 } else { 1.0 };
            let mixed = if samples > 1 { 2.0 * slices } else { 0.0 };
            Load { fp: mixed, ..Load::local(reads, slices * bytes).staged() }
        }
    };
    block += fetch * cells;
    // the advanced cache has an array for each slice
    let stores = if advanced { slices } else { arrays / if p.write_pairs { 2.0 } else { 1.0 } };
    let cell_bytes = slices * if advanced { 8.0 } else { value_bytes };
    block += Load::local(cells * stores, cell_bytes / stores).staged();
    let packed = if p.half_cache { cells * slices } else { 0.0 };
    block += Load {
        fp: row_items * if advanced { 4.0 } else { 3.0 },
        conversions: row_items,
        half_conversions: packed,
        shifts: 2.0 * row_items,
        ..Load::default()
    };

    // 3. an item's projection
    let turn = if p.turn_cache { Load::local(1.0, 8.0) } else { Load::constant(1.0, 8.0) };
    let offset = match p.offsets {
        // four projections are loaded at once
        Offsets::Row => Load { fp: 2.0, ..Load::local(0.25, 4.0).staged() },
        Offsets::Column => Load { fp: 1.0, ..Load::local(1.0, f64::from(p.area / 16) * 4.0).staged() },
        Offsets::None => Load { fp: 7.0, conversions: 1.0, ..Load::constant(2.0, 8.0) },
    };
    let item = turn + offset + Load { shifts: 1.0, ..Load::default() };

    // 4. a pixel's cell (6.6: instead of conversions, and of the shift, floating-point instructions)
    let (rounding, instead) = if linear { (2.0, 3.0) } else { (1.0, 1.0) };
    let (conversions, fp, shifts) = match p.rounding {
        Rounding::Convert => (rounding, 0.0, 1.0),
        Rounding::Float => (0.0, instead, 1.0),
        Rounding::FloatIndex => (0.0, instead + 2.0, 0.0),
    };
    let pixel = Load { fp: fp + if linear { 2.0 } else { 1.0 }, conversions, shifts, ..Load::default() };

    // 5. the updates
    let reads = if linear && !advanced { 2.0 } else { 1.0 };
    let (vectors, bytes) = if advanced { (slices, 8.0) } else { (arrays, value_bytes * slices / arrays) };
    let updates = Load {
        fp: slices * if !linear { 1.0 } else { 2.0 + f64::from(u8::from(!advanced)) },
        half_conversions: if p.half_cache { reads * slices } else { 0.0 },
        ..Load::local(reads * vectors, bytes)
    };

    block * of_block + item * of_item + (pixel + updates) * (1.0 / slices)
}

fn hybrid(spec: &KernelSpec, p: &Hybrid) -> Load {
    let slices = f64::from(spec.slices);
    let item = Load::constant(3.0, 8.0) + Load { fp: 4.0, conversions: 1.0, shifts: 1.0, ..Load::default() };
    let pixel = Load { fp: 1.0, ..Load::default() } + sample(spec);
    let by_texture = item * (1.0 / (f64::from(p.alu.pixels()) * slices)) + pixel * (1.0 / slices);
    let [texture, arithmetic] = [p.texture_blocks, p.alu_blocks].map(f64::from);
    (by_texture * texture + alu(spec, &p.alu, 1) * arithmetic) * (1.0 / (texture + arithmetic))
}

/// A warp multiplies the weights of 16 pixels for 8 bins of two projections by these bins: 8 multiply-adds an update.
fn tensor(spec: &KernelSpec, p: &Tensor) -> Load {
    let slices = f64::from(spec.slices);
    let linear = spec.interpolation == Interpolation::Linear;
    let lanes = f64::from(spec.lanes);
    // 16 pixels and two projections
    let of_lane = lanes / (32.0 * slices);
    let parts = if p.split { 2.0 } else { 1.0 };
    let products = match (p.split, linear) {
        (false, _) => 1.0,
        (true, false) => 2.0,
        (true, true) => 3.0,
    };
    // 256 weights: of each the distance and the hat, then to half; the lower half from what is left
    let weights = 256.0 / lanes;
    let (fp, halves, shifts) = match (linear, p.split) {
        (true, false) => (2.0, 0.5, 0.0),
        (true, true) => (3.0, 2.0, 0.0),
        (false, _) => (1.0, 0.0, 1.0),
    };
    let lane = Load {
        fp: weights * fp + 3.0,
        half_conversions: weights * halves,
        shifts: weights * shifts,
        ..Load::local(1.0, 16.0)
    };
    // where a square's bins start, found by one item for a projection of the pair
    let place = Load { fp: 9.0, conversions: 3.0, shifts: 2.0, ..Load::constant(4.0, 8.0) + Load::local(1.0, 8.0) };
    let [x, y] = p.block().map(f64::from);
    let row_bytes = 2.0 * parts * slices;
    let copy = Load::local(f64::from(p.window()), row_bytes) * (1.0 / (x * y * slices));
    let reads = Load { local: parts * slices / 16.0 * of_lane, local_bytes: parts, ..Load::default() };
    let product = match spec.matrix {
        Matrix::Plain => Load { fp: 8.0 * products, ..Load::default() },
        _ => Load { matrix: 8.0 * products, matrix_instructions: products * slices / 8.0 * of_lane, ..Load::default() },
    };
    lane * of_lane + place * (1.0 / (16.0 * slices)) + copy + reads + product
}

/// Sixteen slices are a vector: what a pixel has for all of them fills a whole vector, too.
fn vector(spec: &KernelSpec, p: &Vector) -> Load {
    const WIDTH: f64 = 16.0;
    let slices = f64::from(spec.slices);
    let linear = spec.interpolation == Interpolation::Linear;
    let (reads, broadcasts, rounds) = if linear { (2.0, 2.0, 2.0) } else { (1.0, 1.0, 1.0) };
    // sums come and go once for the projections that are done together
    let sums = Load::local(2.0 / f64::from(p.together), 4.0);
    let updates = Load { fp: reads, ..Load::local(reads, 4.0) } + sums;
    // positions are computed for sixteen pixels at once; then each is one load, and weights fill a vector
    let pixel = Load { fp: 3.0, conversions: rounds, shifts: 1.0, ..Load::local(broadcasts, 4.0 * (WIDTH + 1.0)) };
    let weight = Load { fp: if linear { WIDTH } else { 0.0 }, ..Load::default() };
    updates + (pixel + weight) * (1.0 / slices)
}

/// Bytes of local memory that a work-group has, as the files in `cl/` declare it.
pub fn local_memory(spec: &KernelSpec) -> u64 {
    let slices = u64::from(spec.slices);
    let of_alu = |p: &Alu, samples: u32| {
        let advanced = p.cache == Cache::Advanced;
        let room = u64::from(p.row_bins() * samples + u32::from(advanced));
        let cell = if advanced { 8 * slices } else { slices * if p.half_cache { 2 } else { 4 } };
        let starts = u64::from(p.stage.max(1));
        let cached = u64::from(p.cached_projections);
        let offsets = cached * if p.offsets == Offsets::Column { u64::from(p.area) } else { 1 };
        cached * room * cell + 8 * starts + 4 * offsets + 8 * if p.turn_cache { cached } else { 1 }
    };
    match &spec.parameters {
        Parameters::Standard(_) | Parameters::Vector(_) => 0,
        Parameters::Texture(p) => {
            let cached = u64::from(p.cached_constants);
            let groups = u64::from(p.projections_at_once);
            let axes = if p.regroup { groups * (cached / groups + 4) } else { cached };
            let cache = if cached > 0 { 8 * cached + 4 * axes } else { 0 };
            let (partial, tile) = (1024 * slices, if p.direct_writes { 0 } else { 1024 * slices });
            tile + if p.shared_buffer { partial.max(cache) } else { partial + cache }
        }
        Parameters::Alu(p) => of_alu(p, 1),
        Parameters::Oversample(p) => of_alu(p, OVERSAMPLE),
        Parameters::Hybrid(p) => of_alu(&p.alu, 1),
        Parameters::Tensor(p) => {
            let [stage, warps] = [p.stage, p.warps[0] * p.warps[1]].map(u64::from);
            let squares = u64::from(p.squares[0] * p.squares[1]);
            let window = u64::from(p.window()) * spec.element_bytes() as u64;
            u64::from(p.buffers) * stage * window + 16 * warps * stage * squares + 16 * warps * stage
        }
    }
}

/// The kernel that section 6.5 and Tables 15 and 16 of the paper are about: linear, one slice, the advanced cache, 256
/// items for 32 x 32 pixels, 16 items a row, copied by the texture unit.
pub fn paper_kernel() -> Parameters {
    let common = Common { sampler: Sampler::Image, ..Common::default() };
    Parameters::Alu(Alu { common, cache: Cache::Advanced, ..Alu::default() })
}
