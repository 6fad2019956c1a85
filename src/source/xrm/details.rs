//! What a file says of its scan.

use super::compound::CompoundStreams;
use super::errors::{XrmError, XrmScanError, XrmWarning};
use super::images::XrmForm;
use crate::source::beam::ConeBeam;
use serde::Serialize;

/// Largest shift of a projection in pixels.
const MAX_SHIFT: f64 = (1 << 20) as f64;
/// Number of `ImageInfo/XrayGeometry` for a cone beam.
const CONE: i64 = 1;
/// Relative difference of times of exposure that are the same.
const SAME_EXPOSURE: f64 = 0.01;
/// Rows by which projections may be shifted without a doubt.
const SAME_ROW: f64 = 0.5;

/// Parameters of a scan as its file has them; what is missing, 0 or not finite is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct XrmDetails {
    /// Angles of the projections in degrees; none if there are fewer than projections.
    pub angles: Option<Vec<f64>>,
    /// Bins by which each projection is to be shifted to the right; none if all are 0.
    pub x_shifts: Option<Vec<f64>>,
    /// Rows by which each projection is to be shifted down; none if all are 0.
    pub y_shifts: Option<Vec<f64>>,
    /// Shortest and longest time of exposure of a projection, in seconds.
    pub exposure_seconds: Option<[f64; 2]>,
    /// Time of exposure of the reference image, in seconds.
    pub reference_exposure_seconds: Option<f64>,
    /// Side of a pixel on the axis, in micrometres.
    pub pixel_size_um: Option<f64>,
    /// Photon energy in electronvolts.
    pub energy_ev: Option<f64>,
    /// Voltage of the source in kilovolts.
    pub voltage_kv: Option<f64>,
    /// Distance from the source to the axis, in millimetres.
    pub source_to_axis_mm: Option<f64>,
    /// Distance from the axis to the detector, in millimetres.
    pub axis_to_detector_mm: Option<f64>,
    /// `ImageInfo/XrayGeometry`: 1 for a cone beam.
    pub geometry: Option<i64>,
    /// Number of images that were planned.
    pub planned: Option<i64>,
}

impl XrmDetails {
    /// Reads the parameters of a scan of `count` projections.
    ///
    /// # Errors
    /// [`XrmError`] where a stream cannot be read, or has numbers for some of the projections.
    pub(super) fn read(streams: &mut CompoundStreams, count: usize) -> Result<XrmDetails, XrmError> {
        let above_0 = |value: Option<f64>| value.filter(|value| *value > 0.0);
        let exposures = per_image(streams, "ImageInfo/ExpTimes", count)?;
        let ends = |values: Vec<f64>| {
            let ends = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(f64::NAN);
            let [low, high] = [ends(f64::min), ends(f64::max)];
            (low > 0.0 && high.is_finite()).then_some([low, high])
        };
        let one = above_0(streams.float("ImageInfo/ExpTime")?).map(|time| [time, time]);
        let mut reference = None;
        for name in ["ReferenceData/ExpTime", "ReferenceData/ImageInfo/ExpTimes", "ReferenceData/ImageInfo/ExpTime"] {
            reference = reference.or(above_0(streams.float(name)?));
        }
        let shifts = |values: Option<Vec<f64>>| values.filter(|values| values.iter().any(|value| *value != 0.0));
        Ok(XrmDetails {
            angles: per_image(streams, "ImageInfo/Angles", count)?,
            x_shifts: shifts(per_image(streams, X_SHIFTS, count)?),
            y_shifts: shifts(per_image(streams, Y_SHIFTS, count)?),
            exposure_seconds: exposures.and_then(ends).or(one),
            reference_exposure_seconds: reference,
            pixel_size_um: above_0(streams.float("ImageInfo/PixelSize")?),
            energy_ev: above_0(streams.float("ImageInfo/Energy")?),
            voltage_kv: above_0(streams.float("ImageInfo/Voltage")?),
            // coordinates, of which one side of the axis is negative
            source_to_axis_mm: streams.float("ImageInfo/StoRADistance")?.map(f64::abs),
            axis_to_detector_mm: streams.float("ImageInfo/DtoRADistance")?.map(f64::abs),
            geometry: streams.integer("ImageInfo/XrayGeometry")?,
            planned: streams.integer("ImageInfo/NoOfImages")?,
        })
    }

    /// Returns the photon energy in keV; a source with a voltage has a spectrum.
    pub(super) fn energy_kev(&self) -> Option<f64> {
        self.energy_ev.filter(|_| self.voltage_kv.is_none()).map(|energy| energy / 1e3)
    }

