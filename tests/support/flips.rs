//! Finished outputs with a flipped bit: what is kept of them reads as it was written.

use fbp::sink::{
    AllowedContents, Compression, Encoding, PageContent, SliceStamp, SliceState, SliceStorage, SliceWriter, Target,
};
use fbp::source::Stack;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::path::{Path, PathBuf};

/// Wide enough for a coarser level of Zarr.
const WIDTH: usize = 300;
const HEIGHT: usize = 6;
const SLICES: [usize; 3] = [3, 4, 11];

fn slice(index: usize) -> Vec<f32> {
    (0..WIDTH * HEIGHT).map(|i| ((i % WIDTH) as f32 / 90.0).sin() * 100.0 + (i / WIDTH + index) as f32).collect()
}

fn writer(spec: &Path, storage: SliceStorage) -> fbp::error::Result<SliceWriter> {
    let target = Target::parse(spec.to_str().unwrap())?;
    let size = Some("0.65 um".to_owned());
    let stamp = SliceStamp { run: "a".repeat(32), center: 4.5, pixel_size: size, per_centimetre: Some(15384.6) };
    let made = SliceWriter::create(target, WIDTH, HEIGHT, storage, &SLICES, AllowedContents::Anything, "fbp test")?;
    Ok(made.stamped(stamp).shared(&SLICES).with_run_file("padding = \"edge\"\n".into()))
}

fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.flat_map(|entry| files(&entry.path())).collect();
    all.sort();
    all
}

/// Values of slices as they are read from an output.
fn values(path: &Path, place: usize) -> Option<Vec<f32>> {
    let directory = path.is_dir() && path.extension().is_none_or(|extension| extension != "zarr");
    let (path, page) = match directory {
        true => (path.join(format!("slice_{:05}.tif", SLICES[place])), 0),
        false => (path.to_owned(), place),
    };
    let stack = Stack::open(path.to_str()?, "--sinograms").ok()?;
    let mut values = vec![0.0; WIDTH * HEIGHT];
    stack.read_rows(page, 0..HEIGHT, &mut values).ok()?;
    Some(values)
}

/// Writes an output, and flips `count` bits of its files one after the other, half of them in the first bytes of a file.
pub fn check(path: &Path, encoding: Encoding, storage: SliceStorage, count: usize, seed: u64) {
    let storage = SliceStorage { encoding, content: PageContent::Slices, ..storage };
    let made = writer(path, storage).unwrap();
    SLICES.iter().for_each(|&index| made.write(index, &slice(index)).unwrap());
    made.finish().unwrap();
    let parts = PathBuf::from(format!("{}.parts", path.display()));
    let all: Vec<PathBuf> = files(path).into_iter().chain(files(&parts)).collect();
    let whole: Vec<Option<Vec<f32>>> = (0..SLICES.len()).map(|place| values(path, place)).collect();
    assert!(whole.iter().all(Option::is_some), "{path:?}");
    let kept = || {
        // an output that does not say any more who wrote it is never replaced
        let Ok(writer) = writer(path, storage) else { return Vec::new() };
        let stored = writer.stored();
        let states = SLICES.map(|index| matches!(stored(index), SliceState::Complete(d) if d.slice == index));
        (0..SLICES.len()).filter(|&place| states[place]).collect()
    };
    assert_eq!(kept(), [0, 1, 2], "{path:?}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for flip in 0..count {
        let file = &all[random.random_range(0..all.len())];
        let mut bytes = fs::read(file).unwrap();
        let range = if flip % 2 == 0 { bytes.len().min(2048) } else { bytes.len() };
        let (at, bit) = (random.random_range(0..range), random.random_range(0..8));
        bytes[at] ^= 1 << bit;
        fs::write(file, &bytes).unwrap();
        for place in kept() {
            assert_eq!(values(path, place), whole[place], "{file:?}: bit {bit} of byte {at}, slice {place}");
        }
        bytes[at] ^= 1 << bit;
        fs::write(file, &bytes).unwrap();
    }
    assert_eq!(kept(), [0, 1, 2], "{path:?}");
}

/// Ways to store slices of a format.
pub fn storages(compressions: &[Compression]) -> impl Iterator<Item = (Encoding, SliceStorage)> + '_ {
    use fbp::sink::Dtype;
    [Dtype::F32, Dtype::U8].into_iter().flat_map(move |dtype| {
        let encoding = Encoding { dtype, range: Some((-150.0, 500.0)) };
        compressions.iter().map(move |&compression| (encoding, SliceStorage { compression, ..encoding.into() }))
    })
}

/// Bits to flip in every output, and the seed.
pub fn count(usual: usize) -> (usize, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    (number("FBP_TEST_FLIPS").unwrap_or(usual), number("FBP_TEST_SEED").unwrap_or(41) as u64)
}
