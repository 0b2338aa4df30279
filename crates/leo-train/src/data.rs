//! Data sets of labelled images in IDX files: MNIST, Fashion-MNIST, EMNIST and their like.

use std::fs::read_dir;
use std::io;
use std::path::{Path, PathBuf};

use leo_formats::ArrayFile;
use leo_formats::FileError;
use leo_network::Array;
use leo_network::Elements;
use sha2::{Digest, Sha256};

use crate::sparse::SparseSamples;

/// Labelled samples with inputs in [0, 1]: a part to train on and a part to test with.
#[derive(Clone, Debug)]
pub struct DataSet {
    train: DataPart,
    test: DataPart,
    classes: usize,
    fingerprint: String,
}

/// Samples and their labels.
#[derive(Clone, Debug)]
pub struct DataPart {
    samples: SparseSamples,
    labels: Vec<u8>,
    digest: [u8; 32],
}

/// Why there is no data set.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The folder cannot be listed.
    #[error("{}: cannot be read: {error}", .folder.display())]
    Folder {
        /// Which folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is missing.
    #[error("{}: has no file for {wanted}; usually it is called {usual} or {usual}.gz", .folder.display())]
    Missing {
        /// Where it should be.
        folder: PathBuf,
        /// What it should hold.
        wanted: &'static str,
        /// What it is called in MNIST.
        usual: &'static str,
    },
    /// Several files could be meant.
    #[error(
        "{}: has several files for {wanted} ({}); give the beginning of their names too, as in DIR/emnist-letters",
        .folder.display(),
        .found.join(", ")
    )]
    Ambiguous {
        /// Where they are.
        folder: PathBuf,
        /// What they hold.
        wanted: &'static str,
        /// Their names.
        found: Vec<String>,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that is not what its name says, or does not fit the others.
    #[error("{}: {problem}", .path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl DataSet {
    /// Reads the four IDX files of a folder, gzip or not.
    ///
    /// Where a folder holds several data sets, as EMNIST's does, `place` goes on with the beginning of
    /// the files' names: `folder/emnist-letters`.
    ///
    /// # Errors
    /// If a file is missing, broken, or does not fit the others.
    pub fn load(place: &Path) -> Result<Self, DataError> {
        let folder = Folder::list(place)?;
        let train = folder.part(&TRAIN_IMAGES, &TRAIN_LABELS)?;
        let test = folder.part(&TEST_IMAGES, &TEST_LABELS)?;
        if train.inputs() != test.inputs() {
            let problem =
                format!("images to train on have {} pixels, those to test with {}", train.inputs(), test.inputs());
            return Err(DataError::Content { path: place.to_owned(), problem });
        }
        Ok(Self::new(train, test))
    }

    /// Whether there are IDX files at `place`.
    pub(crate) fn is_at(place: &Path) -> bool {
        Folder::list(place).is_ok_and(|folder| !folder.names.is_empty())
    }

    /// Puts two parts together.
    ///
    /// # Panics
    /// If their samples differ in size.
    pub fn new(train: DataPart, test: DataPart) -> Self {
        assert_eq!(train.inputs(), test.inputs(), "both parts have the same inputs");
        let classes = train.labels.iter().chain(&test.labels).max().map_or(1, |&label| usize::from(label) + 1);
        let digest = Sha256::new().chain_update(train.digest).chain_update(test.digest).finalize();
        let fingerprint = format!("{digest:x}");
        Self { train, test, classes, fingerprint }
    }

    /// How many numbers a sample has.
    pub fn inputs(&self) -> usize {
        self.train.inputs()
    }

    /// How many labels there are: one more than the largest.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// What to train on.
    pub fn train(&self) -> &DataPart {
        &self.train
    }

    /// What to test with.
    pub fn test(&self) -> &DataPart {
        &self.test
    }

    /// A SHA-256 of all samples and labels.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl DataPart {
    /// Samples as rows of `inputs` bytes, of which 0 stands for the input 0 and 255 for 1, and a label for each.
    ///
    /// # Panics
    /// If the bytes do not make as many rows as there are labels, at least one.
    pub fn new(inputs: usize, bytes: &[u8], labels: Vec<u8>) -> Self {
        assert!(inputs > 0 && !labels.is_empty(), "a sample at least, with an input at least");
        assert_eq!(bytes.len(), inputs * labels.len(), "a row for each label");
        let digest = Sha256::new().chain_update(bytes).chain_update(&labels).finalize().into();
        Self { samples: SparseSamples::new(inputs, bytes), labels, digest }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Never: a part has a sample at least.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    fn inputs(&self) -> usize {
        self.samples.inputs()
    }

    pub(crate) fn samples(&self) -> &SparseSamples {
        &self.samples
    }

    pub(crate) fn label(&self, sample: u32) -> u8 {
        self.labels[sample as usize]
    }
}

/// What one of the four files is for, what it is called in MNIST, and what shows it elsewhere.
struct FileKind {
    wanted: &'static str,
    usual: &'static str,
    part: &'static [&'static str],
    content: &'static str,
}

