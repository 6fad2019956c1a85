//! Parameters of the acquisition that the input states.

/// Parameters of the acquisition that a file contains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScanMeasures {
    /// Photon energy in keV.
    pub energy: Option<ScanMeasure>,
    /// Distance from the sample to the detector.
    pub distance: Option<ScanMeasure>,
    /// Pixel size of the detector, before binning.
    pub pixel_size: Option<ScanMeasure>,
}

/// Value above 0 with its unit, as in the options of the program, and where it is in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanMeasure {
    pub value: f64,
    pub unit: &'static str,
    /// Name of a dataset or a stream.
    pub dataset: String,
}
