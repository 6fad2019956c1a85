use super::occupancy::Occupancy;
use super::rows::{ModelRow, model_of_paper, model_of_profile, spec_of};
use crate::device::grid_sides;
use crate::geometry::{FrequencyGrid, Geometry, Roi, Tiling};
use crate::kernel::{
    Algorithm, Common, GridItems, GridTask, Gridding, Interpolation, KernelSpec, Mode, Offer, Parameters, Positions,
    Problem, Residency, Rounding, Sampler, Standard,
};
use crate::profile::{Profile, ProfileStore, Units};

const PROBLEM: Problem = Problem::new(2048, true);

fn paper_row(profile: &str) -> ModelRow {
    let profile = ProfileStore::built_in().unwrap().named(profile).unwrap();
    model_of_paper(&profile, PROBLEM).unwrap_or_else(|| panic!("{} has no rates", profile.name))
}

/// The estimated row of Table 15, to the last digit.
#[test]
fn operations_are_those_of_table_15() {
    let load = paper_row("nvidia-pascal").load;
    let counts = [load.conversions, load.shifts, load.fp, load.local, load.constant];
    assert_eq!(counts, [2.03125, 1.3125, 4.625, 1.125, 0.265625]);
    // the text's 2.3 and 8.7 bytes
    assert_eq!((load.constant_bytes, load.local_bytes), (2.25, 8.6875));
}

/// Table 16: Mem, ALU, SFU, OPS and the limit, within 1 %.
#[test]
fn bounds_are_those_of_table_16() {
    for (profile, device, memory, alu, sfu, operations, limit) in [
        ("nvidia-fermi", "GeForce GTX 580", 145.0, 99.0, None, 97.0, "instructions"),
        ("nvidia-kepler-gk104", "GeForce GTX 680", 188.0, 334.0, Some(77.0), 252.0, "sfu"),
        ("nvidia-kepler-gk110", "GeForce GTX Titan", 325.0, 577.0, Some(133.0), 436.0, "sfu"),
        ("nvidia-maxwell", "GeForce GTX 980", 234.0, 432.0, Some(315.0), 628.0, "memory"),
        ("nvidia-pascal", "GeForce Titan X (Pascal)", 576.0, 1062.0, Some(776.0), 1545.0, "memory"),
        ("amd-vliw5", "Radeon HD 5970", 169.0, 145.0, Some(114.0), 114.0, "sfu"),
        ("amd-gcn1", "Radeon HD 7970", 346.0, 238.0, None, 1160.0, "alu"),
        ("amd-gcn2", "Radeon R9 290", 443.0, 304.0, None, 1485.0, "alu"),
    ] {
        let row = paper_row(profile);
        assert_eq!(row.device, device);
        let near = |column: &str, found: Option<f64>, wanted: Option<f64>| match (found, wanted) {
            (Some(found), Some(wanted)) => {
                assert!((found / wanted - 1.0).abs() <= 0.01, "{device} {column}: {found} is not {wanted}");
            }
            (None, None) => {}
            other => panic!("{device} {column}: {other:?}"),
        };
        near("Mem", row.units.memory, Some(memory));
        near("ALU", row.units.alu, Some(alu));
        near("SFU", row.units.sfu, sfu);
        near("OPS", row.units.instructions, Some(operations));
        assert_eq!(row.limit, Some(limit), "{device}: {:?}", row.units);
    }
}

/// Speeds that the paper's tables have beside those in its nine profiles, for kernels that are not offered there: Table 11
/// without Z-order, Table 17 by what rounds, Table 19 by occupancy.
#[test]
fn no_bound_is_below_a_measurement_of_the_paper() {
    let store = ProfileStore::built_in().unwrap();
    let bound = |profile: &str, algorithm: Algorithm, interpolation, slices, change: &dyn Fn(&mut Parameters)| {
        let profile = store.named(profile).unwrap();
        let same =
            |o: &Offer| (o.parameters.algorithm(), o.interpolation, o.slices) == (algorithm, interpolation, slices);
        let mut offer = profile.offers().into_iter().find(same).unwrap();
        change(&mut offer.parameters);
        let rates = profile.throughput.clone().unwrap();
        let spec = spec_of(&offer, &profile, &rates, PROBLEM);
        Units::of(&spec.load(), &rates, 1.0).limit().unwrap().1
    };
    let along_rows = |parameters: &mut Parameters| match parameters {
        Parameters::Standard(standard) => standard.z_order = false,
        other => panic!("{other:?}"),
    };
    for (slices, measured) in [(1, 381.0), (2, 534.0)] {
        let bound = bound("nvidia-pascal", Algorithm::Standard, Interpolation::Linear, slices, &along_rows);
        assert!(bound >= measured && bound < 1.1 * 394.0 * f64::from(slices), "{slices}: {bound}");
    }
    for (rounding, measured) in [(Rounding::Float, 197.0), (Rounding::FloatIndex, 182.0)] {
        let by = |parameters: &mut Parameters| match parameters {
            Parameters::Alu(alu) => alu.rounding = rounding,
            other => panic!("{other:?}"),
        };
        let bound = bound("nvidia-kepler-gk110", Algorithm::Alu, Interpolation::Linear, 1, &by);
        assert!(bound >= measured, "{rounding:?}: {bound}");
    }
    for (interpolation, measured) in [(Interpolation::Linear, 620.0), (Interpolation::Nearest, 1158.0)] {
        let bound = bound("nvidia-pascal", Algorithm::Alu, interpolation, 1, &|_| {});
        assert!(bound >= measured, "{interpolation}: {bound}");
    }
    // the nine devices have their measurements in their profiles; the next test compares them
    let cited =
        |p: &Profile| p.measured.iter().filter(|m| m.source.as_deref().is_some_and(|s| s.contains("paper"))).count();
    let cited: Vec<usize> = store.iter().map(|(profile, _)| cited(profile)).filter(|&count| count > 0).collect();
    assert_eq!((cited.len(), cited.iter().sum::<usize>()), (9, 72));
}

