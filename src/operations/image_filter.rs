//! The two-dimensional filter of projections: by the device's own kernels, or between the transforms of a library.

use super::device_rows::{DeviceRows, ImagePart};
use super::program_target::ProgramTarget;
use super::row_blocks::ImageFilterForm;
use crate::device::{BufferLayout, ImageTransform, Session};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::kernel::{
    BUTTERFLIES, COMMON, ClFile, Defines, IMAGE_LENGTHS, ImageFilterBackend, ImageGroups, KernelSource, LaunchShape,
    StepBackend, StepTarget, TRANSFORM_ROW, assemble, cl_file, power_of_two,
};
use crate::spectrum::turns;
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::f64::consts::TAU;

const IMAGE_PLACES: ClFile = cl_file!("image_places.cl");
const FILTER_IMAGES: ClFile = cl_file!("filter_images.cl");
const WHOLE_IMAGES: ClFile = cl_file!("whole_images.cl");
/// The files of the programs, in order: the device's own transforms, and the kernels around those of a library.
pub(super) const FILES: &[&[ClFile]] =
    &[&[COMMON, BUTTERFLIES, TRANSFORM_ROW, IMAGE_PLACES, FILTER_IMAGES], &[COMMON, IMAGE_PLACES, WHOLE_IMAGES]];

/// Returns the source of the kernels for rows of images, which transform them forward and back.
fn generate_image_rows(groups: ImageGroups) -> Result<KernelSource> {
    generate(format!("image-rows-{}", groups.width), groups.width, groups.rows, groups.row_parts(), false)
}

/// Returns the source of the kernel for columns of images.
fn generate_image_columns(groups: ImageGroups) -> Result<KernelSource> {
    // half of the local memory, so that more neighbouring columns are read together
    generate(format!("image-columns-{}", groups.height), groups.height, groups.columns, 2, true)
}

fn generate(name: String, length: usize, lines: usize, parts: u32, columns: bool) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("LENGTH", length as u32)?;
    defines.number("LINES", lines as u32)?;
    defines.number("PARTS", parts)?;
    defines.switch("COLUMNS", columns)?;
    defines.number("ROOM_STRIDE", if columns { lines as u32 } else { 1 })?;
    let entry = if columns { "filter_image_columns" } else { "transform_image_rows" };
    Ok(assemble(name, &defines, FILES[0], vec!["-cl-std=CL1.1".to_owned()], entry, LaunchShape::NONE))
}

/// Returns the work-group size of the kernels for images that a library transforms, whose width is a power of two.
fn whole_image_group(target: StepTarget) -> usize {
    power_of_two(target.row_group().min(IMAGE_LENGTHS[0]))
}

/// Returns the source of the kernels that make, filter and store images that a library transforms.
fn generate_whole_images(target: StepTarget) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", whole_image_group(target) as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("whole-images".to_owned(), &defines, FILES[1], options, "make_images", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most. They are omitted where the host runs the steps,
/// and the device's own transforms where a library does them.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    if on.backends.images == StepBackend::Host {
        return Ok(Vec::new());
    }
    let mut programs = Vec::new();
    for (width, height) in [(512, 64), (4096, 256), (4096, 1024)] {
        let own = on.images == ImageFilterBackend::Fused;
        let Some(groups) = ImageGroups::new(on.target, width, height).filter(|_| own) else { continue };
        programs.push(generate_image_rows(groups)?);
        programs.push(generate_image_columns(groups)?);
    }
    programs.push(generate_whole_images(on.target)?);
    Ok(programs)
}

/// Name of rows in messages.
const ROWS: &str = "rows of projections";
/// Name of spectra in layouts and messages.
const SPECTRA: &str = "spectra of projections";

/// The kernels and tables that filter images of rows.
pub struct ImageFilter {
    kernels: ImageKernels,
    /// Width and height of an image.
    size: [usize; 2],
    bins: usize,
    pairs: usize,
    sharpening: f32,
    along_bins: Buffer<[f32; 2]>,
    along_rows: Buffer<[f32; 2]>,
    spectra: Buffer<[f32; 2]>,
}

enum ImageKernels {
    /// Kernels for lines that fit into local memory.
    Own(OwnKernels),
    Library(LibraryKernels),
}

struct OwnKernels {
    transform_rows: Kernel,
    restore_rows: Kernel,
    columns: Kernel,
    groups: ImageGroups,
    turns_of_rows: Buffer<[f32; 2]>,
    turns_of_columns: Buffer<[f32; 2]>,
}

struct LibraryKernels {
    make: Kernel,
    filter: Kernel,
    store: Kernel,
    transform: Box<dyn ImageTransform>,
    group: usize,
}

/// The pairs of projections that are filtered at once.
struct PairsOfRows<'a> {
    from: &'a Buffer<f32>,
    to: &'a DeviceRows<'a>,
    projections: usize,
    /// Index of the first pair.
    start: usize,
    /// Number of pairs.
    pairs: usize,
    /// Index of the first wanted row among the rows that were read.
    first: usize,
    /// Number of wanted rows.
    wanted: usize,
    /// Index of the last row that was read.
    last: usize,
}

