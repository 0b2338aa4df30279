//! What files are called if nobody says.

use std::path::{Path, PathBuf};

/// What a smaller network is called if nothing else is said: `model.leo.onnx` for `model.onnx`, beside it.
pub fn smaller_than(model: &Path) -> PathBuf {
    plain(model).with_extension("leo.onnx")
}

/// What a network's certificate is called if nothing else is said: `small.leo` for `small.onnx`, and `model.leo` for
/// `model.leo.onnx`.
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
pub fn has_suffix(path: &Path, suffix: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(suffix))
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
