//! Whole files in and out: with limits and clear refusals on the way in, never half written on the way out.

use std::fs::{File, Metadata, metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tempfile::{NamedTempFile, TempPath};

use crate::array::ArrayError;
use crate::domain::DomainError;
use crate::nnet::NnetError;
use crate::onnx::OnnxError;
use crate::unfinished::{Unfinished, naming};
use crate::vnnlib::VnnlibError;

/// The largest file that is read: 2 GiB, the most that ONNX's encoding allows.
const MAX_FILE: u64 = 1 << 31;

/// The most that a gzip file may unpack to: 1 GiB.
const MAX_UNPACKED: u64 = 1 << 30;

/// What went wrong with a file: which one, where in it, and why, on one line.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Box<Problem>,
}

/// What can be wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system would not let us read it.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// The operating system would not let us write it.
    #[error("cannot be written: {0}")]
    Write(io::Error),
    /// A folder where a file should be.
    #[error("is a directory, not a file")]
    Directory,
    /// A device or the like, which may never end.
    #[error("is neither a file nor a pipe")]
    Device,
    /// Nothing in it.
    #[error("is empty")]
    Empty,
    /// More than Leo takes.
    #[error("is larger than {} MiB{}, the most that Leo reads", .limit >> 20, if *.unpacked { " unpacked" } else { "" })]
    TooLarge {
        /// How many bytes are allowed.
        limit: u64,
        /// Whether they are counted after gzip.
        unpacked: bool,
    },
    /// Broken gzip data.
    #[error("is not a whole gzip file: {0}")]
    Gzip(io::Error),
    /// Its name ends in none of the known ways.
    #[error("has an unknown suffix; {expected}")]
    UnknownSuffix {
        /// What would have been understood.
        expected: &'static str,
    },
    /// The content is not what the name says.
    #[error("is not {expected}: {found}")]
    WrongContent {
        /// What the suffix promises.
        expected: &'static str,
        /// What the file begins like.
        found: &'static str,
    },
    /// Broken, or beyond Leo, as an ONNX model.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// Broken as an NNet file.
    #[error(transparent)]
    Nnet(#[from] NnetError),
    /// Broken as a VNN-LIB file, or not a box.
    #[error(transparent)]
    Vnnlib(#[from] VnnlibError),
    /// Broken as an array of numbers.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// Not a domain.
    #[error(transparent)]
    Domain(#[from] DomainError),
}

impl Problem {
    /// Says which file has this problem.
    pub fn in_file(self, path: &Path) -> FileError {
        FileError { path: path.to_owned(), problem: Box::new(self) }
    }
}

/// Reads a whole file, unpacking it if it is gzip, whatever its name.
///
/// # Errors
/// If it cannot be read, is empty, or is larger than Leo takes.
pub fn read_file(path: &Path) -> Result<Vec<u8>, FileError> {
    read(path).map_err(|problem| problem.in_file(path))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    let about = metadata(path).map_err(Problem::Read)?;
    if about.is_dir() {
        return Err(Problem::Directory);
    }
    if !about.is_file() && !is_pipe(&about) {
        return Err(Problem::Device);
    }
    if about.len() > MAX_FILE {
        return Err(Problem::TooLarge { limit: MAX_FILE, unpacked: false });
    }
    let mut bytes = Vec::with_capacity(about.len() as usize + 1);
    let file = File::open(path).map_err(Problem::Read)?;
    // The length above is only a hint: pipes and growing files have another one by now.
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(Problem::Read)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Problem::TooLarge { limit: MAX_FILE, unpacked: false });
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        bytes = unpack(&bytes)?;
    }
    if bytes.is_empty() {
        return Err(Problem::Empty);
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_pipe(about: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&about.file_type())
}

#[cfg(not(unix))]
fn is_pipe(_: &Metadata) -> bool {
    false
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(packed).take(MAX_UNPACKED + 1).read_to_end(&mut bytes).map_err(Problem::Gzip)?;
    if bytes.len() as u64 > MAX_UNPACKED {
        return Err(Problem::TooLarge { limit: MAX_UNPACKED, unpacked: true });
    }
    Ok(bytes)
}

/// Writes a whole file under a temporary name beside `path`, then renames it: whoever looks at `path` sees the old
/// file or the new one, never a part. A link is followed. What is no regular file, such as a pipe or a device, is written to as it is.
///
/// # Errors
/// If the folder does not exist or cannot be written to, or the disk is full. `path` is then as it was.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_together(&[(path, bytes)])
}

