//! The test of the kernel for an inclined axis: it back-projects noise, and all voxels are compared with the definition in
//! `f64`.

use super::kernel::Checked;
use super::values::noise;
use crate::device::Session;
use crate::error::Result;
use crate::geometry::{Geometry, Lamino, Roi, even_angles};
use crate::kernel::GUARD;
use crate::operations::{LaminoProjector, LaminoRows};
use opencl3::memory::CL_MEM_READ_WRITE;

/// Number of bins of the test problem.
const BINS: usize = 39;
/// Number of rows of the detector, for slices next to each other.
const HEIGHT: usize = 21;
/// Number of projections, in two parts.
const PROJECTIONS: usize = 14;
/// Number of projections of the first part.
const FIRST: usize = 9;
/// Side of the slices in pixels.
const SIZE: usize = 45;
/// Slices of the run that are computed: of several work-items, and not all of them next to each other.
const SLICES: [usize; 11] = [1, 2, 3, 4, 7, 8, 9, 10, 11, 15, 20];

/// The check of the kernel for an inclined axis.
pub struct LaminoTest {
    geometry: Geometry,
    lamino: Lamino,
}

impl LaminoTest {
    /// Largest error, relative to the root mean square of the slices: rounding of positions and sums in single precision.
    pub const MARGIN: f64 = 1e-5;

    /// Makes the test for an axis inclined by some degrees, and a run of every `step`th slice.
    pub fn new(degrees: f64, step: usize) -> LaminoTest {
        let angles = even_angles(11.0, 360.0, PROJECTIONS);
        let axis = (0..PROJECTIONS).map(|p| 18.3 + 0.1 * p as f64).collect();
        let roi = Roi { x: 2, y: 1, width: SIZE - 3, height: SIZE - 5 };
        let geometry = Geometry { angles, axis, roi, ..Geometry::half_turn(BINS, PROJECTIONS, SIZE) };
        let run: Vec<usize> = (0..HEIGHT).map(|number| number * step).collect();
        let lamino = Lamino::new(degrees, HEIGHT * step, &geometry, &run);
        LaminoTest { geometry, lamino }
    }

    /// Returns the filtered value of a bin, 0 outside the detector.
    fn value(&self, row: i64, projection: usize, bin: i64) -> f64 {
        let inside = (0..self.lamino.height as i64).contains(&row) && (0..BINS as i64).contains(&bin);
        let place = || (row as usize * PROJECTIONS + projection) * BINS + bin as usize;
        if inside { f64::from((noise(place()) - 0.5) as f32) } else { 0.0 }
    }

    /// Returns the value of a voxel by the definition.
    fn voxel(&self, x: usize, y: usize, z: usize) -> f64 {
        let [x, y, z] = [x, y, z].map(|at| at as f64);
        let of_projection = |p: usize| {
            let (u, v) = (self.geometry.position(p, x, y), self.lamino.row(&self.geometry, p, [x, y, z]));
            let (bin, row) = (u.floor(), v.floor());
            let (across, down) = (u - bin, v - row);
            let at = |down: i64, across: i64| self.value(row as i64 + down, p, bin as i64 + across);
            let upper = (1.0 - across) * at(0, 0) + across * at(0, 1);
            let lower = (1.0 - across) * at(1, 0) + across * at(1, 1);
            (1.0 - down) * upper + down * lower
        };
        (0..PROJECTIONS).map(of_projection).sum()
    }

    /// Runs the kernel on noise and compares it with the known answer.
    ///
    /// # Errors
    /// Errors of the device; a wrong result is none.
    pub fn run(&self, session: &Session) -> Result<Checked> {
        let LaminoTest { geometry, lamino } = self;
        let roi = geometry.roi;
        let which = SLICES.map(|number| number * lamino.step);
        let rows = lamino.rows_of(&which);
        let width = BINS + 2 * GUARD;
        let mut projector = LaminoProjector::new(session, geometry, *lamino, SLICES.len())?;
        let mut values = session.buffer(rows.len() * FIRST * width, CL_MEM_READ_WRITE, "noise")?;
        let slices = session.buffer(SLICES.len() * roi.pixels(), CL_MEM_READ_WRITE, "slices")?;
        projector.choose(session, &which)?;
        for projections in [0..FIRST, FIRST..PROJECTIONS] {
            let of_row = |row: usize| {
                let bins = -(GUARD as i64)..(BINS + GUARD) as i64;
                let of_bins = move |p: usize| bins.clone().map(move |bin| self.value(row as i64, p, bin) as f32);
                projections.clone().flat_map(of_bins)
            };
            session.write(&mut values, &rows.clone().flat_map(of_row).collect::<Vec<f32>>(), "noise")?;
            let part = LaminoRows { values: &values, rows: rows.clone(), projections };
            // in several launches, as at the end of a run
            for groups in projector.parts(2) {
                projector.run(session, &part, &slices, &groups)?;
            }
            session.finish()?;
        }
        let mut got = vec![0f32; SLICES.len() * roi.pixels()];
        session.download(&slices, 0, &mut got, "slices")?;
        let (mut difference, mut all) = (0f64, 0f64);
        for (place, &got) in got.iter().enumerate() {
            let (slice, pixel) = (place / roi.pixels(), place % roi.pixels());
            let expected = self.voxel(roi.x + pixel % roi.width, roi.y + pixel / roi.width, which[slice]);
            difference += (f64::from(got) - expected).powi(2);
            all += expected * expected;
        }
        let error = (difference / all).sqrt();
        Ok(Checked { error: if error.is_finite() { error } else { f64::INFINITY }, margin: LaminoTest::MARGIN })
    }
}
