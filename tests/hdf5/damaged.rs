//! Damaged files: whatever the library makes of them, the program ends by itself, with results or with a message.
//!
//! `FBP_TEST_DAMAGED` is how many files are damaged, and `FBP_TEST_SEED` what decides the damage.

use super::{Counts, FRAMES, ROWS, WIDTH, alone, cast, exchange, file, nxtomo, volume};
use crate::support::cli::{Lab, Pages, assert_no_panic, text};
use hdf5_metno::dataset::Layout;
use hdf5_metno::filters::ScaleOffset;
use hdf5_metno::plist::DatasetCreateBuilder;
use hdf5_metno::{Dataset, Extent, File};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::process::Output;
use std::time::{Duration, Instant};

const SHAPE: (usize, usize, usize) = (FRAMES, ROWS, WIDTH);

/// A file that is to be damaged.
struct Sample {
    name: &'static str,
    /// The file that is read, and refers to this one.
    read: &'static str,
    bytes: Vec<u8>,
    /// Bytes that are values: damage to these harms nobody.
    values: Vec<Range<usize>>,
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Where the values of a dataset lie in its file.
fn values(dataset: &Dataset) -> Vec<Range<usize>> {
    let chunks = (0..dataset.num_chunks().unwrap_or(0)).map(|index| dataset.chunk_info(index).unwrap());
    let chunks = chunks.map(|chunk| (chunk.addr, chunk.size));
    let contiguous = dataset.offset().map(|at| (at, dataset.storage_size()));
    chunks.chain(contiguous).map(|(at, size)| at as usize..(at + size) as usize).collect()
}

fn sample(lab: &Lab, name: &'static str, read: &'static str, dataset: &str) -> Sample {
    let values = values(&File::open(lab.path(name)).unwrap().dataset(dataset).unwrap());
    Sample { name, read, bytes: fs::read(lab.path(name)).unwrap(), values }
}

/// A file of Data Exchange whose projections are in chunks; `latest` is the newest form of all structures.
fn chunked(
    lab: &Lab,
    counts: &Counts,
    name: &'static str,
    latest: bool,
    grows: bool,
    filters: impl Fn(&mut DatasetCreateBuilder) -> &mut DatasetCreateBuilder,
) -> Sample {
    let options = |latest: bool| match latest {
        true => File::with_options().with_fapl(|access| access.libver_latest()).create(lab.path(name)),
        false => File::create(lab.path(name)),
    };
    let new = options(latest).unwrap();
    exchange(&new, counts);
    let frames = if grows { Extent::resizable(FRAMES) } else { Extent::fixed(FRAMES) };
    let shape = [frames, Extent::fixed(ROWS), Extent::fixed(WIDTH)];
    let data = new.new_dataset::<u16>().shape(shape).chunk((1, ROWS, WIDTH));
    data.with_dcpl(filters)
        .create("/exchange/data")
        .unwrap()
        .write_raw(&cast(&counts.projections, |v| v as u16))
        .unwrap();
    drop(new);
    sample(lab, name, name, "/exchange/data")
}

/// A file for each way in which data and structures are stored.
fn samples(lab: &Lab, counts: &Counts) -> Vec<Sample> {
    let contiguous = file(lab, "contiguous.h5");
    exchange(&contiguous, counts);
    volume(&contiguous, "/exchange/data", &counts.projections, |v| v as u16);
    drop(contiguous);
    nxtomo(&file(lab, "scan.nx"), "/entry", counts, true);
    let whole = file(lab, "virtual.h5");
    exchange(&whole, counts);
    let mut builder = whole.new_dataset::<u16>().shape(SHAPE);
    let half = FRAMES / 2;
    for (part, pages) in counts.projections.pages.chunks(half).enumerate() {
        let name = format!("part_{part}.h5");
        let values = cast(&Pages { width: WIDTH, pages: pages.to_vec() }, |v| v as u16);
        let data = file(lab, &name).new_dataset::<u16>().shape((half, ROWS, WIDTH)).chunk((1, ROWS, WIDTH)).deflate(4);
        data.create("/d").unwrap().write_raw(&values).unwrap();
        let to = (part * half..(part + 1) * half, .., ..);
        builder = builder.virtual_map(&name, "/d", (half, ROWS, WIDTH), (.., .., ..), SHAPE, to);
    }
    let data = builder.create("/exchange/data").unwrap();
    assert_eq!(data.layout(), Layout::Virtual);
    drop((data, builder, whole));
    lab.ok("reconstruct --hdf5 contiguous.h5 --output slices.h5");
    lab.ok("reconstruct --hdf5 contiguous.h5 --output compressed.h5 --compression deflate");
    vec![
        sample(lab, "contiguous.h5", "contiguous.h5", "/exchange/data"),
        sample(lab, "scan.nx", "scan.nx", "/entry/instrument/detector/data"),
        sample(lab, "virtual.h5", "virtual.h5", "/exchange/data"),
        sample(lab, "part_0.h5", "virtual.h5", "/d"),
        sample(lab, "slices.h5", "slices.h5", "/entry/reconstruction/results/data"),
        sample(lab, "compressed.h5", "compressed.h5", "/entry/reconstruction/results/data"),
        chunked(lab, counts, "gzip.h5", false, false, |data| data.shuffle().deflate(4)),
        chunked(lab, counts, "latest.h5", true, true, |data| data.shuffle().deflate(4)),
        chunked(lab, counts, "array.h5", true, false, |data| data.fletcher32()),
        chunked(lab, counts, "scaled.h5", false, true, |data| data.scale_offset(ScaleOffset::Integer(0))),
        chunked(lab, counts, "packed.h5", false, false, |data| data.nbit()),
    ]
}

/// One to four bytes are changed, most of them where structures are, or the end is missing.
fn damage(sample: &Sample, random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = sample.bytes.clone();
    if random.random_ratio(1, 16) {
        bytes.truncate(random.random_range(8..bytes.len()));
        return bytes;
    }
    let structure = |at: &usize| sample.bytes[*at] != 0 && !sample.values.iter().any(|range| range.contains(at));
    let structures: Vec<usize> = (0..bytes.len()).filter(structure).collect();
    for _ in 0..random.random_range(1..=4) {
        let at = match random.random_ratio(3, 4) {
            true => structures[random.random_range(0..structures.len())],
            false => random.random_range(0..bytes.len()),
        };
        bytes[at] = match random.random_range(0..4) {
            0 => 0xff,
            1 => bytes[at] ^ (1 << random.random_range(0..8)),
            2 => bytes[at].wrapping_add(1),
            _ => random.random(),
        };
    }
    bytes
}

/// The way a command ended, by its message; an error if it did not end as it should.
fn outcome(output: &Output) -> Result<&'static str, String> {
    let err = text(&output.stderr);
    let failures = ["crashes (", "does not come to an end", "was killed", "fails ("];
    match output.status.code() {
        Some(0) => Ok("read"),
        Some(3) => {
            let of_library = failures.iter().find(|words| err.contains("the HDF5 library") && err.contains(*words));
            Ok(of_library.unwrap_or(&"refused"))
        }
        _ => Err(format!("{}\n{err}", output.status)),
    }
}