/// Writes files that belong together, each as [`write_atomically`] does. None gets its name before all are complete, and if one cannot get it, those
/// before it give theirs back.
///
/// # Errors
/// As for one file. All are then as they were, but for what is no regular file and has taken what was written.
pub fn write_together(files: &[(&Path, &[u8])]) -> Result<(), FileError> {
    let failed = |path: &Path, error: io::Error| Problem::Write(error).in_file(path);
    let (mut special, mut complete) = (Vec::new(), Vec::new());
    for &(path, bytes) in files {
        match prepare(path, bytes).map_err(|error| failed(path, error))? {
            Prepared::Special(file) => special.push((path, file, bytes)),
            Prepared::Complete(file) => complete.push((path, file)),
        }
    }
    for (path, mut file, bytes) in special {
        file.write_all(bytes).map_err(|error| failed(path, error))?;
    }
    // A program that is stopped now has all of them or none.
    let _naming = naming();
    let mut named: Vec<Named> = Vec::new();
    for (path, file) in complete {
        match file.name() {
            Ok(file) => named.push(file),
            Err(error) => {
                named.into_iter().rev().for_each(Named::undo);
                return Err(failed(path, error));
            }
        }
    }
    Ok(())
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
        self.file.path().parent().unwrap_or(Path::new("."))
    }

    fn name(self) -> io::Result<Named> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".leo-").suffix(".old");
        let before = match self.path.exists() {
            false => Before::Nothing,
            true => match builder.make_in(self.folder(), |path| std::fs::hard_link(&self.path, path)) {
                Ok(link) => Before::Link(link.into_temp_path()),
                Err(_) => Before::Lost,
            },
        };
        self.file.persist(&self.path)?;
        Ok(Named { path: self.path, before })
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

fn prepare(path: &Path, bytes: &[u8]) -> io::Result<Prepared> {
    if path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let path = followed(path);
    if path.exists() && !path.is_file() {
        return Ok(Prepared::Special(File::options().write(true).open(path)?));
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    if !folder.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "its folder does not exist"));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".leo-").suffix(".part");
    // Temporary files are private by default; this one is about to become the user's, under the user's umask.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    // The name of the temporary file would only confuse: it is not what the user asked for.
    let (unfinished, file) =
        Unfinished::begin(|| builder.tempfile_in(&folder)).map_err(|error| io::Error::from(error.kind()))?;
    if let Ok(before) = metadata(&path) {
        // What was private stays so.
        file.as_file().set_permissions(before.permissions())?;
    }
    // Not through the temporary file, whose name would be in the error.
    let mut plain = file.as_file();
    plain.write_all(bytes)?;
    plain.sync_all()?;
    Ok(Prepared::Complete(Complete { file, path, _unfinished: unfinished }))
}

/// Where a link leads, also if nothing is there yet.
fn followed(path: &Path) -> PathBuf {
    match (path.canonicalize(), std::fs::read_link(path)) {
        (Ok(target), _) => target,
        (Err(_), Ok(target)) => path.parent().unwrap_or(Path::new("")).join(target),
        (Err(_), Err(_)) => path.to_owned(),
    }
}

/// Which kind of file a name stands for: its suffix in lower case, not counting `.gz`.
pub(crate) fn suffix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map_or_else(String::new, |(_, suffix)| suffix.to_owned())
}

/// What [`looks_like`] says of bytes that it cannot place.
pub(crate) const NO_GUESS: &str = "it begins like nothing that Leo knows";

/// What a file that is not what its suffix says looks like instead.
pub(crate) fn looks_like(bytes: &[u8]) -> &'static str {
    let text = bytes.trim_ascii_start();
    match bytes {
        _ if bytes.starts_with(b"\x93NUMPY") => "it begins like a NumPy array",
        _ if bytes.starts_with(b"PK\x03\x04") => "it begins like a ZIP archive (a PyTorch checkpoint, perhaps)",
        _ if bytes.starts_with(b"\x89HDF") => "it begins like an HDF5 file (a Keras model, perhaps)",
        _ if bytes.starts_with(b"\x80\x02") || bytes.starts_with(b"\x80\x04") => "it begins like a Python pickle",
        _ if bytes.starts_with(b"version https://git-lfs") => "it is a Git LFS pointer; fetch the file itself",
        _ if text.starts_with(b"<") => "it begins like a web page",
        _ if text.starts_with(b"(") || text.starts_with(b";") => "it begins like a VNN-LIB file",
        _ if text.starts_with(b"//") => "it begins like an NNet file",
        _ if text.starts_with(b"{") => "it begins like JSON",
        _ if bytes.iter().take(512).all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => "it is text",
        _ => NO_GUESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_see_through_gzip_and_case() {
        assert_eq!(suffix(Path::new("a/b.C.ONNX")), "onnx");
        assert_eq!(suffix(Path::new("prop.vnnlib.gz")), "vnnlib");
        assert_eq!(suffix(Path::new("a.d/plain")), "");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x");
        write_atomically(&path, b"old").map_err(io::Error::other)?;
        assert!(write_atomically(&folder.path().join("missing/x"), b"new").is_err());
        assert!(write_atomically(folder.path(), b"new").is_err());
        assert!(write_together(&[(&path, b"new"), (&folder.path().join("missing/x"), b"new")]).is_err());
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
        assert!(write_together(&[(&there, b"1"), (&new, b"2"), (&long, b"3")]).is_err());
        assert_eq!((std::fs::read(&there)?, new.exists()), (b"old".to_vec(), false));
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 1);
        write_together(&[(&there, b"1"), (&new, b"2")]).map_err(io::Error::other)?;
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
}
