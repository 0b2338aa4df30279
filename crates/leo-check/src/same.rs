//! Which elements of two networks are the same function, because they are made in the same way.
//!
//! This is *value numbering*: every element of every value of both networks gets the number of a class, and two
//! elements are in one class only if they are equal everywhere on the domain. The inputs are the same in both networks.
//! What the same operator makes, with the same constants, of operands of the same classes is the same. A unit of the
//! first network that is proved to be always off is 0, and so is whatever the same activation makes of a pre-activation
//! of its class; 0 stays 0 when it is multiplied or divided, and adds nothing to a row of a matrix, nor does what has
//! the weight 0.
//!
//! Numbers are compared here, and never computed with. So a network from which units were removed that are always off
//! or that nobody reads, and that is otherwise as it was, is seen to be the same whatever its layout is, also where
//! expressions would have to be rounded: where two matrices follow each other, or where batch normalisation multiplies
//! weights. With exact numbers, expressions show the same.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use leo_network::op::{Action, Arithmetic, Op, Sums};
use leo_network::{Activation, LayerId, Network, ValueId, ValueMap};

use crate::activation::stable_piece;
use crate::checker::ProvedBounds;
use crate::number::Number;

/// For each element of each output, whether it is the same in both networks, everywhere on the domain. That it is not
/// found out does not mean that it is not.
pub(crate) fn same_outputs<N: Number>(facts: &ProvedBounds<'_, N>, second: &Network) -> Vec<Vec<bool>> {
    let first = facts.network();
    let elements = |network: &Network| network.nodes().iter().map(|node| node.shape().elements()).sum::<usize>();
    if elements(first).saturating_add(elements(second)) > MAX_ELEMENTS {
        return first.outputs().iter().map(|&value| vec![false; first.shape(value).elements()]).collect();
    }
    let mut classes = Classes::default();
    let input: Rc<[Class]> = (0..first.input().elements()).map(|_| classes.fresh()).collect();
    let is_off = |layer: LayerId, unit: usize| {
        let (range, of) = (facts.range(first.pre_activation(layer)), first.activation(layer));
        let piece = stable_piece(of, &range.lower[unit], &range.upper[unit]);
        piece.is_some_and(|piece| of.pieces()[piece].is_zero())
    };
    let mine = classes.of_network(first, input.clone(), is_off);
    let theirs = classes.of_network(second, input, |_, _| false);
    let is_same = |(a, b): (&ValueId, &ValueId)| {
        let (a, b) = (&mine[*a], &theirs[*b]);
        a.iter().zip(b.iter()).map(|(a, b)| a == b).collect()
    };
    first.outputs().iter().zip(second.outputs()).map(is_same).collect()
}

/// How many elements all values of both networks may have together. More are not looked at, so that a small file cannot
/// take much memory.
const MAX_ELEMENTS: usize = 1 << 22;

/// Which class an element is in.
type Class = usize;

/// The class of elements that are always 0.
const ZERO: Class = 0;

/// One of the sums that a map makes.
#[derive(Clone, Debug)]
struct Row<'n> {
    sums: Rc<Sums<'n>>,
    /// Which of them.
    output: usize,
    /// The classes of all elements that the map reads.
    operand: Rc<[Class]>,
}

impl Row<'_> {
    /// The products that are not always 0.
    fn terms(&self) -> impl Iterator<Item = (Class, f64)> {
        let terms = self.sums.terms(self.output).map(|(input, weight)| (self.operand[input], weight));
        terms.filter(|&(class, weight)| class != ZERO && weight != 0.0)
    }

    fn bias(&self) -> f64 {
        self.sums.bias(self.output)
    }

    /// A number that is equal for rows that are equal.
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        // The two zeros are the same number.
        (self.bias() + 0.0).to_bits().hash(&mut hasher);
        for (class, weight) in self.terms() {
            (class, weight.to_bits()).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.bias() == other.bias() && self.terms().eq(other.terms())
    }
}

/// What makes an element of one or two others: an operator, its constant, and the classes of the others.
type ElementOrigin = (u8, u64, Class, Class);

/// All classes that there are.
#[derive(Debug, Default)]
struct Classes<'n> {
    /// How many there are besides [`ZERO`].
    count: usize,
    made: HashMap<ElementOrigin, Class>,
    /// All activations that there are.
    activations: Vec<&'n Activation>,
    /// By their hashes. Of two different rows with the same hash only one is here, and the other is like no other row.
    rows: HashMap<u64, (Row<'n>, Class)>,
}

impl<'n> Classes<'n> {
    fn fresh(&mut self) -> Class {
        self.count += 1;
        self.count
    }

