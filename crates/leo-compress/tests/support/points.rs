//! Points to look at.

use fastrand::Rng;
use leo_network::Domain;

/// A point of a domain, often on its boundary.
pub fn random_point(random: &mut Rng, domain: &Domain) -> Vec<f64> {
    let vertex = random.bool();
    let coordinate = |(&lo, &hi): (&f64, &f64)| match (vertex, random.bool()) {
        (true, true) => lo,
        (true, false) => hi,
        (false, _) => lo + (hi - lo) * f64::from(random.u8(..)) / 256.0,
    };
    domain.hull().lo().iter().zip(domain.hull().hi()).map(coordinate).collect()
}