/// What the name of a file to train on has in it.
const TRAIN: &[&str] = &["train"];
/// What the name of a file to test with has in it, one or the other.
const TEST: &[&str] = &["t10k", "test"];
/// What the name of a file of images has in it.
const IMAGES: &str = "images";
/// What the name of a file of labels has in it.
const LABELS: &str = "labels";

/// The images to train on.
const TRAIN_IMAGES: FileKind =
    FileKind { wanted: "images to train on", usual: "train-images-idx3-ubyte", part: TRAIN, content: IMAGES };
/// The labels to train on.
const TRAIN_LABELS: FileKind =
    FileKind { wanted: "labels to train on", usual: "train-labels-idx1-ubyte", part: TRAIN, content: LABELS };
/// The images to test with.
const TEST_IMAGES: FileKind =
    FileKind { wanted: "images to test with", usual: "t10k-images-idx3-ubyte", part: TEST, content: IMAGES };
/// The labels to test with.
const TEST_LABELS: FileKind =
    FileKind { wanted: "labels to test with", usual: "t10k-labels-idx1-ubyte", part: TEST, content: LABELS };

/// The names of the IDX files in a folder that begin in a certain way.
struct Folder {
    path: PathBuf,
    names: Vec<String>,
}

impl Folder {
    fn list(place: &Path) -> Result<Self, DataError> {
        let (path, prefix) = match (place.parent(), place.file_name()) {
            (Some(parent), Some(name)) if !place.is_dir() => (parent, name.to_string_lossy().into_owned()),
            _ => (place, String::new()),
        };
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let unreadable = |error| DataError::Folder { folder: path.to_owned(), error };
        let mut names = Vec::new();
        for entry in read_dir(path).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
            if name.starts_with(&prefix) && name.contains("idx") {
                names.push(name);
            }
        }
        names.sort();
        Ok(Self { path: path.to_owned(), names })
    }

    fn part(&self, images: &FileKind, labels: &FileKind) -> Result<DataPart, DataError> {
        let (images, labels) = (self.find(images)?, self.find(labels)?);
        let (shape, pixels) = load_bytes(&images)?;
        let (_, found) = load_bytes(&labels)?;
        let content = |path: &Path, problem: String| DataError::Content { path: path.to_owned(), problem };
        let Some(count) = shape.first() else {
            return Err(content(&images, "holds a single number, not images".to_owned()));
        };
        if *count == 0 || pixels.is_empty() {
            return Err(content(&images, "holds no images".to_owned()));
        }
        let inputs = pixels.len() / count;
        if inputs > SparseSamples::MAX_INPUTS {
            return Err(content(
                &images,
                format!("has images of {inputs} pixels; {} are the most", SparseSamples::MAX_INPUTS),
            ));
        }
        if found.len() != *count {
            return Err(content(&labels, format!("has {} labels for {count} images", found.len())));
        }
        Ok(DataPart::new(inputs, &pixels, found))
    }

    /// The one file of a kind. If it is there packed and unpacked, the unpacked one.
    fn find(&self, kind: &FileKind) -> Result<PathBuf, DataError> {
        let fits = |name: &&String| name.contains(kind.content) && kind.part.iter().any(|part| name.contains(part));
        let mut found: Vec<&String> = self.names.iter().filter(fits).collect();
        found.dedup_by(|packed, name| packed.strip_suffix(".gz") == Some(name));
        let folder = self.path.clone();
        match found.as_slice() {
            [] => Err(DataError::Missing { folder, wanted: kind.wanted, usual: kind.usual }),
            [name] => Ok(folder.join(name)),
            _ => {
                let found = found.into_iter().cloned().collect();
                Err(DataError::Ambiguous { folder, wanted: kind.wanted, found })
            }
        }
    }
}

