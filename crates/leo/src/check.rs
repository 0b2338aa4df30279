//! Checking a certificate, from the files alone.

use std::path::Path;

use leo_check::{Certificate, Verified, verify, verify_exactly};
use leo_formats::read_text_file;
use leo_network::Observer;

use crate::compression::report::operators_after;
use crate::{Error, ModelFile, certificate_of, open};

/// A certificate that was verified.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What was proved.
    pub verified: Verified,
    /// The operators after the networks: what is said of outputs is said of what these read.
    pub before_operators: Vec<String>,
}

impl Checked {
    /// Proved: no output of the second network is further from the first one's, anywhere on the domain.
    pub fn delta(&self) -> f64 {
        self.verified.delta.iter().map(leo_network::Numbers::largest).fold(0.0, f64::max)
    }
}

/// Checks the certificate that lies beside a smaller network: that it computes the same as another one, up to delta.
///
/// # Errors
/// If a file cannot be read, or the certificate does not prove what it says ([`Error::Refused`]).
pub fn check(model: impl AsRef<Path>, small: impl AsRef<Path>) -> Result<Checked, Error> {
    let path = certificate_of(small.as_ref());
    let about = |error: Error| error.about(path.display().to_string());
    let certificate = Certificate::from_bytes(&read_text_file(&path)?).map_err(|error| about(error.into()))?;
    check_with(&open(model)?, &open(small)?, &certificate, false, &())
}

/// Checks a certificate, perhaps in exact arithmetic, which is slower.
///
/// # Errors
/// If it does not prove what it says ([`Error::Refused`]).
pub fn check_with(
    first: &ModelFile,
    second: &ModelFile,
    certificate: &Certificate,
    exact: bool,
    observer: &dyn Observer,
) -> Result<Checked, Error> {
    let verify = if exact { verify_exactly } else { verify };
    let verified = verify(first.hashed(), second.hashed(), certificate, observer)?;
    Ok(Checked { verified, before_operators: operators_after(first.model()) })
}
