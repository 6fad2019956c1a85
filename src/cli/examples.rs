//! Examples at the end of the help of each command. `tests/hdf5/examples.rs` runs them.

use super::help::EXIT_CODES;

pub(super) const RECONSTRUCT: &str = "\
  fbp reconstruct scan.h5 --center auto --output slices/
  fbp reconstruct --projections proj/ --flats flats/ --darks darks/ \\
      --center auto --stripes dead,titarenko --dtype u16 --output slices.h5 \\
      --report run.html
  fbp reconstruct --sinograms sinos/ --center 31.5 --rows 1..3 --filter hann \\
      --output 'out/r-%05i.tif'";

pub(super) const SCANS: &str = "\
  fbp batch 'scan*.h5' --center auto --output 'rec/{name}' \\
      --report 'rec/{name}.html'
  fbp batch 'scan*.h5' --center auto --scans scans.csv --output 'rec/{name}' \\
      --resume
  fbp batch sinos/ shifted/ --as sinograms --output 'volumes/{name}.h5' \\
      --shard 0/2";

pub(super) const CENTER: &str = "\
  fbp center scan.h5
  fbp center --projections proj/ --flats flats/ --darks darks/ --json
  fbp center scan.h5 --sweep 28..35:0.5 --output trials.html";

pub(super) const TRIALS: &str = "\
  fbp trials scan.h5 --vary center=28..=35:0.5 \\
      --vary stripes=none,dead+titarenko,all --output values.html
  fbp trials scan.h5 --center auto --vary filter-cutoff=0.4..=1:0.2 \\
      --filter hann --output cutoffs.html
  fbp trials --sinograms sinos/ --vary interpolation=linear,exact \\
      --output interpolations/";

pub(super) const PREPROCESS: &str = "\
  fbp preprocess scan.h5 --remove-outliers 3,500 --output corrected/
  fbp preprocess --sinograms sinos/ --stripes dead,wavelet:sigma=1 \\
      --output cleaned/
  fbp preprocess --projections proj/ --flats flats/ --darks darks/ \\
      --rows 1..3 --output rows.h5";

pub(super) const REPORT: &str = "\
  fbp report slices/ --output slices.html
  fbp report slices.h5 --output slices-h5.html
  fbp report slices/fbp-run.toml --output again.html";

pub(super) const PHANTOM: &str = "\
  fbp phantom --size 64 --projections 96 --slices 4 --output sinos/ \\
      --truth truth.tif
  fbp phantom --size 64 --projections 96 --slices 4 --as projections \\
      --scale 0.05 --photons 50000 --output proj/ --flats flats/ \\
      --darks darks/
  fbp phantom --size 64 --projections 96 --kind asymmetric --noise 0.01 \\
      --center 30.25 --output shifted/";

pub(super) const COMPARE: &str = "\
  fbp compare slices/ reference/
  fbp compare slices/ truth.tif --mask 0.9 --tolerance 0.5
  fbp compare slices/ reference/ --json";

pub(super) const INFO: &str = "\
  fbp info scan.h5
  fbp info 'proj/*.tif' --json
  fbp info slices/";

pub(super) const DEVICES: &str = "\
  fbp devices
  fbp devices --json";

pub(super) const PROFILES: &str = "\
  fbp profiles list
  fbp profiles show cpu
  fbp profiles check my-device.toml";

pub(super) const KERNEL: &str = "\
  fbp kernel --profile nvidia-hopper
  fbp kernel --profile cpu --interpolation nearest --mode fast \\
      --slices-per-pass 16
  fbp kernel --profile default --every kernels/";

pub(super) const MODEL: &str = "\
  fbp model
  fbp model --profile nvidia-hopper
  fbp model --profile all --json";

pub(super) const DOCTOR: &str = "\
  fbp doctor
  fbp doctor --quick
  fbp doctor --device gpu --profile all --json";

pub(super) const BENCH: &str = "\
  fbp bench
  fbp bench --size 256 --interpolation linear --slices-per-pass 1,4 --json
  fbp bench --size 512 --profile all --plot speeds.svg";

pub(super) const TUNE: &str = "\
  fbp tune --quick
  fbp tune --budget 1h --mode precise --interpolation linear
  fbp tune --quick --output my-device.toml";

/// Returns the end of the help of a command with these examples.
pub(super) fn after_help(examples: &str) -> String {
    format!("Examples:\n{examples}")
}

/// Returns the end of the help of a command with these examples that has exit codes of its own.
pub(super) fn with_exit_codes(examples: &str) -> String {
    format!("Examples:\n{examples}\n\n{EXIT_CODES}")
}