    /// The classes of all elements of all values of a network, by the values' indices. Units of which `is_off` is true
    /// are always off.
    fn of_network(
        &mut self,
        network: &'n Network,
        input: Rc<[Class]>,
        is_off: impl Fn(LayerId, usize) -> bool,
    ) -> ValueMap<Rc<[Class]>> {
        let mut classes = ValueMap::from(vec![input]);
        for (index, node) in network.nodes().iter().enumerate() {
            let operand = classes[node.operands()[0]].clone();
            let made = match node.op() {
                Op::Activation(of) => {
                    let is_off = |unit: usize| network.layer_at(index).is_some_and(|layer| is_off(layer, unit));
                    (0..operand.len()).map(|unit| self.of_unit(of, operand[unit], is_off(unit))).collect()
                }
                Op::Sum(_) => {
                    let other = classes[node.operands()[1]].clone();
                    operand.iter().zip(other.iter()).map(|(&a, &b)| self.of_made((SUM, 0, a, b))).collect()
                }
                Op::Concat(concat) => {
                    let sources = concat.sources(&network.operand_shapes(node)).into_iter();
                    sources.map(|(index, element)| classes[node.operands()[index]][element]).collect()
                }
                Op::MaxPool(pool) => {
                    let windows = pool.windows(network.shape(node.operands()[0]));
                    let largest = |output| {
                        let window = windows.of(output).map(|input| operand[input]);
                        window.reduce(|a, b| self.of_made((LARGEST, 0, a, b))).unwrap_or(ZERO)
                    };
                    (0..node.shape().elements()).map(largest).collect()
                }
                Op::Affine(map) => match map.action(network.shape(node.operands()[0])) {
                    Action::Move(moves) if moves.is_in_order() => operand,
                    Action::Move(moves) => moves.forward(&operand).into(),
                    Action::Each(arithmetic, constants) => {
                        let pairs = operand.iter().zip(constants);
                        pairs.map(|(&class, constant)| self.of_element(class, arithmetic, constant)).collect()
                    }
                    Action::Sums(sums) => {
                        let sums = Rc::new(sums);
                        let row = |output| Row { sums: sums.clone(), output, operand: operand.clone() };
                        (0..sums.outputs()).map(|output| self.of_row(row(output))).collect()
                    }
                },
            };
            classes.push(made);
        }
        classes
    }

    fn of_row(&mut self, row: Row<'n>) -> Class {
        let hash = row.hash();
        match self.rows.get(&hash) {
            Some((known, class)) if known.is_same(&row) => *class,
            Some(_) => self.fresh(),
            None => {
                let class = self.fresh();
                self.rows.insert(hash, (row, class));
                class
            }
        }
    }

    fn of_unit(&mut self, of: &'n Activation, pre_activation: Class, is_off: bool) -> Class {
        let known = self.activations.iter().position(|known| *known == of);
        let index = known.unwrap_or(self.activations.len());
        if known.is_none() {
            self.activations.push(of);
        }
        let made = (ACTIVATION, index as u64, pre_activation, ZERO);
        match is_off {
            _ if pre_activation == ZERO && of.of(0.0) == 0.0 => ZERO,
            true => {
                // Whatever else has this pre-activation is off too.
                self.made.insert(made, ZERO);
                ZERO
            }
            false => self.of_made(made),
        }
    }

    fn of_element(&mut self, class: Class, arithmetic: Arithmetic, constant: f64) -> Class {
        let bits = (constant + 0.0).to_bits();
        match (class, arithmetic) {
            (ZERO, Arithmetic::Multiply | Arithmetic::Divide) => ZERO,
            (_, Arithmetic::Add) if constant == 0.0 => class,
            (_, Arithmetic::Add) => self.of_made((ADD, bits, class, ZERO)),
            (_, Arithmetic::Multiply) => self.of_made((MULTIPLY, bits, class, ZERO)),
            (_, Arithmetic::Divide) => self.of_made((DIVIDE, bits, class, ZERO)),
        }
    }

    fn of_made(&mut self, made: ElementOrigin) -> Class {
        if let Some(&class) = self.made.get(&made) {
            return class;
        }
        let class = self.fresh();
        self.made.insert(made, class);
        class
    }
}

/// In [`ElementOrigin`]: an activation, which its number in [`Classes`] tells.
const ACTIVATION: u8 = 0;
/// In [`ElementOrigin`]: an element plus a constant.
const ADD: u8 = 1;
/// In [`ElementOrigin`]: an element times a constant.
const MULTIPLY: u8 = 2;
/// In [`ElementOrigin`]: an element over a constant.
const DIVIDE: u8 = 3;
/// In [`ElementOrigin`]: the sum of two elements.
const SUM: u8 = 4;
/// In [`ElementOrigin`]: the larger one of two elements.
const LARGEST: u8 = 5;
