//! Injected faults, so that tests can see the effects of a broken driver: only in builds with the feature `test-hooks`,
//! which released programs do not have.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Faults, separated by commas:
/// * part of a kernel's name, such as `vector` or `image`: these kernels compute incorrect values;
/// * `allocation=BYTES`: larger buffers on a device cannot be allocated;
/// * `classic=BYTES`: outputs of more bytes are BigTIFF;
/// * `part=BYTES`: a block of rows that the host keeps is in parts of so many bytes, if batches are not larger;
/// * `lost=D:N`: device number D of a run fails after N chunks; the others wait for that before they compute;
/// * `hold=N` or `hold=N:FILE`: devices wait after N chunks, until a signal stops the run, or until FILE is there;
/// * `hdf5=crash` or `hdf5=loop`: the process that examines an HDF5 file does this, with `-rows` the one that reads rows of it;
///   `hdf5-seconds=N`: they have N seconds of processor time.
const VARIABLE: &str = "FBP_TEST_FAULT";

/// Whether `fbp tune` also tries a fast but incorrect candidate, whose kernel only gets some of the projections.
pub(crate) fn planted() -> bool {
    cfg!(feature = "test-hooks") && std::env::var_os("FBP_TEST_PLANT").is_some()
}

/// More options for the compiler of a device, for one whose optimiser is wrong: `FBP_TEST_OPTIONS`.
pub(crate) fn compiler_options() -> String {
    if !cfg!(feature = "test-hooks") {
        return String::new();
    }
    std::env::var("FBP_TEST_OPTIONS").map(|options| format!(" {options}")).unwrap_or_default()
}

/// The requested faults, if any.
fn asked() -> Option<String> {
    if !cfg!(feature = "test-hooks") {
        return None;
    }
    std::env::var(VARIABLE).ok().filter(|words| !words.is_empty())
}

/// Suffix for the driver's version, so that no fault is attributed to the driver itself.
pub(crate) fn mark() -> String {
    let wrong = |words: &String| words.split(',').any(|word| !word.contains('='));
    asked().filter(wrong).map(|words| format!(" with {VARIABLE}={words}")).unwrap_or_default()
}

/// Error in bins of the positions that the kernel of this name computes.
pub(crate) fn shift(kernel: &str) -> f64 {
    let hit = asked().is_some_and(|words| words.split(',').any(|word| kernel.split('-').any(|part| part == word)));
    if hit { 3.0 } else { 0.0 }
}

/// The value of `NAME=`.
fn value(name: &str) -> Option<String> {
    asked()?.split(',').find_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

/// Whether the allocation of a buffer of this size in bytes fails.
pub(crate) fn allocation_fails(bytes: usize) -> bool {
    value("allocation").and_then(|most| most.parse().ok()).is_some_and(|most: usize| bytes > most)
}

/// Whether device number `place` of a run fails now, after `chunks` chunks.
pub(crate) fn lost(place: usize, chunks: usize) -> bool {
    let lost = value("lost").as_deref() == Some(&format!("{place}:{chunks}"));
    if lost {
        LOST.store(true, Relaxed);
    }
    lost
}

/// Whether a device is to fail. The others wait for it, so it needs its chunks even if it seems to be slower than they are.
pub(crate) fn loses_a_device() -> bool {
    value("lost").is_some()
}

/// Whether the device that is to fail has failed.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether device number `place` of a run still has to wait after `chunks` chunks.
pub(crate) fn held(place: usize, chunks: usize) -> bool {
    let before_loss = || {
        let lost: usize = value("lost")?.split_once(':')?.0.parse().ok()?;
        Some(lost != place && !LOST.load(Relaxed))
    };
    let hold = || {
        let hold = value("hold")?;
        let (after, file) = hold.split_once(':').map_or((&*hold, None), |(after, file)| (after, Some(file)));
        Some(after.parse() == Ok(chunks) && !file.is_some_and(|file| Path::new(file).exists()))
    };
    before_loss().unwrap_or(false) || hold().unwrap_or(false)
}

/// The size in bytes above which an output is BigTIFF.
pub(crate) fn classic_limit() -> Option<u64> {
    value("classic")?.parse().ok()
}

/// Most bytes of a part of a block of rows that the host keeps.
pub(crate) fn kept_part() -> Option<usize> {
    value("part")?.parse().ok()
}

/// What a process does in place of reading an HDF5 file.
#[cfg(feature = "hdf5")]
pub(crate) fn hdf5() -> Option<String> {
    value("hdf5")
}

/// Seconds of processor time that such a process may take.
#[cfg(feature = "hdf5")]
pub(crate) fn hdf5_seconds() -> Option<u64> {
    value("hdf5-seconds")?.parse().ok()
}
