//! Which files a command writes, what they are called, and which it leaves alone.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use leo::has_suffix;
use leo_formats::{NewFile, Problem, is_same_file, write_together};

/// Whether what is written here is no file of its own: a device, a pipe.
pub fn is_special(path: &Path) -> bool {
    is_standard_output(path) || path.exists() && !path.is_file() && !path.is_dir()
}

/// Whether this is where reports go.
pub fn is_standard_output(path: &Path) -> bool {
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Sees to it that a network can be written here, and read again.
///
/// # Errors
/// If its name does not say that it is one.
pub fn ensure_onnx(path: &Path) -> Result<()> {
    let is_onnx = has_suffix(path, "onnx") || is_special(path);
    ensure!(is_onnx, "{}: the file to write should end in .onnx", path.display());
    Ok(())
}

/// Sees to it that nothing is lost by writing here.
///
/// # Errors
/// If a file is there already, and is not to be overwritten.
pub fn ensure_free(path: &Path, force: bool) -> Result<()> {
    ensure!(
        force || is_special(path) || !path.is_file(),
        "{}: is there already; --force overwrites it",
        path.display()
    );
    Ok(())
}

/// Sees to it that a file is written that is not read or written otherwise.
///
/// # Errors
/// If one of the others is the same file.
pub fn ensure_other<'a>(path: &Path, flag: &str, others: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    for other in others {
        ensure!(
            is_special(path) || !is_same_file(path, other),
            "{flag} {}: would overwrite {}; give another name",
            path.display(),
            other.display()
        );
    }
    Ok(())
}

/// A file to write, over another one only if it is to be overwritten.
pub fn output<'a>(path: &'a Path, bytes: &'a [u8], force: bool) -> NewFile<'a> {
    NewFile { path, bytes, may_replace: force || is_special(path) }
}

/// Writes files that belong together.
///
/// # Errors
/// If that cannot be done, or one is there already, be it only since [`ensure_free`] was asked.
pub fn write(files: &[NewFile<'_>]) -> Result<()> {
    match write_together(files) {
        Err(error) if matches!(*error.problem, Problem::Exists) => bail!("{error}; --force overwrites it"),
        written => Ok(written?),
    }
}