/// Every file is described, and all of its values are read.
#[test]
fn no_damaged_file_brings_the_program_down() {
    let _alone = alone();
    let lab = Lab::new();
    let samples = samples(&lab, &Counts::new(&lab));
    let mut random = ChaCha8Rng::seed_from_u64(number("FBP_TEST_SEED", 1));
    let mut outcomes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut slowest = Duration::ZERO;
    for index in 0..number("FBP_TEST_DAMAGED", 300) as usize {
        let sample = &samples[index % samples.len()];
        fs::write(lab.path(sample.name), damage(sample, &mut random)).unwrap();
        for command in ["info", "preprocess -o out --overwrite --hdf5"] {
            let args = format!("{command} {}", sample.read);
            let started = Instant::now();
            let output = lab.command(&args).env("FBP_TEST_FAULT", "hdf5-seconds=2").output().unwrap();
            slowest = slowest.max(started.elapsed());
            let word = command.split(' ').next().unwrap();
            let outcome = outcome(&output).unwrap_or_else(|ended| {
                let kept = std::env::temp_dir().join(format!("damaged-{index}-{}", sample.name));
                fs::copy(lab.path(sample.name), &kept).unwrap();
                panic!("fbp {args} ended with {ended}\nthe damaged {} is {}", sample.name, kept.display());
            });
            assert_no_panic(&text(&output.stderr), &args);
            *outcomes.entry((word, outcome)).or_default() += 1;
        }
        fs::write(lab.path(sample.name), &sample.bytes).unwrap();
    }
    println!("{outcomes:?}, the slowest {slowest:?}");
    // damage was done, and not all of it was fatal
    assert!(outcomes.contains_key(&("info", "read")) && outcomes.contains_key(&("info", "refused")), "{outcomes:?}");
}

/// What is said of a library that crashes or does not end, in the process that examines and in the one that reads rows.
#[test]
fn failures_of_the_library_are_reported() {
    let _alone = alone();
    let lab = Lab::new();
    samples(&lab, &Counts::new(&lab));
    let advice = ["this file, which is damaged", "copy it again", "h5dump"];
    let fails = |args: &str, fault: &str, title: &str, how: &str| {
        let output = lab.command(args).env("FBP_TEST_FAULT", fault).output().unwrap();
        let words: Vec<&str> = [title, "the HDF5 library (version", how].into_iter().chain(advice).collect();
        lab.check_failure(&output, args, 3, &words);
    };
    let (crash, endless) = ("crashes (SIGABRT) on", "does not come to an end in 1 s with");
    fails("info gzip.h5", "hdf5=crash", "fbp: gzip.h5: ", crash);
    fails("info gzip.h5", "hdf5=loop,hdf5-seconds=1", "fbp: gzip.h5: ", endless);
    fails("info scan.nx::/entry", "hdf5=crash", "fbp: PATH: scan.nx: ", crash);
    fails("compare slices.h5 slices.h5", "hdf5=crash", "slices.h5: ", crash);
    let run = "reconstruct --hdf5 virtual.h5 --output out";
    fails(run, "hdf5=crash", "fbp: --hdf5 virtual.h5: ", crash);
    let process = "preprocess --hdf5 packed.h5 --output out";
    fails(process, "hdf5=crash-rows", "fbp: --hdf5: packed.h5: /exchange/data frame ", crash);
    fails(process, "hdf5=loop-rows,hdf5-seconds=1", "fbp: --hdf5: packed.h5: /exchange/data frame ", endless);

    // an output that cannot be examined is none of this run, and stays
    let before = fs::read(lab.path("slices.h5")).unwrap();
    let resume = "reconstruct --hdf5 contiguous.h5 --output slices.h5 --resume";
    let output = lab.command(resume).env("FBP_TEST_FAULT", "hdf5=crash").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(fs::read(lab.path("slices.h5")).unwrap(), before);
}
