//! Cache of files between runs, in a directory that nobody else may write to, as some of the files are code.

use crate::error::messages;
use crate::visible::Shown;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf, absolute};

messages! {
    /// Why a directory is not used as a cache.
    enum CacheWarning: Warning {
        Foreign { directory: String, place: String, user: u32 } =>
            "{directory} is not used as a cache, because {place} belongs to another user (number {user})";
            "take the permission to write from others (chmod go-w), or set FBP_CACHE_DIR to a directory of your own",
        Writable { directory: String, place: String, mode: u32 } =>
            "{directory} is not used as a cache, because others may write to {place} (mode {mode:04o})";
            "take the permission to write from others (chmod go-w), or set FBP_CACHE_DIR to a directory of your own",
    }
}

/// Who else can change files in a directory.
#[derive(Debug, PartialEq, Eq)]
enum CacheDanger {
    /// The owner of a place, who has this number.
    Owner { place: PathBuf, user: u32 },
    /// Others, who may write to a place by its mode.
    Others { place: PathBuf, mode: u32 },
}

/// Returns the cache directory, unless others may write to it: `FBP_CACHE_DIR`, else `fbp` in `XDG_CACHE_HOME`, else in
/// `~/.cache`.
pub fn cache_directory() -> Option<PathBuf> {
    named().filter(|directory| danger(directory).is_none())
}

/// Returns a folder in the cache directory, unless others may write to it.
pub fn cache_folder(name: &str) -> Option<PathBuf> {
    Some(cache_directory()?.join(name)).filter(|folder| danger(folder).is_none())
}

/// Returns a warning if others may write to the cache directory or to one of its folders.
pub fn refused_cache(folders: &[&str]) -> Option<String> {
    let directory = named()?;
    let places = std::iter::once(directory.clone()).chain(folders.iter().map(|folder| directory.join(folder)));
    let (directory, danger) = places.into_iter().find_map(|place| danger(&place).map(|danger| (place, danger)))?;
    let directory = directory.shown();
    let warning = match danger {
        CacheDanger::Owner { place, user } => CacheWarning::Foreign { directory, place: place.shown(), user },
        CacheDanger::Others { place, mode } => CacheWarning::Writable { directory, place: place.shown(), mode },
    };
    Some(format!("warning: {warning}"))
}

/// Makes a directory of the cache if it does not exist. Nobody else may use it.
pub fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Reports whether a file belongs to the user or to the system.
pub fn is_own(file: &Metadata) -> bool {
    [0, geteuid().as_raw()].contains(&file.uid())
}

fn named() -> Option<PathBuf> {
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    path("FBP_CACHE_DIR")
        .or_else(|| Some(path("XDG_CACHE_HOME")?.join("fbp")))
        .or_else(|| Some(path("HOME")?.join(".cache/fbp")))
}

/// Returns who else can change files in a directory, or replace the directory; `None` if only the user and the system
/// can.
///
/// Directories that do not exist yet are made by the program, and thus are not a danger.
fn danger(directory: &Path) -> Option<CacheDanger> {
    let named = absolute(directory).ok()?;
    // the targets of links count as well as the places of the links
    let real = fs::canonicalize(&named).ok();
    real.iter().chain([&named]).find_map(|path| {
        path.ancestors().find_map(|place| {
            let link = fs::symlink_metadata(place).ok()?;
            let found = fs::metadata(place).ok();
            [Some(link), found].iter().flatten().find_map(|meta| danger_of(place, meta, place == path))
        })
    })
}

/// Owner of directories whose user a container does not know: they belong to the system outside.
const UNKNOWN: u32 = 65534;

/// Returns the danger of one directory on a path; `own` tells whether it is the directory itself, not one that contains
/// it.
fn danger_of(place: &Path, meta: &Metadata, own: bool) -> Option<CacheDanger> {
    let (mode, place) = (meta.permissions().mode(), place.to_owned());
    if !is_own(meta) && (own || meta.uid() != UNKNOWN) {
        return Some(CacheDanger::Owner { place, user: meta.uid() });
    }
    // with the sticky bit, others can add entries, but cannot replace any
    let sticky = !own && mode & 0o1000 != 0;
    let writable = !meta.file_type().is_symlink() && mode & 0o022 != 0 && !sticky;
    writable.then_some(CacheDanger::Others { place, mode: mode & 0o7777 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn directories_that_others_may_change_are_dangerous() {
        let lab = tempfile::tempdir().unwrap();
        let path = |name: &str| lab.path().join(name);
        let why = |name: &str| danger(&path(name));
        make_private(&path("own/cache/programs")).unwrap();
        for folder in ["own", "own/cache", "own/cache/programs"] {
            assert_eq!(fs::metadata(path(folder)).unwrap().mode() & 0o777, 0o700);
            assert_eq!(why(folder), None);
        }
        assert_eq!(why("own/not/there/yet"), None);
        // itself, or one above it
        for (mode, safe, safe_within) in [
            (0o755, true, true),
            (0o770, false, false),
            (0o702, false, false),
            (0o777, false, false),
            // like /tmp
            (0o1777, false, true),
        ] {
            chmod(&path("own"), mode);
            assert_eq!(why("own").is_none(), safe, "{mode:o}");
            assert_eq!(why("own/cache").is_none(), safe_within, "{mode:o}");
            assert_eq!(why("own/new").is_none(), safe_within, "{mode:o}");
        }
        chmod(&path("own"), 0o700);
        // through links: what they lead to, and where they are
        symlink(path("own/cache"), path("link")).unwrap();
        assert_eq!(why("link"), None);
        chmod(&path("own/cache"), 0o777);
        assert!(matches!(why("link"), Some(CacheDanger::Others { mode: 0o777, .. })));
        assert!(why("link/programs").is_some());
        chmod(&path("own/cache"), 0o700);
        make_private(&path("open")).unwrap();
        symlink(path("own/cache"), path("open/link")).unwrap();
        chmod(&path("open"), 0o777);
        assert!(why("open/link/programs").is_some());
    }

    /// Only the system's administrator can give files away.
    #[test]
    fn directories_of_another_user_are_dangerous() {
        let lab = tempfile::tempdir().unwrap();
        let path = lab.path().join("theirs");
        make_private(&path.join("cache")).unwrap();
        let meta = fs::metadata(&path).unwrap();
        assert!(is_own(&meta));
        if !geteuid().is_root() {
            // nobody else's directory can be made
            assert_eq!(danger(&path), None);
            return;
        }
        std::os::unix::fs::chown(&path, Some(4711), None).unwrap();
        assert!(!is_own(&fs::metadata(&path).unwrap()));
        for place in ["", "cache", "new"] {
            assert!(matches!(danger(&path.join(place)), Some(CacheDanger::Owner { user: 4711, .. })), "{place}");
        }
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        std::os::unix::fs::lchown(path.join("cache"), Some(4711), None).unwrap();
        assert_eq!(danger(&path), None);
        assert!(danger(&path.join("cache")).is_some());
    }
}