/// Nearest interpolation adds 1/2 to every position, and oversampling multiplies it by the samples of a bin, too.
#[test]
fn nearest_and_oversampling_count_what_they_add() {
    let store = ProfileStore::built_in().unwrap();
    for (profile, nearest, oversampling) in [("amd-gcn1", 366.0, 289.0), ("amd-gcn2", 457.0, 361.0)] {
        let rows = model_of_profile(&store.named(profile).unwrap(), PROBLEM);
        for (name, wanted) in [("alu-nearest-float-x1", nearest), ("oversample-linear-float-x1", oversampling)] {
            let row = rows.iter().find(|row| row.spec.starts_with(name)).unwrap();
            let found = row.units.alu.unwrap();
            assert!((found / wanted - 1.0).abs() < 0.01, "{profile} {name}: {found} is not {wanted}");
        }
    }
}

/// Where one block after the other has its positions in global memory, the standard kernel is slower than the paper's.
#[test]
fn positions_from_blocks_cost_more_than_the_constants_alone() {
    let pascal = ProfileStore::built_in().unwrap().named("nvidia-pascal").unwrap();
    let rates = pascal.throughput.clone().unwrap();
    let limit = |positions, span| {
        let common = Common { sampler: Sampler::Image, ..Common::default() };
        let parameters = Standard { common, positions, ..Standard::default() }.into();
        let offer = Offer { interpolation: Interpolation::Linear, mode: Mode::Precise, slices: 1, parameters };
        let spec = spec_of(&offer, &pascal, &rates, Problem { span, ..PROBLEM });
        Units::of(&spec.load(), &rates, 1.0).limit().unwrap().1
    };
    let near = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-3, "{found} is not {wanted}");
    // 24 bytes, and 16 bytes, at 6304 GB/s of Table 10
    near(limit(Positions::Block, 2048), 6304.0 / 24.0);
    near(limit(Positions::Absolute, 2048), 394.0);
    near(limit(Positions::Absolute, Positions::WIDEST_ABSOLUTE + 1), 6304.0 / 24.0);
}

#[test]
fn every_shipped_kernel_has_a_bound_where_there_are_rates() {
    let mut profiles = 0;
    for (profile, _) in ProfileStore::built_in().unwrap().iter() {
        let rows = model_of_profile(profile, PROBLEM);
        assert_eq!(rows.is_empty(), profile.throughput.is_none(), "{}", profile.name);
        profiles += usize::from(!rows.is_empty());
        for row in rows {
            let bound = row.gu_per_s.unwrap_or_else(|| panic!("{} {}", row.profile, row.spec));
            assert!(bound.is_finite() && bound > 0.0, "{} {}: {bound}", row.profile, row.spec);
            if let Some(measured) = row.measured {
                assert!(measured <= bound, "{} {}: {measured} > {bound} ({:?})", row.profile, row.spec, row.limit);
            }
        }
    }
    assert!(profiles >= 10);
}

#[test]
fn more_slices_and_halves_cost_less() {
    let profile = ProfileStore::built_in().unwrap().named("nvidia-hopper").unwrap();
    let rows = model_of_profile(&profile, PROBLEM);
    let find = |name: &str| rows.iter().find(|r| r.spec.starts_with(name)).unwrap_or_else(|| panic!("{name}")).gu_per_s;
    assert!(find("tensor-linear-half-x64-halves") > find("tensor-linear-half-x16-halves"));
    assert!(find("tensor-linear-half-x32-halves") > find("tensor-linear-half-x32-halves-split"));
}

