//! Errors of files of Xradia's microscopes.

use crate::error::messages;
use crate::source::SampleType;
use crate::source::frames::{MAX_PIXELS, MAX_SIDE};
use std::io;

messages! {
    /// Errors of a file, or with an image in it.
    pub(super) enum XrmError: Input {
        OddImages { flag: String, file: String, form: String, usual: String } =>
            "{flag}: {file} has images of {form}, the first file has {usual}";
            "select the files that belong together with a glob",
        NoImages => "contains no images"; "name files that do",
        Sinograms =>
            "has an image of the detector in each frame, not a sinogram"; "give it with --projections",
        OtherFormat { error: io::Error } =>
            "is not a compound file (OLE2), as .txrm and .xrm files are: {error}"; "copy it again",
        NoStream { name: String } =>
            "has no stream {name}"; "copy it again, or name a .txrm or .xrm file with images",
        Stream { name: String, error: io::Error } =>
            "the stream {name} cannot be read: {error}"; "copy the file again",
        Length { name: String, bytes: u64, width: usize, height: usize, sample: SampleType, needed: u64 } =>
            "the stream {name} has {bytes} bytes, expected {needed} for {width}x{height} pixels, {sample}";
            "copy the file again, or export it again with the program that wrote it",
        Truncated { name: String } =>
            "is truncated: the stream {name} goes beyond the end of the file"; "copy it again",
        TooShort { name: String, bytes: u64, needed: u64, count: usize } =>
            "the stream {name} has {bytes} bytes, expected {needed} for {count} images"; "copy the file again",
        Side { name: String, value: i64 } => "has {name} = {value}, expected 1 to {MAX_SIDE}",
        Shape { width: u64, height: u64 } =>
            "claims images of {width}x{height} pixels, more than {MAX_PIXELS}"; "copy it again",
        DataType { name: String, value: i64 } =>
            "has {name} = {value}, expected 5 (16-bit integers), 10 (32-bit floats), or another number from 2 to 11";
            "save it again as one of them",
        Count { name: String, value: i64, most: usize } =>
            "has {name} = {value}, expected 1 to {most}"; "copy it again",
    }
}

messages! {
    /// Why a file is no scan that can be reconstructed.
    pub(super) enum XrmScanError: Input {
        SeveralFiles { count: usize } =>
            "--projections: selects {count} .txrm files, each of which is a scan of its own";
            "give one; --stack joins scans at several heights",
        NoAngles =>
            "has no angles in ImageInfo/Angles"; "give --angles FILE or --overall-angle DEG",
        InfiniteAngle { projection: usize, angle: f64 } =>
            "ImageInfo/Angles: the angle of projection {projection} is {angle}, not a finite number";
            "give --angles FILE or --overall-angle DEG",
        ShiftOutside { name: &'static str, projection: usize, shift: f64, most: f64 } =>
            "{name}: the shift of projection {projection} is {shift} pixels, not within {most} of 0"; "copy the file again",
        UnknownCone =>
            "was taken with a cone beam (ImageInfo/XrayGeometry = 1) from an unknown distance, as \
             ImageInfo/StoRADistance or ImageInfo/PixelSize is missing or 0, but fbp reconstructs parallel beams";
            "use a program for cone beams, such as that of the microscope, CIL or ASTRA",
        Cone { source_mm: f64, detector: String, pixel_um: f64, opening: String, pixels: f64 } =>
            "was taken with a cone beam: its source is {source_mm} mm from the rotation axis (ImageInfo/StoRADistance), \
             its detector {detector}, and pixels of {pixel_um} um on the axis open the beam by {opening}, so that rays are \
             up to {pixels:.1} pixels from parallel ones, but fbp reconstructs parallel beams";
            "use a program for cone beams, such as that of the microscope, CIL or ASTRA",
    }
}

messages! {
    /// Reasons to doubt a scan.
    pub(super) enum XrmWarning: Warning {
        RowShifts { file: String, most: f64 } =>
            "{file}: Alignment/Y-Shifts moves projections by up to {most:.2} rows, which is not done";
            "shift the projections before, if slices are blurred along the axis",
        Exposures { file: String, images: String, reference: f64 } =>
            "{file}: projections were exposed for {images} s and the reference image for {reference} s, so that \
             transmissions have the wrong level";
            "give --flats taken like the projections, or --normalize-air",
        ParallelOrNot { file: String, source_mm: f64, opening: String, pixels: f64 } =>
            "{file}: ImageInfo/XrayGeometry says that the beam is parallel, but from a source {source_mm} mm away \
             (ImageInfo/StoRADistance) it opens by {opening}, and rays are up to {pixels:.1} pixels from parallel ones";
            "check how the scan was taken; slices of a cone beam are blurred away from the axis",
    }
}
