//! Whole files in and out: with limits and clear refusals on the way in, never half written on the way out.

use std::fs::{File, Metadata, metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tempfile::NamedTempFile;

use crate::array::ArrayError;
use crate::domain::DomainError;
use crate::nnet::NnetError;
use crate::onnx::OnnxError;
use crate::unfinished::Unfinished;
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

/// Writes files that belong together, each as [`write_atomically`] does, and none before there is room for all.
///
/// # Errors
/// As for one file; then all are as they were, unless renaming fails, which only happens if folders change meanwhile.
pub fn write_together(files: &[(&Path, &[u8])]) -> Result<(), FileError> {
    let failed = |path: &Path, error: io::Error| Problem::Write(error).in_file(path);
    let mut prepared = Vec::new();
    for &(path, bytes) in files {
        prepared.push((path, bytes, prepare(path, bytes).map_err(|error| failed(path, error))?));
    }
    for (path, bytes, prepared) in prepared {
        prepared.finish(bytes).map_err(|error| failed(path, error))?;
    }
    Ok(())
}

/// A file that is as good as written.
enum Prepared {
    /// It is complete, and only its name is missing.
    Unnamed(NamedTempFile, PathBuf, Unfinished),
    /// It is no regular file, and takes what is written at once.
    Special(File),
}

impl Prepared {
    fn finish(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unnamed(file, path, _unfinished) => Ok(file.persist(path).map(drop)?),
            Self::Special(mut file) => file.write_all(bytes),
        }
    }
}

fn prepare(path: &Path, bytes: &[u8]) -> io::Result<Prepared> {
    if path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let target = path.canonicalize();
    let path = target.as_deref().unwrap_or(path);
    if path.exists() && !path.is_file() {
        return Ok(Prepared::Special(File::options().write(true).open(path)?));
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
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
    let (unfinished, mut file) =
        Unfinished::begin(|| builder.tempfile_in(folder)).map_err(|error| io::Error::from(error.kind()))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(Prepared::Unnamed(file, path.to_owned(), unfinished))
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