#[test]
fn occupancy_is_what_fits() {
    let held = Residency {
        warp: 32,
        warps: 64,
        groups: 32,
        registers: 65536,
        local_memory: 98304,
        register_granule: 256,
        warp_granule: 4,
    };
    let of = |items, local, registers| Occupancy::of(&held, items, local, registers).map(|o| (o.warps, o.limit));
    assert_eq!(of(256, 0, None), Some((64, "warps")));
    assert_eq!(of(256, 20000, None), Some((32, "local memory")));
    assert_eq!(of(256, 20000, Some(128)), Some((16, "registers")));
    // 28 warps, of which groups of 8 fill 24
    assert_eq!(of(128, 0, Some(72)), Some((28, "registers")));
    assert_eq!(of(256, 0, Some(72)), Some((24, "registers")));
    assert_eq!(of(32, 0, None), Some((32, "groups")));
    assert_eq!(of(256, 100000, None), None);
}

/// The model spreads as many samples into as many cells as a scan has.
#[test]
fn samples_and_cells_of_gridding_are_those_of_a_scan() {
    let size = 512;
    let geometry = Geometry {
        bins: size,
        size,
        roi: Roi::full(size),
        angles: (0..size).map(|p| 180.0 * p as f64 / size as f64).collect(),
        axis: vec![255.5; size],
        weights: vec![1.0; size],
        misfit_weights: None,
    };
    let profile = ProfileStore::built_in().unwrap().named("default").unwrap();
    for (items, tile, samples) in [(GridItems::Cells, 8, 16), (GridItems::Tiles, 32, 240)] {
        let grid = FrequencyGrid::new(geometry.roi, 1e-3, grid_sides(items)).unwrap();
        let gridding = Gridding { items, tile, ..Gridding::default() };
        let spreading = geometry.spreading(&grid, Tiling { side: tile as usize, samples, parts: 0 }).unwrap();
        let counted: u32 = spreading.segments.iter().map(|segment| segment.projection_and_count & 255).sum();
        let cells = spreading.tiles.len() * (tile * tile) as usize;

        let parameters = gridding.clone().into();
        let offer = Offer { interpolation: Interpolation::Exact, mode: Mode::Fast, slices: 8, parameters };
        let problem = Problem { size, span: size, ..Problem::new(size, true) };
        let spec = KernelSpec::new(&offer, &profile, offer.texels()[0], problem, None);
        let spec = spec.bounded(crate::kernel::Bound { width: grid.width(), ..spec.bound });
        let task = GridTask { bins: size, projections: size, region: [size; 2], lengths: grid.lengths };
        let stages = gridding.stages(&spec.form(), &task);
        let bytes = |name| stages.iter().find(|stage| stage.name == name).unwrap().device_bytes;
        // spectra once, and the cells
        let filled = bytes("spreading") / 8.0 - (size * (size + 1)) as f64;
        let reached = (f64::from(tile) - 1.0 + f64::from(grid.width())) / f64::from(tile);
        let wanted = (size * (size + 1)) as f64 * reached * reached;
        // tiles at the rim are filled as a whole, and samples near frequency 0 are spread on both sides of it
        assert!((0.95..1.3).contains(&(cells as f64 / filled)), "{items}: {cells} cells, {filled}");
        assert!((0.98..1.1).contains(&(f64::from(counted) / wanted)), "{items}: {counted} samples, {wanted}");
    }
}

/// What docs/dev/performance.md says of the cells and bytes of a slice of 2048 x 2048 pixels, and that no stage was
/// measured to be faster than its limit.
#[test]
fn stages_of_gridding_are_slower_than_their_limits() {
    let profile = ProfileStore::built_in().unwrap().named("nvidia-hopper").unwrap();
    let rows = model_of_profile(&profile, PROBLEM);
    let is_fast = |row: &&ModelRow| row.mode == Mode::Fast && row.spec.starts_with("gridding-exact-float-x8");
    let row = rows.iter().find(is_fast).unwrap();
    let measured = [("filter", 0.022), ("spreading", 0.138), ("rows", 0.026), ("columns", 0.054)];
    assert_eq!(row.stages.len(), measured.len());
    for (stage, (name, ms)) in row.stages.iter().zip(measured) {
        assert_eq!((stage.stage, stage.cells, stage.width), (name, [4096; 2], 5));
        assert!(stage.ms > 0.1 * ms && stage.ms < ms, "{name}: {} of {ms} ms", stage.ms);
    }
    assert!((row.stages[2].device_bytes - 86e6).abs() < 0.5e6);
    assert!(rows.iter().filter(|row| !row.spec.starts_with("gridding")).all(|row| row.stages.is_empty()));
}