    /// Refuses a cone beam whose rays are not nearly parallel, and returns a reason to doubt that a beam is parallel.
    ///
    /// # Errors
    /// [`XrmScanError`] that says what the file has.
    pub(super) fn check_beam(&self, file: &str, form: XrmForm) -> Result<Option<XrmWarning>, XrmScanError> {
        let XrmDetails { source_to_axis_mm: source, pixel_size_um: pixel, geometry, .. } = *self;
        let beam = source.zip(pixel).and_then(|(source_mm, pixel_um)| {
            let beam = ConeBeam::new(source_mm, pixel_um * 1e-3, (form.width, form.height))?;
            Some((beam, source_mm, pixel_um))
        });
        let Some((beam, source_mm, pixel_um)) = beam else {
            return if geometry == Some(CONE) { Err(XrmScanError::UnknownCone) } else { Ok(None) };
        };
        let (opening, pixels) = (beam.to_string(), beam.deviation());
        match geometry {
            _ if beam.is_parallel() => Ok(None),
            None | Some(CONE) => {
                let detector = match self.axis_to_detector_mm {
                    Some(distance) => format!("{distance} mm (ImageInfo/DtoRADistance)"),
                    None => "at an unknown distance".to_owned(),
                };
                Err(XrmScanError::Cone { source_mm, detector, pixel_um, opening, pixels })
            }
            Some(_) => Ok(Some(XrmWarning::ParallelOrNot { file: file.to_owned(), source_mm, opening, pixels })),
        }
    }

    /// Returns the angles, if all are finite.
    ///
    /// # Errors
    /// [`XrmScanError`] that names the projection.
    pub(super) fn finite_angles(&self) -> Result<Vec<f64>, XrmScanError> {
        let angles = self.angles.clone().ok_or(XrmScanError::NoAngles)?;
        match angles.iter().position(|angle| !angle.is_finite()) {
            Some(projection) => Err(XrmScanError::InfiniteAngle { projection, angle: angles[projection] }),
            None => Ok(angles),
        }
    }

    /// Returns the shift of the axis in each projection, in bins: a projection that is to be shifted to the right has the axis
    /// to the left of where it will be.
    ///
    /// # Errors
    /// [`XrmScanError`] that names a projection with a shift that cannot be right.
    pub(super) fn center_shifts(&self) -> Result<Option<Vec<f64>>, XrmScanError> {
        let Some(shifts) = &self.x_shifts else { return Ok(None) };
        check_shifts(X_SHIFTS, shifts)?;
        Ok(Some(shifts.iter().map(|shift| 0.0 - shift).collect()))
    }

    /// Returns the largest shift along the axis, in rows, and a reason to doubt slices if it is not small: these shifts are
    /// not done.
    ///
    /// # Errors
    /// [`XrmScanError`] that names a projection with a shift that cannot be right.
    pub(super) fn row_shift(&self, file: &str) -> Result<(f64, Option<XrmWarning>), XrmScanError> {
        let Some(shifts) = &self.y_shifts else { return Ok((0.0, None)) };
        check_shifts(Y_SHIFTS, shifts)?;
        let most = shifts.iter().fold(0f64, |most, shift| most.max(shift.abs()));
        let doubt = (most > SAME_ROW).then(|| XrmWarning::RowShifts { file: file.to_owned(), most });
        Ok((most, doubt))
    }

    /// Returns a reason to doubt transmissions if the reference image was exposed for another time than a projection.
    pub(super) fn odd_exposure(&self, file: &str) -> Option<XrmWarning> {
        let ([low, high], reference) = (self.exposure_seconds?, self.reference_exposure_seconds?);
        let odd = |time: f64| (time / reference - 1.0).abs() > SAME_EXPOSURE;
        let images = if low == high { format!("{low}") } else { format!("{low} to {high}") };
        (odd(low) || odd(high)).then(|| XrmWarning::Exposures { file: file.to_owned(), images, reference })
    }
}

/// Stream of the shifts across the axis, in pixels.
const X_SHIFTS: &str = "Alignment/X-Shifts";
/// Stream of the shifts along the axis, in pixels.
pub(super) const Y_SHIFTS: &str = "Alignment/Y-Shifts";

fn check_shifts(name: &'static str, shifts: &[f64]) -> Result<(), XrmScanError> {
    // NaN is refused, too
    match shifts.iter().position(|shift| !(-MAX_SHIFT..=MAX_SHIFT).contains(shift)) {
        Some(projection) => {
            Err(XrmScanError::ShiftOutside { name, projection, shift: shifts[projection], most: MAX_SHIFT })
        }
        None => Ok(()),
    }
}

/// Reads a number for each of `count` images; none if the stream does not exist or is empty. A file of a scan that was
/// stopped has numbers for images that were not taken.
fn per_image(streams: &mut CompoundStreams, name: &str, count: usize) -> Result<Option<Vec<f64>>, XrmError> {
    let Some(values) = streams.floats(name, count)?.filter(|values| !values.is_empty()) else { return Ok(None) };
    if values.len() < count {
        let (bytes, needed) = (streams.length(name)?, 4 * count as u64);
        return Err(XrmError::TooShort { name: name.to_owned(), bytes, needed, count });
    }
    Ok(Some(values))
}
