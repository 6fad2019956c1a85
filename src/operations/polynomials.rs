//! Products of the columns of sinograms with polynomials, and profiles added to their rows.

use super::files::SINOGRAMS;
use super::program_target::ProgramTarget;
use super::sinograms::{SinogramBatch, SinogramShape};
use crate::device::{BufferLayout, Session};
use crate::error::{Error, Result};
use crate::kernel::{COMMON, ClFile, Defines, KernelSource, LaunchShape, StepTarget, assemble, cl_file};
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

const POLYNOMIALS: ClFile = cl_file!("polynomials.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, SINOGRAMS, POLYNOMIALS]];

/// Largest number of bins of a work-group, and of items per bin.
const TALL_GROUP: [usize; 2] = [32, 8];

/// Returns the source for `degrees` polynomials on a device; the work-group is that of `column_products`.
fn generate_polynomials(degrees: usize, target: StepTarget) -> Result<KernelSource> {
    let width = TALL_GROUP[0].min(target.facts.max_work_group);
    let parts = TALL_GROUP[1].min(target.facts.max_work_group / width).max(1);
    let mut defines = Defines::default();
    defines.number("DEGREES", degrees as u32)?;
    defines.number("WIDTH", width as u32)?;
    defines.number("PARTS", parts as u32)?;
    defines.number("GROUP", target.row_group() as u32)?;
    let work_group = [width as u32, parts as u32];
    Ok(assemble(
        format!("polynomials-{degrees}"),
        &defines,
        FILES[0],
        vec!["-cl-std=CL1.1".to_owned()],
        "column_products",
        LaunchShape { work_group, block: [work_group[0], 1] },
    ))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    [1, 3, 11].map(|degrees| generate_polynomials(degrees, on.target)).into_iter().collect()
}

/// Products of columns with sets of factors: sums, over the projections of each block, of the values times the factor
/// of their projection.
pub struct ColumnProducts {
    kernel: Kernel,
    work_group: [usize; 2],
    shape: SinogramShape,
    blocks: usize,
    degrees: usize,
    factors: Buffer<f32>,
    starts: Buffer<i32>,
    /// Products, `[slice][block][degree][bin]`.
    products: Buffer<f32>,
}

impl ColumnProducts {
    /// Builds the kernel. `starts` are the first projection of each block, and the number of projections at the end;
    /// `factors` are `[projection][degree]`.
    ///
    /// # Errors
    /// Errors of the device in building the program and allocating memory.
    pub fn new(session: &Session, shape: SinogramShape, starts: &[usize], factors: &[f32]) -> Result<Self> {
        let degrees = factors.len() / shape.projections.max(1);
        let blocks = starts.len().saturating_sub(1);
        let ascending = starts.windows(2).all(|pair| pair[0] < pair[1]);
        if starts.last() != Some(&shape.projections) || !ascending || factors.len() != degrees * shape.projections {
            return Err(Error::Internal("these blocks or factors are not those of the projections".into()));
        }
        let source = generate_polynomials(degrees, session.step_target())?;
        let program = session.build(&source)?;
        let starts: Vec<i32> = starts.iter().map(|start| *start as i32).collect();
        let layout = Self::layout(shape, blocks, degrees);
        Ok(ColumnProducts {
            kernel: session.kernel(&program, "column_products")?,
            work_group: source.work_group,
            shape,
            blocks,
            degrees,
            factors: layout.constant(session, "polynomials", factors)?,
            starts: layout.constant(session, "starts of blocks", &starts)?,
            products: layout.buffer(session, "products with polynomials")?,
        })
    }

    /// Returns the buffers for `blocks` blocks of projections and `degrees` polynomials.
    pub fn layout(shape: SinogramShape, blocks: usize, degrees: usize) -> BufferLayout {
        BufferLayout::default()
            .with::<f32>("polynomials", degrees * shape.projections)
            .with::<i32>("starts of blocks", blocks + 1)
            .with::<f32>("products with polynomials", shape.slices * blocks * degrees * shape.bins)
    }

    /// Computes the products of sinograms.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for sinograms of another size.
    pub fn run(&self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.shape.expect(session, sinograms)?;
        let [width, parts] = self.work_group;
        let global = [self.shape.bins.next_multiple_of(width), parts * self.blocks, sinograms.slices];
        let launch = session
            .launch(&self.kernel, "column_products")
            .sinograms(sinograms)?
            .value(sinograms.first as u64)?
            .buffer(&self.factors, self.degrees * self.shape.projections, "polynomials")?
            .buffer(&self.starts, self.blocks + 1, "starts of blocks")?
            .buffer(&self.products, self.products_len(sinograms.slices), "products with polynomials")?
            .value(self.shape.bins as i32)?
            .value(self.shape.projections as i32)?;
        launch.run(&global, Some(&[width, parts, 1])).map(drop)
    }

    /// Returns the number of products of some sinograms.
    fn products_len(&self, slices: usize) -> usize {
        slices * self.blocks * self.degrees * self.shape.bins
    }

    /// Returns the products on the device, `[slice][block][degree][bin]`.
    pub fn products(&self) -> &Buffer<f32> {
        &self.products
    }

    /// Returns the factors on the device, `[projection][degree]`.
    pub(super) fn factors(&self) -> &Buffer<f32> {
        &self.factors
    }

    /// Copies the products of the first `slices` sinograms to the host.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn download(&self, session: &Session, slices: usize) -> Result<Vec<f32>> {
        let mut products = vec![0f32; self.products_len(slices)];
        session.read(&self.products, &mut products, "products with polynomials")?;
        Ok(products)
    }
}

