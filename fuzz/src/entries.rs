//! Where text and bytes of strangers come in: the fuzz targets and `tests/host/hostile.rs` feed these. Whatever the input,
//! the outcome is a result or an error, never a panic, and memory stays within bounds.

use fbp::cli::{InputArgs, ReconstructArgs, ScanArgs};
use fbp::error::{Error, Result};
use fbp::geometry::{self, AngleWeights};
use fbp::job::Job;
use fbp::kernel::{KernelSpec, Problem};
use fbp::layout::codec::{BitPacking, Bitshuffle, ChunkFilter, Compressor, DecodeBuffers, Pipeline};
use fbp::layout::hdf5::{ChunkIndex, index};
use fbp::plan::{Scan, StackShape};
use fbp::profile::Profile;
use fbp::recipe::{self, Recipe, ScanRecipe};
use fbp::sink::Target;
use fbp::source::{RawVolume, Stack, xrm};
use std::io::Write;
use std::sync::atomic::AtomicBool;
use tempfile::{Builder, NamedTempFile};

type Entry = fn(&[u8]) -> Result<()>;

/// Every entry with its name, which is that of its seeds in `fuzz/corpus`.
pub const ALL: [(&str, Entry); 11] = [
    ("tiff", tiff),
    ("edf", edf),
    ("raw", raw),
    ("xrm", compound),
    ("zarr", zarr),
    ("chunk", chunk),
    ("index", index),
    ("profile", profile),
    ("run", run),
    ("angles", angles),
    ("output", output),
];

/// Values that are read from one page at most.
const VALUES: usize = 1 << 20;

fn file(data: &[u8]) -> Result<NamedTempFile> {
    let failed = |e: std::io::Error| Error::Output(format!("a temporary file: {e}").into());
    let mut file = NamedTempFile::new().map_err(failed)?;
    file.write_all(data).map_err(failed)?;
    Ok(file)
}

fn text(data: &[u8]) -> Result<&str> {
    std::str::from_utf8(data).map_err(|e| Error::Input(format!("not text: {e}").into()))
}

/// A TIFF: its headers, and the first and last rows of the first pages.
pub fn tiff(data: &[u8]) -> Result<()> {
    let file = file(data)?;
    read_ends(&file.path().to_string_lossy())
}

/// The first and last rows of a stack's first pages.
fn read_ends(spec: &str) -> Result<()> {
    read_ends_as(spec, "--sinograms")
}

fn read_ends_as(spec: &str, flag: &str) -> Result<()> {
    let stack = Stack::open(spec, flag)?;
    let rows = (VALUES / stack.width()).clamp(1, stack.height());
    let mut values = vec![0f32; rows * stack.width()];
    for page in 0..stack.len().min(4) {
        stack.read_rows(page, 0..rows, &mut values)?;
        stack.read_rows(page, stack.height() - rows..stack.height(), &mut values)?;
    }
    Ok(())
}

/// An EDF file: its headers, and the first frames.
pub fn edf(data: &[u8]) -> Result<()> {
    let failed = |e: std::io::Error| Error::Output(format!("a temporary file: {e}").into());
    let mut file = Builder::new().suffix(".edf").tempfile().map_err(failed)?;
    file.write_all(data).map_err(failed)?;
    read_ends(&file.path().to_string_lossy())
}

/// A compound file of Xradia's microscopes: what it says of a scan, and the first images.
pub fn compound(data: &[u8]) -> Result<()> {
    let failed = |e: std::io::Error| Error::Output(format!("a temporary file: {e}").into());
    let mut file = Builder::new().suffix(".txrm").tempfile().map_err(failed)?;
    file.write_all(data).map_err(failed)?;
    read_ends_as(&file.path().to_string_lossy(), "--projections")?;
    xrm::contents(file.path()).map(drop)
}

