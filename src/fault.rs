//! Injected faults, so that tests can see the effects of a broken driver. They exist only in builds with the feature
//! `test-hooks`, which released programs do not have.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Environment variable with faults, separated by commas:
/// * part of a kernel's name, such as `vector` or `image`: these kernels compute incorrect values;
/// * `allocation=BYTES`: larger buffers on a device cannot be allocated;
/// * `classic=BYTES`: larger outputs are BigTIFF;
/// * `part=BYTES`: a block of rows that the host keeps is divided into parts of this size, unless batches are larger;
/// * `lost=D:N`: device number D of a run fails after N chunks; the other devices wait for the failure before they
///   compute;
/// * `hold=N` or `hold=N:FILE`: devices wait after N chunks until a signal stops the run, or until FILE exists;
/// * `hdf5=crash` or `hdf5=loop`: the process that examines an HDF5 file crashes or loops; with the suffix `-rows`, the
///   process that reads its rows does;
/// * `hdf5-seconds=N`: these processes have N seconds of processor time.
const VARIABLE: &str = "FBP_TEST_FAULT";

/// Reports whether `fbp tune` also tries a fast but incorrect candidate, whose kernel only gets some of the
/// projections.
pub(crate) fn planted() -> bool {
    cfg!(feature = "test-hooks") && std::env::var_os("FBP_TEST_PLANT").is_some()
}

/// Reports whether built programs are not stored for later runs: `FBP_TEST_UNSTORED`. PoCL compiles a kernel a second time
/// when it is asked for the binary.
pub(crate) fn stores_no_programs() -> bool {
    cfg!(feature = "test-hooks") && std::env::var_os("FBP_TEST_UNSTORED").is_some()
}

/// Environment variable with a fault in kernels: `OLD => NEW`, text in the source of programs and what replaces it. A program
/// without OLD stays as it is. `scripts/faults` has a list.
const CHANGE: &str = "FBP_TEST_CHANGE";

/// Returns the source of a program with the fault that `FBP_TEST_CHANGE` describes, if any.
pub(crate) fn changed(source: &str) -> Cow<'_, str> {
    if !cfg!(feature = "test-hooks") {
        return source.into();
    }
    match std::env::var(CHANGE) {
        Ok(change) => match change.split_once(" => ") {
            Some((old, new)) if source.contains(old) => source.replace(old, new).into(),
            _ => source.into(),
        },
        Err(_) => source.into(),
    }
}

/// Returns additional options for the compiler of a device whose optimiser is wrong: `FBP_TEST_OPTIONS`.
pub(crate) fn compiler_options() -> String {
    if !cfg!(feature = "test-hooks") {
        return String::new();
    }
    std::env::var("FBP_TEST_OPTIONS").map(|options| format!(" {options}")).unwrap_or_default()
}

/// Returns the requested faults, if any.
fn asked() -> Option<String> {
    if !cfg!(feature = "test-hooks") {
        return None;
    }
    std::env::var(VARIABLE).ok().filter(|words| !words.is_empty())
}

/// Returns a suffix for the driver's version, so that no fault is attributed to the driver itself.
pub(crate) fn mark() -> String {
    if !cfg!(feature = "test-hooks") {
        return String::new();
    }
    let wrong = |words: &String| words.split(',').any(|word| !word.contains('='));
    let named = asked().filter(wrong).map(|words| format!(" with {VARIABLE}={words}")).unwrap_or_default();
    let change = std::env::var(CHANGE).ok();
    named + &change.map(|change| format!(" with {CHANGE}={change}")).unwrap_or_default()
}

/// Returns the error in bins of the positions that the kernel of this name computes.
pub(crate) fn shift(kernel: &str) -> f64 {
    let hit = asked().is_some_and(|words| words.split(',').any(|word| kernel.split('-').any(|part| part == word)));
    if hit { 3.0 } else { 0.0 }
}

/// Returns the value of `name=` among the faults.
fn value(name: &str) -> Option<String> {
    asked()?.split(',').find_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

/// Reports whether the allocation of a buffer of this size in bytes fails.
pub(crate) fn allocation_fails(bytes: usize) -> bool {
    value("allocation").and_then(|most| most.parse().ok()).is_some_and(|most: usize| bytes > most)
}

/// Reports whether device number `place` of a run fails now, after `chunks` chunks.
pub(crate) fn lost(place: usize, chunks: usize) -> bool {
    let lost = value("lost").as_deref() == Some(&format!("{place}:{chunks}"));
    if lost {
        LOST.store(true, Relaxed);
    }
    lost
}

/// Reports whether a device is to fail. The others wait for it, so it needs its chunks even if it seems to be slower.
pub(crate) fn loses_a_device() -> bool {
    value("lost").is_some()
}

/// True once the device that is to fail has failed.
static LOST: AtomicBool = AtomicBool::new(false);

/// Reports whether device number `place` of a run still has to wait after `chunks` chunks.
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

/// Returns the size in bytes above which an output is BigTIFF.
pub(crate) fn classic_limit() -> Option<u64> {
    value("classic")?.parse().ok()
}

/// Returns the largest number of bytes of a part of a block of rows that the host keeps.
pub(crate) fn kept_part() -> Option<usize> {
    value("part")?.parse().ok()
}

/// Returns the fault of a process that reads an HDF5 file.
#[cfg(feature = "hdf5")]
pub(crate) fn hdf5() -> Option<String> {
    value("hdf5")
}

/// Returns the seconds of processor time that a process that reads an HDF5 file may take.
#[cfg(feature = "hdf5")]
pub(crate) fn hdf5_seconds() -> Option<u64> {
    value("hdf5-seconds")?.parse().ok()
}