impl PairsOfRows<'_> {
    /// Returns the number of values of rows of `bins` that were read.
    fn read_len(&self, bins: usize) -> usize {
        (self.last + 1) * self.projections * bins
    }
}

impl ImageFilter {
    /// Builds the kernels for images of `[width, height]` of rows of `bins`, and `pairs` pairs of projections at a
    /// time.
    ///
    /// # Errors
    /// [`Error::Internal`] for images that are narrower than rows, or if a library is needed and missing; errors of the
    /// device.
    pub fn new(session: &Session, form: &ImageFilterForm, size: [usize; 2], bins: usize, pairs: usize) -> Result<Self> {
        let [width, height] = size;
        if bins > width {
            return Err(Error::Internal(format!("images of {width} x {height} for {bins} bins")));
        }
        let frequencies = |count: usize| -> Vec<[f32; 2]> {
            let of = |i: usize| {
                let k2 = (TAU * i.min(count - i) as f64 / count as f64).powi(2);
                [form.length.powi(2) * k2, (-form.sigma.powi(2) * k2 / 2.0).exp()].map(|value| value as f32)
            };
            (0..count).map(of).collect()
        };
        let layout = Self::layout(&session.facts, session.image_backend, size, pairs);
        Ok(ImageFilter {
            kernels: match own_groups(session, size) {
                Some(groups) => ImageKernels::Own(OwnKernels::new(session, groups, &layout)?),
                None => ImageKernels::Library(LibraryKernels::new(session, size, pairs)?),
            },
            size,
            bins,
            pairs,
            sharpening: form.sharpening as f32,
            along_bins: layout.constant(session, "frequencies along bins", &frequencies(width))?,
            along_rows: layout.constant(session, "frequencies along rows", &frequencies(height))?,
            spectra: layout.buffer(session, SPECTRA)?,
        })
    }

    /// Returns the buffers for images of `[width, height]` and `pairs` pairs of projections at a time; where a library
    /// transforms the images, with as much memory for it.
    pub fn layout(facts: &DeviceFacts, backend: ImageFilterBackend, size: [usize; 2], pairs: usize) -> BufferLayout {
        let [width, height] = size;
        let own = backend == ImageFilterBackend::Fused && ImageGroups::fit(facts, width, height);
        BufferLayout::default()
            .with::<[f32; 2]>(SPECTRA, pairs * width * height)
            .with_if::<[f32; 2]>(!own, "memory of the library", pairs * width * height)
            .with::<[f32; 2]>("frequencies along bins", width)
            .with::<[f32; 2]>("frequencies along rows", height)
            .with_if::<[f32; 2]>(own, "factors along bins", width)
            .with_if::<[f32; 2]>(own, "factors along rows", height)
    }

