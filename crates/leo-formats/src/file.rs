//! Whole files in, with limits and clear refusals; what can be wrong with a file.

use std::fs::{File, Metadata, metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::array::ArrayError;
use crate::nnet::NnetError;
use crate::onnx::OnnxError;
use crate::vnnlib::VnnlibError;
use leo_network::DomainError;

/// The largest file that is read: 2 GiB, the most that ONNX's encoding allows.
const MAX_FILE: u64 = 1 << 31;

/// The most that a gzip file may unpack to: 1 GiB.
const MAX_UNPACKED: u64 = 1 << 30;

/// How many times its size a gzip file of text may unpack to: ours are packed to a half or a quarter.
const MAX_GROWTH: u64 = 32;

/// How many bytes a gzip file of text may unpack to in any case.
const UNPACKED_ALLOWANCE: u64 = 1 << 20;

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
    /// A file of this name is there, and is not to be replaced.
    #[error("is there already")]
    Exists,
    /// Another program wrote to the same name at the same time.
    #[error(
        "was overwritten by another program as it was written; files that belong together may not do so now: run this \
         again"
    )]
    Overwritten,
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
    #[error(
        "is larger than {} MiB{}, the most that Leo reads", .limit >> 20, if *.unpacked { " unpacked" } else { "" }
    )]
    TooLarge {
        /// How many bytes are allowed.
        limit: u64,
        /// Whether they are counted after gzip.
        unpacked: bool,
    },
    /// Gzip data that are next to nothing until they are unpacked.
    #[error(
        "unpacks to more than {MAX_GROWTH} times its size, as no file of this kind does; unpack it first if it should"
    )]
    Bomb,
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
    /// A shape for a file of a format that leaves nothing open.
    #[error("says all sizes itself, as NNet files do; --shape is for ONNX files that leave some open")]
    Shaped,
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

/// Reads a whole file as [`read_file`] does, if it is of a kind that gzip makes a few times smaller. A network can be
/// all zeros, and a thousand times smaller; what is written for people or as JSON cannot, and takes many times its
/// length to parse.
///
/// # Errors
/// As for [`read_file`], or if it unpacks to much more than its size.
pub fn read_text_file(path: &Path) -> Result<Vec<u8>, FileError> {
    let limit = |packed: u64| (MAX_GROWTH * packed + UNPACKED_ALLOWANCE, Problem::Bomb);
    read_unpacking(path, limit).map_err(|problem| problem.in_file(path))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    read_unpacking(path, |_| (MAX_UNPACKED, Problem::TooLarge { limit: MAX_UNPACKED, unpacked: true }))
}

/// Reads a file. `limit` says how many bytes a number of packed bytes may unpack to, and what is wrong with more.
fn read_unpacking(path: &Path, limit: impl FnOnce(u64) -> (u64, Problem)) -> Result<Vec<u8>, Problem> {
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
        let (limit, beyond) = limit(bytes.len() as u64);
        let limit = limit.min(MAX_UNPACKED);
        bytes = unpack(&bytes, limit)?;
        if bytes.len() as u64 > limit {
            return Err(beyond);
        }
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

/// Unpacks gzip data, up to the first byte beyond a limit.
fn unpack(packed: &[u8], limit: u64) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(packed).take(limit + 1).read_to_end(&mut bytes).map_err(Problem::Gzip)?;
    Ok(bytes)
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
}
