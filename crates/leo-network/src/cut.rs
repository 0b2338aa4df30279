//! A network in two: what makes a value, and what comes after it.

use crate::network::{Network, ValueId};
use crate::shape::NetworkError;

impl Network {
    /// The nodes up to a value, with that as the only output. Values are numbered as they are here.
    ///
    /// # Errors
    /// None, unless this network could not be built either.
    pub fn up_to(&self, value: ValueId) -> Result<Self, NetworkError> {
        let mut builder = Self::builder(self.input().clone());
        for node in &self.nodes()[..value.index()] {
            builder.add(node.name(), node.op().clone(), node.operands())?;
        }
        builder.finish(vec![value])
    }

    /// The nodes after a value through which everything goes, with that as the input. Values are numbered
    /// [from there](ValueId::in_whole).
    ///
    /// # Errors
    /// If the value is an output, or one of these nodes or an output depends on the input in another way.
    pub fn after(&self, value: ValueId) -> Result<Self, NetworkError> {
        let beside = || NetworkError::mismatch(format!("not everything goes through value {}", value.index()));
        let in_part = |of: &ValueId| of.in_part(value).ok_or_else(beside);
        if self.outputs().contains(&value) {
            return Err(beside());
        }
        let mut builder = Self::builder(self.shape(value).clone());
        for node in &self.nodes()[value.index()..] {
            let operands = node.operands().iter().map(in_part).collect::<Result<Vec<_>, _>>()?;
            builder.add(node.name(), node.op().clone(), &operands)?;
        }
        builder.finish(self.outputs().iter().map(in_part).collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Dense, Matrix, Relu, Sum};
    use crate::shape::Shape;

    #[test]
    fn a_network_is_cut_where_everything_goes_through() -> Result<(), NetworkError> {
        let mut builder = Network::builder(Shape::new([2])?);
        let map =
            |rows: usize, columns: usize| Dense::new(Matrix::new(rows, columns, vec![0.5; rows * columns])?, None);
        let wide = builder.add("fc1", map(3, 2)?, &[ValueId::INPUT])?;
        let units = builder.add("relu", Relu, &[wide])?;
        let sum = builder.add("sum", Sum, &[wide, units])?;
        let last = builder.add("fc2", map(1, 3)?, &[sum])?;
        let network = builder.finish(vec![last, sum])?;

        let after = network.after(wide)?;
        assert_eq!(after.input().extents(), [3]);
        assert_eq!(after.outputs().iter().map(|at| at.in_whole(wide)).collect::<Vec<_>>(), [last, sum]);
        let first = network.up_to(wide)?;
        assert_eq!((first.nodes().len(), first.outputs()), (1, &[wide][..]));
        let whole = network.after(ValueId::INPUT)?;
        assert!(whole.is_alike(&network) && network.up_to(last)?.nodes() == network.nodes());
        assert!(network.after(units).is_err(), "the sum goes past it");
        assert!(network.after(sum).is_err(), "an output");
        Ok(())
    }
}