/// The kernel that adds profiles over the bins to the rows of blocks of projections.
pub struct AddedProfiles {
    kernel: Kernel,
    group: usize,
    shape: SinogramShape,
    blocks: usize,
    block_of: Buffer<i32>,
    /// Profiles, `[slice][block][bin]`.
    profiles: Buffer<f32>,
}

impl AddedProfiles {
    /// Builds the kernel; `block_of` is the block of each projection.
    ///
    /// # Errors
    /// Errors of the device in building the program and allocating memory.
    pub fn new(session: &Session, shape: SinogramShape, block_of: &[usize]) -> Result<Self> {
        if block_of.len() != shape.projections {
            return Err(Error::Internal(format!(
                "{} of {} projections have a block",
                block_of.len(),
                shape.projections
            )));
        }
        let program = session.build(&generate_polynomials(1, session.step_target())?)?;
        let blocks = block_of.iter().max().map_or(0, |last| last + 1);
        let block_of: Vec<i32> = block_of.iter().map(|block| *block as i32).collect();
        let layout = Self::layout(shape, blocks);
        Ok(AddedProfiles {
            kernel: session.kernel(&program, "add_profiles")?,
            group: session.step_target().row_group(),
            shape,
            blocks,
            block_of: layout.constant(session, "blocks of projections", &block_of)?,
            profiles: layout.input(session, "profiles")?,
        })
    }

    /// Returns the buffers for `blocks` blocks of projections.
    pub fn layout(shape: SinogramShape, blocks: usize) -> BufferLayout {
        BufferLayout::default()
            .with::<i32>("blocks of projections", shape.projections)
            .with::<f32>("profiles", shape.slices * blocks * shape.bins)
    }

    /// Adds `profiles`, `[slice][block][bin]`, to sinograms. Values that are not finite become 0, before and after.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for sinograms of another size or other profiles.
    pub fn run(&mut self, session: &Session, sinograms: &SinogramBatch, profiles: &[f32]) -> Result<()> {
        self.shape.expect(session, sinograms)?;
        let needed = sinograms.slices * self.blocks * self.shape.bins;
        if profiles.len() != needed {
            return Err(Error::Internal(format!("{} values of profiles, {needed} are needed", profiles.len())));
        }
        session.write(&mut self.profiles, profiles, "profiles")?;
        let global = [self.shape.bins.next_multiple_of(self.group), self.shape.projections, sinograms.slices];
        let launch = session
            .launch(&self.kernel, "add_profiles")
            .sinograms(sinograms)?
            .value(sinograms.first as u64)?
            .buffer(&self.profiles, needed, "profiles")?
            .buffer(&self.block_of, self.shape.projections, "blocks of projections")?
            .value(self.shape.bins as i32)?
            .value(self.blocks as i32)?;
        launch.run(&global, Some(&[self.group, 1, 1])).map(drop)
    }
}