/// A raw volume: what its word says after the name of the file, up to the first NUL, and after that the file.
pub fn raw(data: &[u8]) -> Result<()> {
    let (word, bytes) = data.split_at(data.iter().position(|&byte| byte == 0).unwrap_or(data.len()));
    let file = file(bytes.get(1..).unwrap_or_default())?;
    let spec = format!("{},{}", file.path().display(), text(word)?);
    let known = RawVolume::parse(&spec, "--raw");
    assert!(known.is_err() || RawVolume::looks_like(&spec), "{spec}");
    known.and_then(|_| read_ends(&spec))
}

/// A directory of Zarr: its metadata up to the first NUL, of a group or an array, and after it the bytes of its first
/// chunk.
pub fn zarr(data: &[u8]) -> Result<()> {
    let failed = |e: std::io::Error| Error::Output(format!("a temporary directory: {e}").into());
    let directory = tempfile::tempdir().map_err(failed)?;
    let (meta, chunk) = data.split_at(data.iter().position(|&byte| byte == 0).unwrap_or(data.len()));
    let chunk = chunk.get(1..).unwrap_or_default();
    let third = meta.windows(9).any(|window| window == b"node_type");
    let put = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(directory.path()))?;
        std::fs::write(path, bytes)
    };
    put(if third { "zarr.json" } else { ".zarray" }, meta).map_err(failed)?;
    for name in ["0.0.0", "0.0.0.0.0", "c/0/0/0"] {
        put(name, chunk).map_err(failed)?;
    }
    read_ends(&directory.path().to_string_lossy())
}

/// A chunk of HDF5 or Zarr: its compressor, bytes of a sample, filters around it and those skipped, the length of its values,
/// and what is stored.
pub fn chunk(data: &[u8]) -> Result<()> {
    let Some((&[kind, size, filters, skipped, low, high], stored)) = data.split_first_chunk() else { return Ok(()) };
    let size = usize::from(size % 16) + 1;
    let bits = |packing| Compressor::Bitshuffle(Bitshuffle { size, block: 64, packing });
    let compressor = match kind % 11 {
        0 => Compressor::Gzip,
        1 => Compressor::Zlib,
        2 => Compressor::Zstd,
        3 => Compressor::Lz4,
        4 => Compressor::Lz4Blocks,
        5 => bits(BitPacking::None),
        6 => bits(BitPacking::Lz4),
        7 => bits(BitPacking::Zstd),
        8 => Compressor::Blosc,
        9 => Compressor::Lzf,
        _ => Compressor::Blosc2,
    };
    let around =
        [ChunkFilter::Shuffle, ChunkFilter::Fletcher32, ChunkFilter::Compressed(compressor), ChunkFilter::Fletcher32];
    let used = around.into_iter().enumerate().filter(|(place, _)| *place == 2 || filters >> place & 1 == 1);
    let Some(pipeline) = Pipeline::new(used.map(|(_, filter)| filter).collect(), size) else { return Ok(()) };
    let length = usize::from(u16::from_le_bytes([low, high]));
    let mut buffers = DecodeBuffers::default();
    buffers.bytes.extend(stored);
    let decoded = pipeline.decode(skipped.into(), &mut buffers, length, &(length / 3..length));
    assert!(decoded.is_err() || buffers.bytes.len() == length);
    assert!(buffers.held() <= 8 * (stored.len() + length + 64), "{} bytes are held", buffers.held());
    decoded.map_err(|e| Error::Input(e.to_string().into()))
}

/// The index of the chunks of an HDF5 dataset: what is known of the dataset, and after it the file.
pub fn index(data: &[u8]) -> Result<()> {
    let Some((known, bytes)) = data.split_first_chunk::<14>() else { return Ok(()) };
    let three = |at: usize| [0, 1, 2].map(|side| u64::from(known[at + side]));
    let limit = |side: usize| (usize::from(known[0] >> 1) != side + 1).then(|| three(4)[side]);
    let of = ChunkIndex {
        header: known[12].into(),
        rank: 2 + usize::from(known[0] & 1),
        shape: three(1),
        limits: [limit(0), limit(1), limit(2)],
        chunk: three(7),
        bytes: known[13].into(),
        count: u16::from_le_bytes([known[10], known[11]]).into(),
    };
    let file = file(bytes)?;
    match index::chunks(file.as_file(), &of) {
        Some(found) => assert_eq!(found.len(), of.count),
        None => return Err(Error::Input("the chunks are not listed here".into())),
    }
    Ok(())
}

