//! Host memory that a run may use: free memory, limited by control groups and Slurm.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Memory that is assumed if nothing is known, in bytes: 2 GiB.
const UNKNOWN: u64 = 2 << 30;

/// Returns the memory that the process may use, in bytes: the minimum of the free memory, of the rest that each of its
/// control groups allows, and of the memory that Slurm grants the job on this node.
pub fn available() -> u64 {
    available_in(Path::new("/"), |name| std::env::var(name).ok())
}

/// Returns the memory that the process may use on the system whose files are below `root`.
fn available_in(root: &Path, variable: impl Fn(&str) -> Option<String>) -> u64 {
    let free = free(root);
    let limits = [free, groups(root, free), slurm(variable)];
    limits.into_iter().flatten().min().unwrap_or(UNKNOWN)
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn number(path: &Path) -> Option<u64> {
    read(path)?.trim().parse().ok()
}

/// Returns the number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the memory that the operating system can provide without swapping.
fn free(root: &Path) -> Option<u64> {
    let kib = field(&read(&root.join("proc/meminfo"))?, "MemAvailable:")?;
    kib.checked_mul(1 << 10)
}

/// Returns the memory that the control groups of this process leave; the limit of a group applies to all groups below
/// it. It is not known exactly where it is more than what is free.
fn groups(root: &Path, free: Option<u64>) -> Option<u64> {
    let own = read(&root.join("proc/self/cgroup"))?;
    let mounts = read(&root.join("proc/self/mountinfo"))?;
    let mut least = None;
    for line in own.lines() {
        // number:controllers:path, without controllers in version 2
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let version2 = controllers.is_empty();
        if !version2 && !controllers.split(',').any(|controller| controller == "memory") {
            continue;
        }
        for Mount { point, top } in mounts.lines().filter_map(|line| Mount::parse(line, version2)) {
            // a mount shows the groups below its top; a path that is not among them belongs to an outer namespace
            let below = Path::new(path).strip_prefix(&top).unwrap_or(Path::new(""));
            let below: PathBuf = below.components().filter(|part| matches!(part, Component::Normal(_))).collect();
            let point = root.join(point.strip_prefix("/").unwrap_or(&point));
            for group in below.ancestors() {
                least = least.into_iter().chain(left_in(&point.join(group), version2, free)).min();
            }
        }
    }
    least
}

/// Returns the rest of a group's limit; cached files count as free, since the kernel drops them before it denies
/// memory.
fn left_in(group: &Path, version2: bool, free: Option<u64>) -> Option<u64> {
    let (limit, usage, cached) = match version2 {
        true => ("memory.max", "memory.current", ["inactive_file ", "active_file "]),
        false => ("memory.limit_in_bytes", "memory.usage_in_bytes", ["total_inactive_file ", "total_active_file "]),
    };
    let limit = number(&group.join(limit))?;
    let used = number(&group.join(usage)).unwrap_or(0);
    let left = limit.saturating_sub(used);
    // the kernel takes milliseconds to add up what is cached
    if free.is_some_and(|free| left >= free) {
        return Some(left);
    }
    let stat = read(&group.join("memory.stat")).unwrap_or_default();
    let cached: u64 = cached.into_iter().filter_map(|name| field(&stat, name)).sum();
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

/// Mounted tree of control groups.
struct Mount {
    point: PathBuf,
    /// Path of the group at the top of the mount.
    top: PathBuf,
}

impl Mount {
    /// Parses a line of `mountinfo`; `None` unless it is a tree of this version with the memory controller.
    fn parse(line: &str, version2: bool) -> Option<Mount> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (top, point) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        let right = match version2 {
            true => kind == "cgroup2",
            false => kind == "cgroup" && options.split(',').collect::<BTreeSet<_>>().contains("memory"),
        };
        right.then(|| Mount { point: point.into(), top: top.into() })
    }
}

/// Returns the memory that Slurm grants on this node, given in MiB for the node, for each processor or for each GPU.
fn slurm(variable: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let mib = |name: &str| variable(name)?.parse::<u64>().ok().filter(|mib| *mib > 0);
    let count = |names: [&str; 2]| names.iter().find_map(|name| leading_number(&variable(name)?));
    let granted = match (mib("SLURM_MEM_PER_NODE"), mib("SLURM_MEM_PER_CPU"), mib("SLURM_MEM_PER_GPU")) {
        (Some(node), _, _) => node,
        (_, Some(each), _) => each.saturating_mul(count(["SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE"])?),
        (_, _, Some(each)) => each.saturating_mul(count(["SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"])?),
        _ => return None,
    };
    Some(granted.saturating_mul(1 << 20))
}

/// Parses the number in `4`, `4(x2)`, or `gpu:h100:4(S:0-1)`.
fn leading_number(text: &str) -> Option<u64> {
    let last = text.split('(').next()?.rsplit(':').next()?;
    last.parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const GIB: u64 = 1 << 30;

    /// Returns the available memory of a system with these files and environment variables.
    fn system(files: &[(&str, &str)], variables: &[(&str, &str)]) -> u64 {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        available_in(root.path(), |name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    const MEMORY: (&str, &str) = ("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable:   16777216 kB\n");
    const V2: (&str, &str) =
        ("proc/self/mountinfo", "24 1 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");

    #[test]
    fn limits_of_nested_groups_count() {
        assert_eq!(system(&[], &[]), UNKNOWN);
        assert_eq!(system(&[MEMORY], &[]), 16 * GIB);
        let own = ("proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0\n");
        let job = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7";
        let limit = (&*format!("{job}/memory.max"), "4294967296\n");
        let step = (&*format!("{job}/step_0/memory.max"), "max\n");
        assert_eq!(system(&[MEMORY, V2, own, limit, step], &[]), 4 * GIB);
        // memory used by other processes of the group is gone; cached files are not
        let used = (&*format!("{job}/memory.current"), "3221225472\n");
        assert_eq!(system(&[MEMORY, V2, own, limit, step, used], &[]), GIB);
        let stat = (&*format!("{job}/memory.stat"), "anon 5\ninactive_file 1073741816\nactive_file 8\n");
        assert_eq!(system(&[MEMORY, V2, own, limit, step, used, stat], &[]), 2 * GIB);
        // the innermost limit need not be the smallest
        let own_limit = (&*format!("{job}/step_0/memory.max"), "8589934592\n");
        assert_eq!(system(&[MEMORY, V2, own, limit, own_limit], &[]), 4 * GIB);
    }

    #[test]
    fn groups_of_containers_count() {
        // the group's path is that of the host; the mount shows the container's own group
        let own = ("proc/self/cgroup", "0::/docker/abc\n");
        let mounts = ("proc/self/mountinfo", "9 1 0:2 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
        let limit = ("sys/fs/cgroup/memory.max", "2147483648");
        assert_eq!(system(&[MEMORY, mounts, own, limit], &[]), 2 * GIB);
        // with a cgroup namespace of its own, also from a group next to it
        for path in ["0::/\n", "0::/../../elsewhere\n"] {
            assert_eq!(system(&[MEMORY, V2, ("proc/self/cgroup", path), limit], &[]), 2 * GIB);
        }
    }

    #[test]
    fn version_1_counts() {
        let own = ("proc/self/cgroup", "5:cpuset:/other\n4:memory:/slurm/uid_1/job_7\n0::/\n");
        let mounts = (
            "proc/self/mountinfo",
            "30 1 0:3 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
             31 1 0:4 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        );
        let limit = ("sys/fs/cgroup/memory/slurm/uid_1/memory.limit_in_bytes", "3221225472");
        let other = ("sys/fs/cgroup/cpuset/other/memory.limit_in_bytes", "1");
        assert_eq!(system(&[MEMORY, mounts, own, limit, other], &[]), 3 * GIB);
    }

    #[test]
    fn what_slurm_grants_counts() {
        let of = |variables: &[(&str, &str)]| system(&[MEMORY], variables);
        assert_eq!(of(&[("SLURM_MEM_PER_NODE", "1024")]), GIB);
        assert_eq!(
            of(&[("SLURM_MEM_PER_NODE", "0"), ("SLURM_MEM_PER_CPU", "512"), ("SLURM_CPUS_ON_NODE", "4")]),
            2 * GIB
        );
        assert_eq!(of(&[("SLURM_MEM_PER_CPU", "512"), ("SLURM_JOB_CPUS_PER_NODE", "6(x2)")]), 3 * GIB);
        assert_eq!(of(&[("SLURM_MEM_PER_GPU", "2048"), ("SLURM_GPUS_ON_NODE", "2")]), 4 * GIB);
        assert_eq!(of(&[("SLURM_MEM_PER_GPU", "2048"), ("SLURM_GPUS_PER_NODE", "gpu:h100:3(S:0-1)")]), 6 * GIB);
        // a share of an unknown amount limits nothing
        assert_eq!(of(&[("SLURM_MEM_PER_CPU", "512")]), 16 * GIB);
    }
}
