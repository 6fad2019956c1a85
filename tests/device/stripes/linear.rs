//! Methods that subtract what is linear in the sinogram, or nearly.

use super::{TINY, compare, small};

#[test]
fn means_and_titarenko() {
    let session = small(u64::MAX, usize::MAX);
    for text in ["mean", "mean:sigma=2.5,blocks=7", "titarenko", "titarenko:alpha=0.3,blocks=1000", "fitting:order=0"] {
        compare(&session, text, &TINY, 0.0);
        compare(&session, text, &[[61, 151], [180, 257]], 0.0);
    }
    compare(&session, "titarenko:blocks=3", &[[700, 1500]], 0.0);
}

#[test]
fn wavelets() {
    let session = small(u64::MAX, usize::MAX);
    compare(&session, "wavelet", &[TINY.as_slice(), &[[61, 151], [180, 257], [33, 500], [300, 47]]].concat(), 0.0);
    compare(&session, "wavelet:wavelet=db1,level=1,sigma=0.5", &[[61, 151]], 0.0);
    compare(&session, "wavelet:wavelet=db2,sigma=20", &[[64, 96]], 0.0);
    compare(&session, "wavelet:wavelet=db10,sigma=1000", &[[99, 130]], 0.0);
    compare(&session, "wavelet:level=4", &[[700, 1500]], 0.0);
}

#[test]
fn fits() {
    let session = small(u64::MAX, usize::MAX);
    compare(&session, "fitting", &[TINY.as_slice(), &[[61, 151], [180, 257]]].concat(), 0.0);
    compare(&session, "fitting:order=10,sigma=0.1,blocks=1000", &[[61, 151]], 0.0);
    compare(&session, "fitting:order=10,sigma=2.5,blocks=4", &[[61, 151]], 0.0);
    compare(&session, "fitting:order=1,sigma=31", &[[20, 700]], 0.0);
}

/// Windows that are searched, larger than the row, too.
#[test]
fn fits_with_long_windows() {
    let session = small(u64::MAX, usize::MAX);
    compare(&session, "fitting:order=1,sigma=40,blocks=2", &[[9, 300], [40, 1500]], 0.0);
    compare(&session, "fitting:order=3,sigma=1000", &[[6, 41], [5, 3000]], 0.0);
}

#[test]
fn devices_with_little_memory_and_small_groups() {
    for max_work_group in [48, 1] {
        let session = small(16 << 10, max_work_group);
        for text in ["mean", "fitting", "fitting:order=1,sigma=1000", "wavelet"] {
            compare(&session, text, &[[33, 151]], 0.0);
        }
    }
}
