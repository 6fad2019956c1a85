//! Operations and bytes of the stages of gridding, counted from the files in `cl/` that compute them.

use super::gridding::{GridItems, Gridding};
use super::{KernelForm, Load};
use crate::spectrum::padded_length;
use std::f64::consts::PI;

/// The sizes of the problem for a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridTask {
    pub bins: usize,
    pub projections: usize,
    /// Number of pixels along x and y.
    pub region: [usize; 2],
    /// Number of grid cells along x and y.
    pub lengths: [usize; 2],
}

/// One of the kernels that compute a slice in succession.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridStage {
    pub name: &'static str,
    /// Load of a slice.
    pub load: Load,
    /// Bytes of device memory for a slice, with every value read or written once.
    pub device_bytes: f64,
}

impl GridTask {
    /// Returns the number of cells that frequencies reach in the half that is stored: those of an ellipse.
    fn filled(&self) -> f64 {
        PI / 8.0 * self.lengths[0] as f64 * self.lengths[1] as f64
    }

    /// Returns the number of complex values that the transforms of rows pass to those of columns.
    fn of_pixels(&self) -> f64 {
        (self.region[0] * (self.lengths[1] / 2 + 1)) as f64
    }

    /// Returns the number of frequencies of all projections, from 0 on.
    fn frequencies(&self) -> f64 {
        (self.projections * (padded_length(self.bins) / 2 + 1)) as f64
    }
}

fn arithmetic(fp: f64) -> Load {
    Load { fp, ..Load::default() }
}

/// Returns the radices of the steps of a transform, see `butterflies.cl`.
fn radices(length: usize) -> Vec<usize> {
    let odd = if length % 3 == 0 { 3 } else { 1 };
    let factors = (length / odd).ilog2();
    let mut radices = vec![16; factors as usize / 4];
    let last = odd << (factors % 4);
    radices.extend((last > 1).then_some(last));
    radices
}

/// Returns the floating-point operations per value in a step, without the preceding rotations.
fn butterfly(radix: usize) -> f64 {
    match radix {
        2 => 2.0,
        4 => 4.0,
        8 => 7.0,
        16 => 10.0,
        // three values; then the values of the power of 2 are rotated and transformed
        _ => {
            let even = radix / 3;
            let turned = 8.0 * (even as f64 - 1.0) / radix as f64;
            4.0 + if even > 1 { turned + butterfly(even) } else { 0.0 }
        }
    }
}

impl Gridding {
    /// Returns the cost of transforming a line, per complex value of its length.
    fn line(&self, length: usize) -> Load {
        let radices = radices(length);
        let mut cost = Load::default();
        for (number, &radix) in radices.iter().enumerate() {
            cost += arithmetic(butterfly(radix));
            if number > 0 {
                let turned = 4.0 * (radix as f64 - 1.0) / radix as f64;
                // powers of a factor are computed in registers
                let powers = 4.0 * (radix as f64 - 2.0) / radix as f64;
                cost += arithmetic(turned + if self.items == GridItems::Cells { powers } else { 0.0 });
            }
        }
        // between steps in local memory; in the cache, each step reads and writes
        let moved = radices.len() - usize::from(self.items == GridItems::Cells);
        cost + Load::local(2.0 * moved as f64, 8.0)
    }

    /// Returns the stage of the row filter, as one kernel.
    fn filter(&self, task: &GridTask) -> GridStage {
        let length = padded_length(task.bins);
        let (rows, frequencies) = ((task.projections * task.bins) as f64, task.frequencies());
        // two rows are one complex line
        let values = (task.projections * length) as f64 / 2.0;
        // separation, scaling, rotation; powers of a phase, and the exchange of opposite frequencies
        let of_frequency = match self.items {
            GridItems::Cells => arithmetic(2.0 + 4.0 + 8.0 + 3.5) + Load::local(3.125, 8.0),
            GridItems::Tiles => arithmetic(2.0 + 2.0 + 8.0) + Load::local(2.0, 8.0),
        };
        let moved = Load::local(rows, 4.0) + Load::local(frequencies, 8.0);
        let load = self.line(length) * values + of_frequency * frequencies + moved;
        GridStage { name: "filter", load, device_bytes: 4.0 * rows + 8.0 * frequencies }
    }

