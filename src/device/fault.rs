//! A fault on purpose, so that tests can see what a broken driver leads to: only in builds with the feature
//! `test-hooks`, which no released program has.

/// Faults, separated by commas:
/// * part of a kernel's name, such as `vector` or `image`: these kernels go wrong;
/// * `allocation=BYTES`: buffers on a device that are larger cannot be had;
/// * `lost=D:N`: the device at place D of a run fails after N chunks.
const VARIABLE: &str = "FBP_TEST_FAULT";

/// Whether `fbp tune` also tries a candidate that is fast and wrong, because its kernel is told of a few projections only.
pub(crate) fn planted() -> bool {
    cfg!(feature = "test-hooks") && std::env::var_os("FBP_TEST_PLANT").is_some()
}

/// What was asked for, if anything.
pub(super) fn asked() -> Option<String> {
    if !cfg!(feature = "test-hooks") {
        return None;
    }
    std::env::var(VARIABLE).ok().filter(|words| !words.is_empty())
}

/// What a driver's version gets appended, so that no fault is taken for the driver's own.
pub(super) fn mark() -> String {
    let wrong = |words: &String| words.split(',').any(|word| !word.contains('='));
    asked().filter(wrong).map(|words| format!(" with {VARIABLE}={words}")).unwrap_or_default()
}

/// Bins by which the kernel of this name finds its positions wrong.
pub(super) fn shift(kernel: &str) -> f64 {
    let hit = asked().is_some_and(|words| words.split(',').any(|word| kernel.split('-').any(|part| part == word)));
    if hit { 3.0 } else { 0.0 }
}

/// What is behind `NAME=`.
fn value(name: &str) -> Option<String> {
    asked()?.split(',').find_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

/// Whether a buffer of so many bytes cannot be had.
pub(super) fn allocation_fails(bytes: usize) -> bool {
    value("allocation").and_then(|most| most.parse().ok()).is_some_and(|most: usize| bytes > most)
}

/// Whether the device at a place of the run's list fails now, after `chunks` chunks.
pub(crate) fn lost(place: usize, chunks: usize) -> bool {
    value("lost").as_deref() == Some(&format!("{place}:{chunks}"))
}
