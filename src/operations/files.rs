//! Files of `cl/` that several operations include.

use crate::kernel::{ClFile, cl_file};

pub(super) const SAMPLES: ClFile = cl_file!("samples.cl");
pub(super) const LOGARITHM: ClFile = cl_file!("logarithm.cl");
pub(super) const SINOGRAMS: ClFile = cl_file!("sinograms.cl");
pub(super) const FLOAT_ORDER: ClFile = cl_file!("float_order.cl");
pub(super) const MEDIAN: ClFile = cl_file!("median.cl");
