//! Errors in plans of runs.

use crate::error::messages;
use crate::kernel::{Algorithm, Interpolation, Mode};

messages! {
    /// A flag that does not fit the scan, or memory.
    pub(super) enum PlanFlagError: Usage {
        RoiOutside { x: usize, y: usize, width: usize, height: usize, size: usize } =>
            "--roi: {x},{y},{width},{height} goes past the slice of {size} x {size} pixels";
            "give a region inside, or a larger --size",
        NoProjections => "--exclude: no projections are left"; "exclude fewer, or widen --projection-range",
        AxisOutside { center: f64, last: f64 } =>
            "--center: {center} is outside the detector; bins are 0..={last} (centre of the first bin is 0)",
        ShiftedAxisOutside { center: f64, mean_shift: f64, last: f64 } =>
            "--center: {center}, shifted by {mean_shift:.2} bins on average, is outside the detector; bins are \
             0..={last} (centre of the first bin is 0)",
        NoMemoryForSlices { memory: String, sinograms: usize, slices: usize, needed: String } =>
            "--memory: {memory} is not enough for {sinograms} sinograms and {slices} slices in flight, which need \
             {needed}";
            "give more",
        NoMemoryForSolver { memory: String, needed: String } =>
            "--method: a slice needs {needed} of host memory, and {memory} are left";
            "give more --memory, a smaller --size, or --method fbp",
        NoMemoryForInclined { memory: String, needed: String, rows: usize, projections: usize } =>
            "--lamino-angle: a slice needs {rows} rows of the detector, of {projections} projections at a time, {needed} of \
             host memory, and {memory} are left";
            "give more --memory, a smaller --roi, fewer projections with --projection-range, or --binning 2",
        NoMemoryForSteps { memory: String, held: String } =>
            "--memory: {memory} is not enough: the steps before the filter hold {held} (--phase and --tilt filter rows \
             of all projections together, --stripes processes one sinogram per thread)";
            "give more, or fewer projections with --projection-range",
    }
}

messages! {
    /// A text file that does not fit the scan.
    pub(super) enum ScanFileError: Input {
        OtherCount { flag: String, count: usize, items: &'static str, projections: usize } =>
            "{flag}: {count} {items}, but the stack has {projections} projections";
            "write one line for each projection (--exclude leaves projections out afterwards)",
        Outside { flag: String, value: f64, projection: usize, most: f64, unit: &'static str } =>
            "{flag}: {value:?} of projection {projection} is not within -{most}..{most} {unit}",
        Weight { value: f64, projection: usize } =>
            "--weights: {value:?} of projection {projection} is not within 1e-6 to 1e6";
            "scale the weights, and leave out projections without one by --exclude",
    }
}

messages! {
    /// A device that cannot do a run.
    pub(super) enum PlanDeviceError: Device {
        WorkGroupTooLarge { device: String, kernel: String, group: usize, most: usize } =>
            "{device}: kernel {kernel}: its work-group of {group} is larger than the device's {most}";
            "choose another --profile",
        NoMemoryForInclined {
            device: String,
            rows: usize,
            needed: String,
            largest: String,
            free: String,
            allocation: String,
        } =>
            "{device}: one slice about an inclined axis, from {rows} rows of the detector of 2 projections at a time, needs \
             {needed} of device memory (largest single buffer {largest}), there are {free} (largest allocation {allocation})";
            "give a smaller --roi, --binning 2, more --device-memory or another --device",
        NoMemoryForBlock => "a block of rows does not fit into host memory"; "give a larger --memory",
        /// What the smallest part of a pass needs, and what there is.
        NoMemoryForPass {
            device: String,
            slices: u32,
            rows: usize,
            projections: usize,
            needed: String,
            largest: String,
            free: String,
            allocation: String,
        } =>
            "{device}: {slices} slices at once, of them {rows} rows of pixels and {projections} projections at a time, \
             need {needed} of device memory (largest single buffer {largest}), there are {free} (largest allocation \
             {allocation})";
            "use fewer --slices-per-pass, a --roi, more --memory or another --device",
    }
}

messages! {
    /// No kernel that a run may use, with those that were tried and what is wrong with them, each on a line.
    pub(super) enum NoKernelError: NoCorrectKernel {
        Inclined { device: String, driver: String, why: String } =>
            "{device}, driver {driver}: the kernel for --lamino-angle is {why}";
            "choose another --device, or update the driver (--no-self-test runs it unchecked)",
        OfAlgorithm {
            device: String,
            driver: String,
            interpolation: Interpolation,
            mode: Mode,
            profile: String,
            tried: String,
            algorithm: Algorithm,
        } =>
            "{device}, driver {driver}: no correct kernel for {interpolation} {mode} in profile {profile}\n  {tried}\n\
             --algorithm {algorithm} lets no other family stand in";
            "leave it out, or choose another --device or --profile (--no-self-test runs it unchecked)",
        OfProfile {
            device: String,
            driver: String,
            interpolation: Interpolation,
            mode: Mode,
            profile: String,
            tried: String,
        } =>
            "{device}, driver {driver}: no correct kernel for {interpolation} {mode} in profile {profile}\n  {tried}\n\
             nothing else that the profile offers can stand in";
            "choose another --device or --profile, or update the driver; fbp doctor tries every kernel",
    }
}
