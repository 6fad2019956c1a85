//! What fbp is built on: errors and files, the bytes of formats, pictures, and what the host computes.
//!
//! [`geometry`] states the conventions (axes, amplitude, weights), [`spectrum`] the filters, [`phantom`] scans with a known
//! answer, [`center`] the search of the rotation axis, [`least_squares`] the iterations, [`stripes`] methods that remove stripes,
//! [`layout`] the bytes of files.
//!
//! Nothing here knows a device, the contents of a scan, or a flag. It is a crate of its own because tests need its arithmetic to
//! be optimised, which takes the compiler more than three times as long, and because it changes seldom.

pub mod center;
pub mod compare;
pub mod error;
pub mod files;
pub mod flat_fields;
pub mod geometry;
pub mod histogram;
pub mod host_filter;
pub mod layout;
pub mod least_squares;
pub mod numbers;
pub mod phantom;
pub mod picture;
pub mod reference;
pub mod resampling;
pub mod resolution;
pub mod spectrum;
pub mod stripes;
pub mod units;
pub mod visible;
