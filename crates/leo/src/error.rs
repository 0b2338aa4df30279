//! What can go wrong, on one line.

use leo_check::{CertificateError, Refusal};
use leo_compress::{CompressError, EquivError};
use leo_formats::onnx::{InterfaceDifference, OnnxError};
use leo_formats::{FileError, RunError};
use leo_network::{DomainError, NetworkError};

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written, or is not what it should be.
    #[error(transparent)]
    File(#[from] FileError),
    /// What is asked for makes no sense, or not for this network.
    #[error("{0}")]
    Request(String),
    /// What went wrong, and with what.
    #[error("{about}: {error}")]
    About {
        /// The file or the argument.
        about: String,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// Bounds, or samples, that make no domain, or none of this network.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// Numbers that make no network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A network that cannot be written, or not be rewritten.
    #[error(transparent)]
    Onnx(Box<OnnxError>),
    /// Two files that cannot stand for each other.
    #[error(transparent)]
    Interface(Box<InterfaceDifference>),
    /// A network that cannot be run, or not on these samples.
    #[error(transparent)]
    Run(Box<RunError>),
    /// A network that cannot be made smaller.
    #[error(transparent)]
    Compress(Box<CompressError>),
    /// Two networks that cannot be compared.
    #[error(transparent)]
    Equiv(EquivError),
    /// A file that is no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A certificate that does not prove what it says.
    #[error("refused: {0}")]
    Refused(Box<Refusal>),
    /// Bounds that have no room in a format.
    #[error(transparent)]
    Archive(#[from] zip::result::ZipError),
    /// What is written in memory cannot be.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// An observer asked to stop.
    #[error("stopped before it was through; nothing was written")]
    Interrupted,
    /// Leo contradicts itself. Nothing was written.
    #[error("a mistake in Leo, please report it with the file: {0}; nothing was written")]
    Mistake(String),
}

impl Error {
    /// The same, with what it is about.
    pub(crate) fn about(self, about: impl Into<String>) -> Self {
        Self::About { about: about.into(), error: Box::new(self) }
    }
}

/// Errors that are large stand in a box.
macro_rules! boxed {
    ($($variant:ident($error:ty)),*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::$variant(Box::new(error))
            }
        })*
    };
}

boxed!(Onnx(OnnxError), Interface(InterfaceDifference), Run(RunError), Refused(Refusal));

impl From<CompressError> for Error {
    fn from(error: CompressError) -> Self {
        if matches!(error, CompressError::Interrupted) { Self::Interrupted } else { Self::Compress(Box::new(error)) }
    }
}

impl From<EquivError> for Error {
    fn from(error: EquivError) -> Self {
        if error == EquivError::Interrupted { Self::Interrupted } else { Self::Equiv(error) }
    }
}
