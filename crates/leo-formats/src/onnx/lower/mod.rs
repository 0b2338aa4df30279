//! What each ONNX operator becomes, one function an operator, grouped by kin.

mod arithmetic;
mod extents;
mod identity;
mod layout;
mod linear;
mod select;
mod tail;
mod window;

use std::path::Path;
use std::rc::Rc;

use super::compose::Composer;
use super::dims::Dims;
use super::import::{Computed, Value};
use super::proto::{AttributeProto, NodeProto, attribute_type};
use super::tensor::{Tensor, TensorNumbers};
use super::{Reason, is_native};
use leo_network::op::Relu;

pub(super) use tail::tail_function;

/// How an operator is read.
#[derive(Clone, Copy)]
pub(super) struct Lowering {
    /// What it becomes.
    pub(super) lower: fn(&mut Composer, &Call<'_>) -> Result<Value, Reason>,
    /// Whether it does what Leo is about. Such an operator cannot stand behind one that Leo does not know.
    pub(super) ends_tail: bool,
}

/// The operators that Leo has a function for, in alphabetical order.
const OPERATORS: &[(&str, Lowering)] = &[
    ("Add", passive(arithmetic::add)),
    ("AveragePool", essential(window::average_pool)),
    ("BatchNormalization", essential(arithmetic::batch_normalization)),
    ("Cast", passive(identity::cast)),
    ("Concat", passive(extents::concat)),
    ("Constant", passive(identity::constant)),
    ("Conv", essential(window::conv)),
    ("ConvTranspose", essential(window::conv_transpose)),
    ("DequantizeLinear", passive(identity::dequantize_linear)),
    ("Div", passive(arithmetic::div)),
    ("Dropout", passive(identity::dropout)),
    ("Flatten", passive(layout::flatten)),
    ("Gather", passive(extents::gather)),
    ("Gemm", essential(linear::gemm)),
    ("GlobalAveragePool", essential(window::global_average_pool)),
    ("GlobalMaxPool", essential(window::global_max_pool)),
    ("Identity", passive(identity::identity)),
    ("MatMul", essential(linear::matmul)),
    ("MaxPool", essential(window::max_pool)),
    ("Mul", passive(arithmetic::mul)),
    ("Pad", passive(select::pad)),
    ("ReduceMean", passive(window::reduce_mean)),
    ("ReduceSum", passive(window::reduce_sum)),
    ("Relu", essential(relu)),
    ("Reshape", passive(layout::reshape)),
    ("Resize", passive(select::resize)),
    ("Shape", passive(extents::shape)),
    ("Slice", passive(select::slice)),
    ("Split", passive(select::split)),
    ("Squeeze", passive(layout::squeeze)),
    ("Sub", passive(arithmetic::sub)),
    ("Transpose", passive(layout::transpose)),
    ("Unsqueeze", passive(layout::unsqueeze)),
    ("Upsample", passive(select::resize)),
];

/// The operators of `ai.onnx.ml`, ONNX's extension for what scikit-learn does, that Leo has a function for.
const ML_OPERATORS: &[(&str, Lowering)] = &[("Scaler", passive(arithmetic::scaler))];

/// Operators that are refused by name even after the last affine map: recurrent ones, and those that carry graphs of
/// their own.
const REFUSED_OPERATORS: &[&str] = &["GRU", "If", "LSTM", "Loop", "RNN", "Scan"];

const fn passive(lower: fn(&mut Composer, &Call<'_>) -> Result<Value, Reason>) -> Lowering {
    Lowering { lower, ends_tail: false }
}

const fn essential(lower: fn(&mut Composer, &Call<'_>) -> Result<Value, Reason>) -> Lowering {
    Lowering { lower, ends_tail: true }
}

/// How Leo reads an operator, if it does.
pub(super) fn lowering(domain: &str, operator: &str) -> Option<Lowering> {
    let operators = match domain {
        _ if is_native(domain) => OPERATORS,
        "ai.onnx.ml" => ML_OPERATORS,
        _ => &[],
    };
    operators.iter().find(|(name, _)| *name == operator).map(|&(_, lowering)| lowering)
}

/// Whether an operator is refused even in the tail.
pub(super) fn refused_everywhere(operator: &str) -> bool {
    REFUSED_OPERATORS.contains(&operator)
}

fn relu(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let x = call.computed(0)?;
    composer.unary(Relu, x).map(Value::Computed)
}

/// A node with its inputs' values.
pub(super) struct Call<'a> {
    pub(super) node: &'a NodeProto,
    pub(super) inputs: Vec<Option<Value>>,
    pub(super) opset: i64,
    pub(super) folder: Option<&'a Path>,
    /// Whether the operator is ONNX's own and not an extension's.
    pub(super) native: bool,
    /// How Leo reads the operator, if it does.
    pub(super) lowering: Option<Lowering>,
}

impl Call<'_> {
    fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node.attribute.iter().find(|attribute| attribute.name() == name)
    }

    fn int(&self, name: &str, default: i64) -> Result<i64, Reason> {
        let attribute = self.attribute(name).map(|attribute| of_kind(attribute, attribute_type::INT)).transpose()?;
        Ok(attribute.map_or(default, |attribute| attribute.i()))
    }

    fn float(&self, name: &str, default: f32) -> Result<f64, Reason> {
        let attribute = self.attribute(name).map(|attribute| of_kind(attribute, attribute_type::FLOAT)).transpose()?;
        Ok(f64::from(attribute.map_or(default, |attribute| attribute.f())))
    }

