//! Which file a name stands for: names have links, spellings and upper case in them, and need not stand for anything
//! yet.

use std::fs::{Metadata, metadata, read_link};
use std::io;
use std::path::{Path, PathBuf};

/// How many links may lead from one to the next: as many as Linux follows.
const MAX_LINKS: usize = 40;

/// Where a file of this name is written: links are followed to their end, whether or not something is there.
///
/// # Errors
/// If links lead in a circle.
pub(crate) fn destination(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..=MAX_LINKS {
        if let Ok(target) = path.canonicalize() {
            return Ok(target);
        }
        // Standard output may be there, and be nowhere among the files.
        let Some(target) = read_link(&path).ok().filter(|_| !path.exists()) else { return Ok(in_its_folder(&path)) };
        path = folder_of(&path).join(target);
    }
    Err(io::Error::other("its links lead in a circle"))
}

/// The folder that a name is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The same name, with all links followed that its folder has.
fn in_its_folder(path: &Path) -> PathBuf {
    let folder = folder_of(path).canonicalize();
    folder.ok().zip(path.file_name()).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name))
}

/// Whether writing a file of the one name could change what is read by the other, or written by it.
///
/// That is so if both lead to the same place, by whatever links. Two hard links count as the same, too: files are
/// replaced, so that the other link would keep what it has, but who has two names for one file has one file in mind. If
/// neither is there yet, names that differ in upper and lower case count as the same, because there are file systems
/// where they are, and nobody can tell by looking.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    if one == other {
        return true;
    }
    if let (Ok(one), Ok(other)) = (metadata(one), metadata(other))
        && identity(&one).is_some_and(|one| identity(&other) == Some(one))
    {
        return true;
    }
    let (Ok(one), Ok(other)) = (destination(one), destination(other)) else { return false };
    let lower = |path: &Path| path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let is_new = !one.exists() && !other.exists();
    one == other || is_new && one.parent() == other.parent() && lower(&one) == lower(&other)
}

/// What tells a file or folder from all others that are there, whatever it is called.
#[cfg(unix)]
pub(crate) fn identity(about: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((about.dev(), about.ino()))
}

#[cfg(not(unix))]
pub(crate) fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{create_dir, hard_link, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn names_that_lead_to_one_place_are_the_same() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        write(path("file"), "")?;
        hard_link(path("file"), path("hard"))?;
        create_dir(path("sub"))?;
        for (target, link) in [
            ("file", "soft"),
            ("soft", "softer"),
            ("new", "dangling"),
            ("dangling", "sub/../chain"),
            ("../new", "sub/up"),
            (".", "here"),
            ("circle", "circle"),
        ] {
            symlink(target, path(link))?;
        }
        let is_same = |one: &str, other: &str| {
            let answers = [(one, other), (other, one)].map(|(one, other)| is_same_file(&path(one), &path(other)));
            assert_eq!(answers[0], answers[1], "{one} and {other}");
            answers[0]
        };
        for other in ["./file", "sub/../file", "here/file", "soft", "softer", "hard", "here/here/hard"] {
            assert!(is_same("file", other), "{other}");
        }
        for other in ["dangling", "chain", "sub/up", "here/new", "here/chain", "NEW"] {
            assert!(is_same("new", other) && is_same("chain", other), "{other}");
        }
        assert!(is_same("größe", "GRÖSSE".to_lowercase().replace("ss", "ß").as_str()));
        for other in ["new", "chain", "FILE", "missing/file", "circle"] {
            assert!(!is_same("file", other), "{other}");
        }
        assert!(destination(&path("circle")).is_err());
        Ok(())
    }
}