    fn spreading(&self, form: &KernelForm, task: &GridTask) -> GridStage {
        let (width, tile, slices) = (f64::from(form.bound.width), f64::from(self.tile), f64::from(form.slices));
        // frequencies of both signs, in half of the grid; those near a tile are spread there, too
        let samples = task.frequencies() * ((tile - 1.0 + width) / tile).powi(2);
        let cells = tile * tile;
        let weights = arithmetic(2.0 * width * (width + 5.0) / slices);
        let of_sample = match self.items {
            GridItems::Cells => {
                let (rows, items) = (f64::from(self.rows), cells / f64::from(self.rows));
                // a row of zeros with the kernel's values; an item's factors; values, the same for all items of a warp
                let kept = Load::local(2.0 * (tile + 3.0 * width) / slices, 4.0) + Load::local(1.0, 8.0);
                let factors = Load::local(items * (1.0 + rows) / slices, 4.0);
                let values = Load { local: items, local_bytes: 8.0 * items / f64::from(form.lanes), ..Load::default() };
                kept + factors + values + arithmetic(cells * (2.0 + 1.0 / slices))
            }
            GridItems::Tiles => {
                let taps = width * width;
                arithmetic(2.0 * (taps + width)) + Load::local(2.0 * taps, 8.0)
            }
        };
        let read = Load::local(1.0, 8.0);
        let load = (weights + of_sample + read) * samples + Load::local(task.filled(), 8.0);
        GridStage { name: "spreading", load, device_bytes: 8.0 * (task.frequencies() + task.filled()) }
    }

    fn rows(&self, task: &GridTask) -> GridStage {
        let [length, height] = task.lengths;
        let values = (length * (height / 2 + 1)) as f64;
        let moved = task.filled() + task.of_pixels();
        // copies to and from the memory of an item
        let copied = if self.items == GridItems::Tiles { 2.0 } else { 1.0 };
        let load = self.line(length) * values + Load::local(copied * moved, 8.0);
        GridStage { name: "rows", load, device_bytes: 8.0 * moved }
    }

    /// Returns the stage of the columns' transforms, which divide by the kernel's transform and store the region.
    fn columns(&self, task: &GridTask) -> GridStage {
        let [width, height] = task.region;
        let pixels = (width * height) as f64;
        // two columns are one complex line, each value of which is the sum of two
        let values = width as f64 / 2.0 * task.lengths[1] as f64;
        let (read, staged) = match self.items {
            GridItems::Cells => (Load::local(2.0, 8.0), Load::default()),
            GridItems::Tiles => (Load::local(2.0, 8.0), Load::local(1.5, 8.0)),
        };
        let of_pixel = arithmetic(2.0) + Load::local(1.0, 4.0) + staged;
        let load = (self.line(task.lengths[1]) + arithmetic(2.0) + read) * values + of_pixel * pixels;
        GridStage { name: "columns", load, device_bytes: 8.0 * task.of_pixels() + 4.0 * pixels }
    }

    /// From the rows of a slice to its pixels, in the order in which they run.
    pub fn stages(&self, form: &KernelForm, task: &GridTask) -> [GridStage; 4] {
        [self.filter(task), self.spreading(form, task), self.rows(task), self.columns(task)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_product_of_its_radices() {
        for length in [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384] {
            let radices = radices(length);
            assert_eq!(radices.iter().product::<usize>(), length, "{radices:?}");
            assert!(radices.iter().rev().skip(1).all(|&radix| radix == 16), "{radices:?}");
        }
    }

    /// Sixteen values by hand: eight transforms of four values, with sixteen additions each, and eight products.
    #[test]
    fn operations_are_those_of_the_butterflies() {
        assert_eq!(16.0 * butterfly(16), 8.0 * 16.0 + 8.0 * 4.0);
        assert_eq!(8.0 * butterfly(8), 4.0 * 4.0 + 2.0 * 4.0 + 2.0 * 16.0);
        assert_eq!(6.0 * butterfly(6), 2.0 * 12.0 + 2.0 * 4.0 + 3.0 * 4.0);
        let cells = Gridding::default();
        // a step without factors, and one with fifteen and fourteen powers of the first
        assert_eq!(256.0 * cells.line(256).fp, 32.0 * 160.0 + 16.0 * 4.0 * (15.0 + 14.0));
        // there and back once
        assert_eq!(cells.line(256).local_bytes, 16.0);
        let tiles = Gridding { items: GridItems::Tiles, ..Gridding::default() };
        assert_eq!(256.0 * tiles.line(256).fp, 32.0 * 160.0 + 16.0 * 4.0 * 15.0);
        assert_eq!(tiles.line(256).local_bytes, 32.0);
    }
}