    /// A text among the attributes.
    fn text(&self, name: &str) -> Result<Option<&str>, Reason> {
        let Some(attribute) = self.attribute(name) else { return Ok(None) };
        let text = of_kind(attribute, attribute_type::STRING)?.s.as_deref().unwrap_or_default();
        let wrong = |_| Reason::Unusable(format!("has an attribute {name:?} that is no text"));
        std::str::from_utf8(text).map(Some).map_err(wrong)
    }

    fn floats(&self, name: &str) -> Result<Vec<f64>, Reason> {
        let attribute = self.attribute(name).map(|attribute| of_kind(attribute, attribute_type::FLOATS)).transpose()?;
        Ok(attribute
            .map_or_else(Vec::new, |attribute| attribute.floats.iter().map(|&float| f64::from(float)).collect()))
    }

    /// Input `index`, which the operator requires.
    fn required(&self, index: usize) -> Result<&Value, Reason> {
        self.optional(index).ok_or_else(|| Reason::Unusable(format!("has no input {index}, which it needs")))
    }

    /// Input `index`, if it is there and has a value.
    fn optional(&self, index: usize) -> Option<&Value> {
        self.inputs.get(index).and_then(Option::as_ref)
    }

    /// Input `index`, which must depend on the network's input.
    fn computed(&self, index: usize) -> Result<&Computed, Reason> {
        match self.required(index)? {
            Value::Computed(computed) => Ok(computed),
            other => Err(unusable(other, index, "computed from the network's input")),
        }
    }

    /// Input `index`, which must be a constant.
    fn constant(&self, index: usize) -> Result<&Rc<Tensor>, Reason> {
        match self.required(index)? {
            Value::Constant(tensor) => Ok(tensor),
            other => Err(unusable(other, index, "a constant")),
        }
    }

    /// The whole numbers of an input, or of the attribute that older versions have in its place.
    fn ints(&self, attribute: &str, index: usize) -> Result<Option<Vec<i64>>, Reason> {
        if let Some(attribute) = self.attribute(attribute) {
            return Ok(Some(of_kind(attribute, attribute_type::INTS)?.ints.clone()));
        }
        if self.optional(index).is_none() {
            return Ok(None);
        }
        match &self.constant(index)?.numbers {
            TensorNumbers::Int(_, values) => Ok(Some(values.clone())),
            TensorNumbers::Float(..) => {
                Err(Reason::Unusable(format!("has floats in input {index}, not whole numbers")))
            }
        }
    }

    /// Input 0 with its axes, whether it is a constant or computed.
    fn subject(&self) -> Result<Subject<'_>, Reason> {
        match self.required(0)? {
            Value::Computed(computed) => Ok(Subject::Computed(computed)),
            Value::Constant(tensor) => Ok(Subject::Constant(tensor)),
            other => Err(unusable(other, 0, "a tensor that Leo can follow")),
        }
    }
}

/// The attribute, if it says that it is of this kind. One that is of another would be read as 0 or as nothing.
fn of_kind(attribute: &AttributeProto, kind: i32) -> Result<&AttributeProto, Reason> {
    if attribute.r#type() == kind {
        Ok(attribute)
    } else {
        let (name, found) = (attribute.name(), attribute.r#type());
        Err(Reason::Unusable(format!("has an attribute {name:?} of kind {found} that should be of kind {kind}")))
    }
}

/// What an operator that only moves numbers around is applied to.
enum Subject<'a> {
    Computed(&'a Computed),
    Constant(&'a Tensor),
}

impl Subject<'_> {
    fn dims(&self) -> Dims {
        match self {
            Self::Computed(computed) => computed.dims.clone(),
            Self::Constant(tensor) => Dims::fixed(&tensor.dims),
        }
    }
}

fn unusable(value: &Value, index: usize, wanted: &str) -> Reason {
    let found = match value {
        Value::Unreadable { name, error } => return Reason::Tensor { name: name.clone(), error: error.clone() },
        Value::Constant(_) => "a constant".to_owned(),
        Value::Computed(_) => "computed from the network's input".to_owned(),
        Value::Extents { .. } => "computed from the size of the batch".to_owned(),
        Value::Tail { .. } => "computed after the last affine map".to_owned(),
        Value::Several(_) => "several values".to_owned(),
        Value::Unfolded { operator } => format!("made by {operator}, which Leo does not evaluate"),
    };
    Reason::Unusable(format!("has an input {index} that should be {wanted}, but is {found}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::onnx::{NEWEST_OPSET, OLDEST_OPSET};

    /// The names in the first column of a table: capitalised, as operators are.
    fn named(text: &str) -> BTreeSet<&str> {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        let words = rows.flat_map(|cell| cell.split([',', ' ']));
        words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())).collect()
    }

    #[test]
    fn the_page_of_what_is_supported_names_every_operator() -> std::io::Result<()> {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/supported.md");
        let page = std::fs::read_to_string(page)?;
        let section = |title: &str| page.split("\n## ").find(|part| part.starts_with(title)).unwrap_or_default();
        let known: BTreeSet<&str> = OPERATORS.iter().chain(ML_OPERATORS).map(|(name, _)| *name).collect();
        assert_eq!(named(section("Operators\n")), known);
        let refused = named(section("What is refused\n"));
        assert!(REFUSED_OPERATORS.iter().all(|name| refused.contains(name)), "{refused:?}");
        assert!(section("Networks\n").contains(&format!("operator sets {OLDEST_OPSET} to {NEWEST_OPSET}")));
        Ok(())
    }
}
