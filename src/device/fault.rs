//! A fault on purpose, so that tests can see what a broken driver leads to. For tests only.

/// Words of the kernels that go wrong, separated by commas: parts of their names, such as `vector` or `image`.
const VARIABLE: &str = "FBP_TEST_FAULT";

/// What was asked for, if anything.
pub(super) fn asked() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|words| !words.is_empty())
}

/// What a driver's version gets appended, so that no fault is taken for the driver's own.
pub(super) fn mark() -> String {
    asked().map(|words| format!(" with {VARIABLE}={words}")).unwrap_or_default()
}

/// Bins by which the kernel of this name finds its positions wrong.
pub(super) fn shift(kernel: &str) -> f64 {
    let hit = asked().is_some_and(|words| words.split(',').any(|word| kernel.split('-').any(|part| part == word)));
    if hit { 3.0 } else { 0.0 }
}
