//! Whole files out: never half written, and those that belong together from one hand.
//!
//! Two runs that write the same files at the same time would each rename one file after the other, and leave the one's
//! network beside the other's certificate. So the folders are locked while files that belong together get their names.
//! Where folders cannot be locked (some network drives, other systems), and against programs that do not ask, there is
//! a second line of defence: afterwards each name is looked at. Of all that wrote there, at least the last one then
//! finds what it did not write, if files do not belong together, and says so.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError, metadata};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::{NamedTempFile, TempPath};

use crate::file::{FileError, Problem};
use crate::place::{destination, folder_of, identity};
use crate::temporary_files::{Unfinished, naming};

/// How long to wait for another run that gives names in the same folder. That takes milliseconds; a run that was halted
/// just then must not stop all others.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait between two attempts to lock a folder.
const PAUSE: Duration = Duration::from_millis(2);

/// A file to write.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    /// Its name.
    pub path: &'a Path,
    /// All that is to be in it.
    pub bytes: &'a [u8],
    /// Whether a file that has the name already may be replaced.
    pub may_replace: bool,
}

/// Writes a whole file under a temporary name beside `path`, then renames it: whoever looks at `path` sees the old file
/// or the new one, never a part. A link is followed. What is no regular file, such as a pipe or a device, is written to
/// as it is.
///
/// # Errors
/// If the folder does not exist or cannot be written to, or the disk is full. `path` is then as it was.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_together(&[NewFile { path, bytes, may_replace: true }])
}