fn load_bytes(path: &Path) -> Result<(Vec<usize>, Vec<u8>), DataError> {
    let array = Array::load(path)?;
    match array.elements() {
        Elements::U8(bytes) => Ok((array.shape().to_vec(), bytes.clone())),
        _ => Err(DataError::Content { path: path.to_owned(), problem: "holds numbers that are not bytes".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs::write;

    fn idx(extents: &[u32], bytes: &[u8]) -> Vec<u8> {
        let header = [0, 0, 8, extents.len() as u8];
        header.into_iter().chain(extents.iter().flat_map(|extent| extent.to_be_bytes())).chain(bytes.to_vec()).collect()
    }

    /// Writes a data set of 2 by 1 images, two to train on and one to test with.
    fn write_set(folder: &Path, prefix: &str, test: &str) -> io::Result<()> {
        write(folder.join(format!("{prefix}train-images-idx3-ubyte")), idx(&[2, 2, 1], &[0, 255, 51, 0]))?;
        write(folder.join(format!("{prefix}train-labels-idx1-ubyte")), idx(&[2], &[0, 2]))?;
        write(folder.join(format!("{prefix}{test}-images-idx3-ubyte")), idx(&[1, 2, 1], &[255, 0]))?;
        write(folder.join(format!("{prefix}{test}-labels-idx1-ubyte")), idx(&[1], &[1]))
    }

    fn failure(place: &Path) -> String {
        DataSet::load(place).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn four_files_make_a_data_set() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        write_set(folder.path(), "", "t10k")?;
        let data = DataSet::load(folder.path())?;
        assert_eq!((data.inputs(), data.classes(), data.train().len(), data.test().len()), (2, 3, 2, 1));
        assert_eq!((data.train().label(1), data.test().label(0)), (2, 1));
        // Packed files beside the others are the same data, not more of it.
        write(folder.path().join("train-images-idx3-ubyte.gz"), "not even gzip")?;
        assert_eq!(DataSet::load(folder.path())?.fingerprint(), data.fingerprint());
        write(folder.path().join("train-labels-idx1-ubyte"), idx(&[2], &[2, 0]))?;
        assert_ne!(DataSet::load(folder.path())?.fingerprint(), data.fingerprint());
        Ok(())
    }

    #[test]
    fn one_of_several_data_sets_is_named_by_its_beginning() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        write_set(folder.path(), "emnist-letters-", "test")?;
        write_set(folder.path(), "emnist-digits-", "test")?;
        assert_eq!(DataSet::load(&folder.path().join("emnist-letters"))?.classes(), 3);
        let message = failure(folder.path());
        assert!(message.contains("has several files for images to train on (emnist-digits-train-images"), "{message}");
        assert!(failure(&folder.path().join("mnist")).contains("has no file for images to train on"));
        assert!(failure(&folder.path().join("no/such")).contains("cannot be read"));
        Ok(())
    }

    #[test]
    fn files_that_do_not_fit_are_refused() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let place = |name: &str| folder.path().join(name);
        let refused = |name: &str, content: Vec<u8>, why: &str| -> io::Result<()> {
            write_set(folder.path(), "", "t10k")?;
            write(place(name), content)?;
            let message = failure(folder.path());
            assert!(message.contains(why), "{message}");
            Ok(())
        };
        refused("train-labels-idx1-ubyte", idx(&[1], &[0]), "has 1 labels for 2 images")?;
        refused("t10k-images-idx3-ubyte", idx(&[1, 3], &[1, 2, 3]), "have 2 pixels, those to test with 3")?;
        refused("t10k-images-idx3-ubyte", idx(&[0, 2], &[]), "holds no images")?;
        refused("t10k-images-idx3-ubyte", idx(&[1, 0], &[]), "holds no images")?;
        refused("t10k-images-idx3-ubyte", idx(&[], &[1]), "holds a single number")?;
        refused("t10k-images-idx3-ubyte", vec![0, 0, 0x0d, 1, 0, 0, 0, 1, 0, 0, 0, 0], "numbers that are not bytes")?;
        refused("t10k-images-idx3-ubyte", b"<html>".to_vec(), "a web page")?;
        let wide = vec![1; (1 << 17) + 1];
        refused("train-images-idx3-ubyte", idx(&[1, (1 << 17) + 1], &wide), "131073 pixels")?;
        Ok(())
    }
}
