//! Which files a command writes, what they are called, and which it leaves alone.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use leo_formats::{Model, NewFile, Problem, is_same_file, write_together};

/// What a smaller network is called if nothing else is said: `model.leo.onnx` for `model.onnx`, beside it.
pub fn smaller_than(model: &Path) -> PathBuf {
    plain(model).with_extension("leo.onnx")
}

/// What a network's certificate is called if nothing else is said: `small.leo` for `small.onnx`, and `model.leo` for `model.leo.onnx`.
pub fn certificate_of(network: &Path) -> PathBuf {
    let network = plain(network);
    let stem = network.with_extension("");
    if has_suffix(&stem, "leo") { stem } else { network.with_extension("leo") }
}

/// A name without the `.gz` of a packed file.
fn plain(path: &Path) -> PathBuf {
    if has_suffix(path, "gz") { path.with_extension("") } else { path.to_owned() }
}

/// Whether a name ends in a suffix, in whatever case.
fn has_suffix(path: &Path, suffix: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(suffix))
}

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

/// All files that are read for a model: its own, and those that it has data in.
pub fn read_for(path: &Path, model: &Model) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    files.extend(model.external_files());
    files
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_names() {
        let smaller = |name: &str| smaller_than(Path::new(name));
        let certificate = |name: &str| certificate_of(Path::new(name));
        assert_eq!(smaller("a/model.onnx"), Path::new("a/model.leo.onnx"));
        assert_eq!(smaller("model.v2.ONNX.gz"), Path::new("model.v2.leo.onnx"));
        assert_eq!(smaller("acas.nnet"), Path::new("acas.leo.onnx"));
        assert_eq!(smaller("model"), Path::new("model.leo.onnx"));
        assert_eq!(certificate("a/small.onnx"), Path::new("a/small.leo"));
        assert_eq!(certificate("model.leo.onnx"), Path::new("model.leo"));
        assert_eq!(certificate("model.v2.leo.onnx"), Path::new("model.v2.leo"));
        assert_eq!(certificate("model.v2.onnx"), Path::new("model.v2.leo"));
        assert_eq!(certificate("small.onnx.gz"), Path::new("small.leo"));
    }
}