/// Writes files that belong together, each as [`write_atomically`] does. None gets its name before all are complete,
/// and if one cannot get it, those before it give theirs back. Two programs that do this with the same names do it one
/// after the other.
///
/// # Errors
/// As for one file, or if a file is there that may not be replaced, even if it came a moment ago. All are then as they
/// were, but for what is no regular file and has taken what was written. Also if in the end another program's files are
/// there instead.
pub fn write_together(files: &[NewFile<'_>]) -> Result<(), FileError> {
    write_locking(files, lock)
}

/// Writes files as [`write_together`] does, with `lock` to lock the folders of files that are complete.
fn write_locking(files: &[NewFile<'_>], lock: impl FnOnce(&[&Path]) -> Vec<File>) -> Result<(), FileError> {
    let failed = |path: &Path, error: io::Error| Problem::Write(error).in_file(path);
    let (mut special, mut complete) = (Vec::new(), Vec::new());
    for file in files {
        match prepare(file).map_err(|error| failed(file.path, error))? {
            Prepared::Special(open) => special.push((file, open)),
            Prepared::Complete(ready) => complete.push((file, ready)),
        }
    }
    for (file, mut open) in special {
        open.write_all(file.bytes).map_err(|error| failed(file.path, error))?;
    }
    let is_alone = complete.len() < 2;
    let folders: Vec<&Path> = complete.iter().map(|(_, ready)| ready.folder()).collect();
    let _locks = if is_alone { Vec::new() } else { lock(&folders) };
    let named = name_all(complete)?;
    let is_whole = |(file, path): &(&NewFile<'_>, PathBuf)| is_alone || holds(path, file.bytes);
    match named.iter().find(|file| !is_whole(file)) {
        Some((file, _)) => Err(Problem::Overwritten.in_file(file.path)),
        None => Ok(()),
    }
}

/// Gives all files their names, or none. Says where they are.
fn name_all<'a, 'b>(complete: Vec<(&'a NewFile<'b>, Complete)>) -> Result<Vec<(&'a NewFile<'b>, PathBuf)>, FileError> {
    // A program that is stopped now has all of them or none.
    let _naming = naming();
    let mut named: Vec<(&NewFile<'_>, Named)> = Vec::new();
    for (file, ready) in complete {
        match ready.name(file.may_replace) {
            Ok(done) => named.push((file, done)),
            Err(problem) => {
                named.into_iter().rev().for_each(|(_, named)| named.undo());
                return Err(problem.in_file(file.path));
            }
        }
    }
    Ok(named.into_iter().map(|(file, named)| (file, named.path)).collect())
}

/// Keeps other runs from giving names in these folders, until the locks are dropped; as far as the folders can be
/// locked.
///
/// All go through the folders in the same order, so that no two runs wait for each other. A folder that is there by two
/// names is locked once: the second time it would wait for itself.
fn lock(folders: &[&Path]) -> Vec<File> {
    let mut open = BTreeMap::new();
    for folder in folders {
        if let Ok(folder) = File::open(folder)
            && let Some(identity) = folder.metadata().ok().as_ref().and_then(identity)
        {
            open.insert(identity, folder);
        }
    }
    let end = Instant::now() + PATIENCE;
    open.into_values().filter(|folder| wait_for(folder, end)).collect()
}

/// Locks a folder, unless that cannot be done, or not in time.
fn wait_for(folder: &File, end: Instant) -> bool {
    loop {
        match folder.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(PAUSE),
            Err(_) => return false,
        }
    }
}

/// Whether this is what a file holds, or would, if it could be read.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    let mut file = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    let mut piece = vec![0; 1 << 16];
    let is_same = |wanted: &[u8]| {
        let piece = &mut piece[..wanted.len()];
        file.read_exact(piece).is_ok() && piece == wanted
    };
    bytes.chunks(1 << 16).all(is_same) && file.read(&mut [0]).is_ok_and(|more| more == 0)
}

enum Prepared {
    Complete(Complete),
    /// No regular file: it takes what is written at once.
    Special(File),
}

/// A file that is complete, and only its name is missing.
struct Complete {
    file: NamedTempFile,
    path: PathBuf,
    _unfinished: Unfinished,
}

impl Complete {
    fn folder(&self) -> &Path {
        folder_of(self.file.path())
    }

    fn name(self, may_replace: bool) -> Result<Named, Problem> {
        if !may_replace {
            return self.name_new();
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".leo-").suffix(".old");
        let before = match self.path.exists() {
            false => Before::Nothing,
            true => match builder.make_in(self.folder(), |path| std::fs::hard_link(&self.path, path)) {
                Ok(link) => Before::Link(link.into_temp_path()),
                Err(_) => Before::Lost,
            },
        };
        self.file.persist(&self.path).map_err(|error| Problem::Write(error.error))?;
        Ok(Named { path: self.path, before })
    }

    /// Gives the name only if nothing has it, not even since a moment ago.
    fn name_new(self) -> Result<Named, Problem> {
        let path = self.path;
        match self.file.persist_noclobber(&path) {
            Ok(_) => {}
            Err(_) if path.exists() => return Err(Problem::Exists),
            // There are file systems that cannot look and rename in one step.
            Err(error) => drop(error.file.persist(&path).map_err(|error| Problem::Write(error.error))?),
        }
        Ok(Named { path, before: Before::Nothing })
    }
}

/// A file that has got its name, and what had it before.
struct Named {
    path: PathBuf,
    before: Before,
}

enum Before {
    Nothing,
    Link(TempPath),
    /// Something, in a folder without hard links.
    Lost,
}

impl Named {
    /// As before. Where that fails, too, there is nothing left to try.
    fn undo(self) {
        match self.before {
            Before::Nothing => drop(std::fs::remove_file(self.path)),
            Before::Link(link) => drop(link.persist(self.path)),
            Before::Lost => {}
        }
    }
}

fn prepare(file: &NewFile<'_>) -> io::Result<Prepared> {
    if file.path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let path = destination(file.path)?;
    if path.exists() && !path.is_file() {
        return Ok(Prepared::Special(File::options().write(true).open(path)?));
    }
    let folder = folder_of(&path);
    if !folder.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "its folder does not exist"));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".leo-").suffix(".part");
    // Temporary files are private by default; this one is about to become the user's, under the user's umask.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    // The name of the temporary file would only confuse: it is not what the user asked for.
    let (unfinished, temporary) =
        Unfinished::begin(|| builder.tempfile_in(folder)).map_err(|error| io::Error::from(error.kind()))?;
    if let Ok(before) = metadata(&path) {
        // What was private stays so.
        temporary.as_file().set_permissions(before.permissions())?;
    }
    // Not through the temporary file, whose name would be in the error.
    let mut plain = temporary.as_file();
    plain.write_all(file.bytes)?;
    plain.sync_all()?;
    Ok(Prepared::Complete(Complete { file: temporary, path, _unfinished: unfinished }))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn new<'a>(path: &'a Path, bytes: &'a [u8], may_replace: bool) -> NewFile<'a> {
        NewFile { path, bytes, may_replace }
    }

    fn replace(files: &[(&Path, &[u8])]) -> Result<(), FileError> {
        write_together(&files.iter().map(|&(path, bytes)| new(path, bytes, true)).collect::<Vec<_>>())
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x");
        write_atomically(&path, b"old").map_err(io::Error::other)?;
        assert!(write_atomically(&folder.path().join("missing/x"), b"new").is_err());
        assert!(write_atomically(folder.path(), b"new").is_err());
        assert!(replace(&[(&path, b"new"), (&folder.path().join("missing/x"), b"new")]).is_err());
        assert_eq!(std::fs::read(&path)?, b"old");
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 1);
        Ok(())
    }

    #[test]
    fn files_that_belong_together_are_all_written_or_none() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let [there, new] = ["there", "new"].map(|name| folder.path().join(name));
        std::fs::write(&there, "old")?;
        // Only when a file gets its name does the name turn out to be too long.
        let long = folder.path().join("x".repeat(300));
        assert!(replace(&[(&there, b"1"), (&new, b"2"), (&long, b"3")]).is_err());
        assert_eq!((std::fs::read(&there)?, new.exists()), (b"old".to_vec(), false));
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 1);
        replace(&[(&there, b"1"), (&new, b"2")]).map_err(io::Error::other)?;
        assert_eq!((std::fs::read(&there)?, std::fs::read(&new)?), (b"1".to_vec(), b"2".to_vec()));
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 2);
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_private_files_stay_private() -> io::Result<()> {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir()?;
        let [target, link] = ["target", "link"].map(|name| folder.path().join(name));
        symlink("target", &link)?;
        write_atomically(&link, b"new").map_err(io::Error::other)?;
        assert!(link.is_symlink() && std::fs::read(&target)? == b"new");
        std::fs::set_permissions(&target, PermissionsExt::from_mode(0o600))?;
        write_atomically(&link, b"newer").map_err(io::Error::other)?;
        assert_eq!(metadata(&target)?.permissions().mode() & 0o777, 0o600);
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn written_files_are_readable_like_any_other() -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir()?;
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        write_atomically(&ours, b"").map_err(io::Error::other)?;
        std::fs::write(&theirs, b"")?;
        assert_eq!(metadata(ours)?.permissions().mode(), metadata(theirs)?.permissions().mode());
        Ok(())
    }

    #[test]
    fn a_file_that_came_a_moment_ago_is_not_replaced_unasked() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let [network, certificate] = ["network", "certificate"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, "old")?;
        let files = [new(&network, b"1", false), new(&certificate, b"2", false)];
        let error = write_together(&files).expect_err("it is there");
        assert!(error.path == certificate && matches!(*error.problem, Problem::Exists), "{error}");
        // Not even the file whose name was free.
        assert_eq!((network.exists(), std::fs::read(&certificate)?), (false, b"old".to_vec()));
        std::fs::remove_file(&certificate)?;
        write_together(&files).map_err(io::Error::other)?;
        assert_eq!((std::fs::read(&network)?, std::fs::read(&certificate)?), (b"1".to_vec(), b"2".to_vec()));
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 2);
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn a_chain_of_links_is_followed_to_its_end() -> io::Result<()> {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir()?;
        let [first, second, target] = ["first", "second", "target"].map(|name| folder.path().join(name));
        symlink("second", &first)?;
        symlink("target", &second)?;
        write_atomically(&first, b"new").map_err(io::Error::other)?;
        assert!(first.is_symlink() && second.is_symlink() && std::fs::read(&target)? == b"new");
        symlink("circle", folder.path().join("circle"))?;
        let error = write_atomically(&folder.path().join("circle"), b"new").expect_err("it leads nowhere");
        assert!(error.to_string().ends_with("circle: cannot be written: its links lead in a circle"), "{error}");
        Ok(())
    }

    #[test]
    fn a_file_that_is_longer_or_shorter_or_gone_is_another() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x");
        assert!(!holds(&path, b""));
        let bytes: Vec<u8> = (0..200_000_u32).map(|index| index as u8).collect();
        std::fs::write(&path, &bytes)?;
        assert!(holds(&path, &bytes));
        let mut other = bytes.clone();
        other[150_000] ^= 1;
        let longer = [&bytes[..], &[0]].concat();
        assert!(!holds(&path, &other) && !holds(&path, &longer) && !holds(&path, &bytes[..131_072]));
        Ok(())
    }

    /// Writes pairs to the same two names from four threads at once, in every round. Says how many rounds left a pair
    /// that does not belong together, and whether somebody was told in each of them.
    fn race(rounds: usize, lock: fn(&[&Path]) -> Vec<File>) -> io::Result<(usize, bool)> {
        /// How many runs there are at once.
        const THREADS: u8 = 4;
        let folder = tempfile::tempdir()?;
        let [network, certificate] = ["network", "certificate"].map(|name| folder.path().join(name));
        let (mut mixed, mut is_told) = (0, true);
        for round in 0..rounds {
            let start = Barrier::new(THREADS.into());
            let write = |thread: u8| {
                let bytes = [thread; 64];
                let mut files = [new(&network, &bytes, true), new(&certificate, &bytes, true)];
                // Whoever renames in the other order meets the first one in the middle.
                if thread % 2 == 1 {
                    files.reverse();
                }
                start.wait();
                write_locking(&files, lock)
            };
            let results: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || write(thread))).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            let is_pair = std::fs::read(&network)? == std::fs::read(&certificate)?;
            mixed += usize::from(!is_pair);
            is_told &= is_pair || results.iter().any(Result::is_err);
            let is_known = |error: &FileError| matches!(*error.problem, Problem::Overwritten);
            assert!(results.iter().filter_map(|result| result.as_ref().err()).all(is_known), "{round}: {results:?}");
        }
        Ok((mixed, is_told))
    }

    /// Two runs at once used to leave the one's network with the other's certificate.
    #[cfg(unix)]
    #[test]
    fn pairs_of_two_runs_are_never_mixed() -> io::Result<()> {
        assert_eq!(race(50, lock)?, (0, true));
        Ok(())
    }

    #[test]
    fn where_nothing_can_be_locked_somebody_is_told() -> io::Result<()> {
        let (mixed, is_told) = race(50, |_| Vec::new())?;
        assert!(is_told, "{mixed} pairs do not belong together");
        Ok(())
    }
}