    /// Filters the wanted rows, using the rows that were read around them, `[row][projection][bin]`. Returns the event
    /// of the last kernel, without waiting for it.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn run(
        &mut self,
        session: &Session,
        from: &Buffer<f32>,
        part: &ImagePart,
        to: &DeviceRows,
    ) -> Result<Option<Event>> {
        part.check()?;
        let ImagePart { read, wanted, projections } = part;
        let [_, height] = self.size;
        if wanted.len() > height {
            return Err(Error::Internal(format!("{} rows in images of {height}", wanted.len())));
        }
        let all = projections.div_ceil(2);
        let mut filtered = None;
        for start in (0..all).step_by(self.pairs) {
            let rows = PairsOfRows {
                from,
                to,
                projections: *projections,
                start,
                pairs: self.pairs.min(all - start),
                first: wanted.start - read.start,
                wanted: wanted.len(),
                last: read.len() - 1,
            };
            filtered = Some(match self.kernels {
                ImageKernels::Own(_) => self.run_own(session, &rows)?,
                ImageKernels::Library(_) => self.run_library(session, &rows)?,
            });
        }
        Ok(filtered)
    }

    fn scale(&self) -> f32 {
        let [width, height] = self.size;
        1.0 / (width * height) as f32
    }

    fn run_own(&self, session: &Session, of: &PairsOfRows) -> Result<Event> {
        let ImageKernels::Own(own) = &self.kernels else {
            return Err(Error::Internal("a library transforms these images".into()));
        };
        let ImageGroups { width, height, rows, columns, .. } = own.groups;
        let [of_rows, of_columns] = [width, height].map(ImageGroups::items);
        let spectra = of.pairs * width * height;
        let forward = session
            .launch(&own.transform_rows, "transform_image_rows")
            .buffer(of.from, of.read_len(self.bins), ROWS)?
            .buffer(&self.spectra, spectra, SPECTRA)?
            .buffer(&own.turns_of_rows, width, "factors along bins")?
            .value(self.bins as i32)?
            .value(of.projections as i32)?
            .value(of.start as i32)?
            .value(of.first as i32)?
            .value(of.wanted as i32)?
            .value(of.last as i32)?;
        let filter = session
            .launch(&own.columns, "filter_image_columns")
            .buffer(&self.spectra, spectra, SPECTRA)?
            .buffer(&self.along_bins, width, "frequencies along bins")?
            .buffer(&self.along_rows, height, "frequencies along rows")?
            .buffer(&own.turns_of_columns, height, "factors along rows")?
            .value(of.wanted as i32)?
            .value(self.sharpening)?
            .value(self.scale())?;
        let back = session
            .launch(&own.restore_rows, "restore_image_rows")
            .buffer(&self.spectra, spectra, SPECTRA)?
            .rows(of.to, of.wanted, of.projections * self.bins)?
            .buffer(&own.turns_of_rows, width, "factors along bins")?
            .value(of.to.first as u64)?
            .value(of.to.stride as u64)?
            .value(self.bins as i32)?
            .value(of.projections as i32)?
            .value(of.start as i32)?
            .value(of.wanted as i32)?
            .value(height as i32)?;
        let of_back = [of_rows, of.wanted.next_multiple_of(rows), of.pairs];
        forward.among_uploads().run(&[of_rows, height, of.pairs], Some(&[of_rows, rows, 1]))?;
        filter.among_uploads().run(&[width, of_columns, of.pairs], Some(&[columns, of_columns, 1]))?;
        back.among_uploads().run(&of_back, Some(&[of_rows, rows, 1]))
    }

    fn run_library(&mut self, session: &Session, of: &PairsOfRows) -> Result<Event> {
        let (scale, [width, height], bins) = (self.scale(), self.size, self.bins);
        let ImageFilter { kernels, spectra, along_bins, along_rows, sharpening, .. } = self;
        let ImageKernels::Library(LibraryKernels { make, filter, store, transform, group }) = kernels else {
            return Err(Error::Internal("no library transforms these images".into()));
        };
        let (group, images) = ([*group, 1, 1], [width, height, of.pairs]);
        let count = of.pairs * width * height;
        // widths are multiples of the group, both powers of two
        let make = session
            .launch(make, "make_images")
            .buffer(of.from, of.read_len(bins), ROWS)?
            .buffer(spectra, count, SPECTRA)?
            .value(bins as i32)?
            .value(of.projections as i32)?
            .value(of.start as i32)?
            .value(of.first as i32)?
            .value(of.wanted as i32)?
            .value(of.last as i32)?;
        make.among_uploads().run(&images, Some(&group))?;
        transform.forward(session, spectra)?;
        let filter = session
            .launch(filter, "filter_spectra_of_images")
            .buffer(spectra, count, SPECTRA)?
            .buffer(along_bins, width, "frequencies along bins")?
            .buffer(along_rows, height, "frequencies along rows")?
            .value(*sharpening)?
            .value(scale)?;
        filter.among_uploads().run(&images, Some(&group))?;
        transform.backward(session, spectra)?;
        let store = session
            .launch(store, "store_images")
            .buffer(spectra, count, SPECTRA)?
            .rows(of.to, of.wanted, of.projections * bins)?
            .value(of.to.first as u64)?
            .value(of.to.stride as u64)?
            .value(bins as i32)?
            .value(of.projections as i32)?
            .value(of.start as i32)?
            .value(width as i32)?
            .value(height as i32)?;
        store.among_uploads().run(&[bins.next_multiple_of(group[0]), of.wanted, of.pairs], Some(&group))
    }
}

/// Returns the work-groups with which the device's own kernels transform images; `None` if they do not.
fn own_groups(session: &Session, [width, height]: [usize; 2]) -> Option<ImageGroups> {
    let fused = session.image_backend == ImageFilterBackend::Fused;
    fused.then(|| ImageGroups::new(session.step_target(), width, height)).flatten()
}

impl OwnKernels {
    fn new(session: &Session, groups: ImageGroups, layout: &BufferLayout) -> Result<Self> {
        let rows = session.build(&generate_image_rows(groups)?)?;
        let columns = session.build(&generate_image_columns(groups)?)?;
        Ok(OwnKernels {
            transform_rows: session.kernel(&rows, "transform_image_rows")?,
            restore_rows: session.kernel(&rows, "restore_image_rows")?,
            columns: session.kernel(&columns, "filter_image_columns")?,
            groups,
            turns_of_rows: layout.constant(session, "factors along bins", &turns(groups.width))?,
            turns_of_columns: layout.constant(session, "factors along rows", &turns(groups.height))?,
        })
    }
}

impl LibraryKernels {
    fn new(session: &Session, size: [usize; 2], pairs: usize) -> Result<Self> {
        let Some(transforms) = session.image_transforms else {
            let [width, height] = size;
            return Err(Error::Internal(format!("no library for images of {width} x {height}")));
        };
        let program = session.build(&generate_whole_images(session.step_target())?)?;
        Ok(LibraryKernels {
            make: session.kernel(&program, "make_images")?,
            filter: session.kernel(&program, "filter_spectra_of_images")?,
            store: session.kernel(&program, "store_images")?,
            transform: transforms(session, size, pairs)?,
            group: whole_image_group(session.step_target()),
        })
    }
}