/// A profile: everything that `fbp profiles check` looks at, and the kernels that it leads to.
pub fn profile(data: &[u8]) -> Result<()> {
    let profile = Profile::parse(text(data)?, "fuzz")?;
    for offer in profile.offers() {
        for texel in offer.texels() {
            for problem in [Problem::new(1, true), Problem::new(9999, false)] {
                KernelSpec::new(&offer, &profile, texel, problem, None).generate()?;
            }
        }
    }
    Ok(())
}

/// A run file, as far as it goes without data: typed, checked, joined with a stack, and saved again.
pub fn run(data: &[u8]) -> Result<()> {
    let file = file(data)?;
    let flags = ReconstructArgs { config: Some(file.path().to_owned()), dry_run: true, ..Default::default() };
    let flags = recipe::merge(flags, &AtomicBool::new(false))?;
    let job = Job::new(&flags)?;
    let even: Vec<f64> = (0..9).map(f64::from).collect();
    let stack = StackShape {
        slices: 64,
        projections: 9,
        bins: 512,
        binning: 1,
        angles: Some(even.clone()),
        shifts: Some(even),
        weights: None,
    };
    let scan = Scan::new(&job, &stack)?;
    finite(&scan.geometry.weights);
    finite(&scan.geometry.axis);
    assert!(scan.slices.iter().all(|slice| scan.run_slices.contains(slice)));
    let saved = recipe::run_file(&flags)?;
    std::fs::write(file.path(), &saved).map_err(|e| Error::output(file.path(), e.to_string()))?;
    let flags = ReconstructArgs { config: Some(file.path().to_owned()), ..Default::default() };
    let again = recipe::merge(flags, &AtomicBool::new(false))?;
    assert_eq!(recipe::run_file(&again)?, saved, "a saved run is another one");
    Ok(())
}

/// A file of angles.
pub fn angles(data: &[u8]) -> Result<()> {
    let angles = geometry::parse_numbers(text(data)?, "--angles")?;
    let stack = StackShape {
        slices: 1,
        projections: angles.len(),
        bins: 16,
        binning: 1,
        angles: Some(angles),
        shifts: None,
        weights: None,
    };
    thread_local! {
        static JOB: Result<Job> = Job::new(&ReconstructArgs {
            input: InputArgs { sinograms: Some("s".into()), ..Default::default() },
            scan: ScanArgs { angles: Some("a.txt".into()), ..Default::default() },
            dry_run: true,
            ..Default::default()
        });
    }
    let job = JOB.with(|job| job.as_ref().cloned().map_err(|e| Error::usage(e.to_string())))?;
    for weights in [AngleWeights::Spacing, AngleWeights::Uniform] {
        let scan = Scan::new(&with_weights(&job, weights), &stack)?;
        finite(&scan.geometry.weights);
        let sum: f64 = scan.geometry.weights.iter().sum();
        assert!((sum - std::f64::consts::PI).abs() < 1e-6, "weights sum to {sum}");
    }
    Ok(())
}

fn with_weights(job: &Job, weights: AngleWeights) -> Job {
    let scan = ScanRecipe { weights, ..job.recipe.scan.clone() };
    Job { recipe: Recipe { scan, ..job.recipe.clone() }, execution: job.execution.clone() }
}

/// A word for `--output`: slices get paths of their own in its directory.
pub fn output(data: &[u8]) -> Result<()> {
    let target = Target::parse(text(data)?)?;
    let paths = [0, 1, 99_999, 100_000, usize::MAX].map(|slice| target.path_of(slice));
    if !target.one_file() {
        for (at, path) in paths.iter().enumerate() {
            assert_eq!(path.parent(), Some(target.directory()), "{path:?}");
            assert!(!paths[..at].contains(path), "two slices in {path:?}");
        }
    }
    Ok(())
}

fn finite(values: &[f64]) {
    assert!(values.iter().all(|value| value.is_finite()), "{values:?}");
}
