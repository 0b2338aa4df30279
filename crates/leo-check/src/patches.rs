//! Linear bounds of single positions, by backward substitution where coefficients live on windows: CROWN (Zhang et al.
//! 2018) for convolutions, as in the Patches mode of auto_LiRPA (Xu et al. 2020, arXiv:2002.12920).
//!
//! What is replaced by what, and why that is sound, is as in [`mod@crate::backward`]: affine maps exactly, with what
//! rounding may have taken from their products, and units by lines above them. Here each bound goes alone, and has
//! coefficients on a [`Patch`] of each value: the window that its position sees, which grows from layer to layer. So it
//! takes no more memory than the values that it passes, however many positions there are.
//!
//! - *It may stop anywhere.* In front of each layer, replacing every coefficient by an end of the range that is
//!   proved of its element gives a bound, too. The first of these that reaches the sign is enough; otherwise the
//!   least of all counts. A proof says at which layer to stop at the latest: most bounds need not go far.
//! - *The largest of a window*, with a coefficient `c < 0`, is no less than any element of it; the one with the
//!   greatest lower bound is taken. With `c > 0` it is the element that is proved to be no less than all others, if
//!   there is one, and otherwise where the range of the largest ends.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::OnceLock;

use leo_network::op::{Action, Arithmetic, MaxWindows, Moves, Op, Patch, Sums};
use leo_network::{Domain, LayerId, Network, Node, ValueId, ValueMap};

use crate::activation::SlopeRange;
use crate::backward::{replace_unit, rounding};
use crate::number::Number;
use crate::range::Range;
use crate::relaxation::Target;
use crate::sound::{Upper, slack, underflow};

/// What is to be known of a network's nodes to take patches back through them, as far as it was asked for.
#[derive(Debug)]
pub(crate) struct Patches<'n, N> {
    network: &'n Network,
    plans: Vec<OnceLock<NodePlan<'n, N>>>,
}

/// How coefficients go back through a node.
#[derive(Debug)]
enum NodePlan<'n, N> {
    Units(LayerId),
    Both,
    /// For each element of what is made, which operand has it, and where.
    Joined(Vec<(usize, usize)>),
    Largest(MaxWindows),
    Move {
        moves: Moves,
    },
    Each(Arithmetic, Vec<f64>),
    Sums {
        sums: Sums<'n>,
        errors: ProductErrors<N>,
    },
}

/// How far coefficients on inputs of sums can be off that were computed from those on the sums.
#[derive(Debug)]
struct ProductErrors<N> {
    /// For each output, how large it can be if all its terms have the same sign. Nothing if nothing is rounded.
    largest: Vec<N>,
    /// What part of that may be lost.
    factor: N,
    /// And what underflows at the most.
    underflow: N,
}

/// A bound of an element, from above, or of its negative.
#[derive(Clone, Debug)]
pub struct PatchBound<N = f64> {
    /// No less than what was to be bounded.
    pub limit: N,
    /// The first layer that it went back through, if it went through any.
    pub first: Option<LayerId>,
    /// If it came to the input, the coefficients that it ended with.
    pub input: Option<Patch<N>>,
    /// How many products it took, and coefficients on the way; of exact numbers, products of words of 64 bits.
    pub products: f64,
}

/// What a bound by patches is proved from.
pub(crate) struct PatchSetting<'a, N> {
    pub(crate) domain: &'a Domain,
    /// A proved range for every value before the one with the element.
    pub(crate) ranges: &'a ValueMap<Range<N>>,
    /// It is not to go back through layers before this one.
    pub(crate) first: usize,
    /// A bound no larger than this is enough.
    pub(crate) goal: N,
}

impl<'n, N: Number> Patches<'n, N> {
    /// Nothing is known yet.
    pub(crate) fn new(network: &'n Network) -> Self {
        Self { network, plans: network.nodes().iter().map(|_| OnceLock::new()).collect() }
    }

    fn plan(&self, node: usize, ranges: &ValueMap<Range<N>>) -> &NodePlan<'n, N> {
        self.plans[node].get_or_init(|| {
            let (network, made) = (self.network, &self.network.nodes()[node]);
            let operand = made.operands()[0];
            let shape = network.shape(operand);
            match made.op() {
                Op::Activation(_) => network.layer_at(node).map_or(NodePlan::Both, NodePlan::Units),
                Op::Sum(_) => NodePlan::Both,
                Op::Concat(concat) => NodePlan::Joined(concat.sources(&network.operand_shapes(made))),
                Op::MaxPool(pool) => NodePlan::Largest(pool.windows(shape)),
                Op::Affine(map) => match map.action(shape) {
                    Action::Move(moves) => NodePlan::Move { moves },
                    Action::Each(arithmetic, constants) => NodePlan::Each(arithmetic, constants),
                    Action::Sums(sums) => {
                        let errors = ProductErrors::new(&sums, &ranges[operand]);
                        NodePlan::Sums { sums, errors }
                    }
                },
            }
        })
    }

    /// An upper bound of an element of a value, or of its negative.
    pub(crate) fn bound(&self, setting: &PatchSetting<'_, N>, value: ValueId, target: Target) -> PatchBound<N> {
        let start = Patch::of_element(self.network.channels(value), target.unit, N::of(target.side.sign()));
        let mut way = PatchWay {
            patches: self,
            setting,
            coefficients: BTreeMap::from([(value, start)]),
            constant: Upper::default(),
            products: 0.0,
        };
        let mut best = PatchBound { limit: N::of(f64::INFINITY), first: None, input: None, products: 0.0 };
        let mut first = None;
        while let Some(node) = way.coefficients.last_key_value().and_then(|(made, _)| made.node()) {
            if let Some(layer) = self.network.layer_at(node) {
                way.stop(&mut best, first, None);
                if best.limit <= setting.goal || layer.index() < setting.first {
                    best.products = way.products;
                    return best;
                }
                first = Some(layer);
            }
            if let Some((_, patch)) = way.coefficients.pop_last() {
                way.replace(node, patch);
            }
        }
        match setting.domain.as_box() {
            // Of a box, the range of the input says all there is to know.
            Some(_) => way.stop(&mut best, first, None),
            None => {
                let mut corner = setting.domain.hull().lo().to_vec();
                setting.domain.maximise(&dense(way.coefficients.get(&ValueId::INPUT), corner.len()), &mut corner);
                way.stop(&mut best, first, Some(&corner));
            }
        }
        best.input = way.coefficients.remove(&ValueId::INPUT);
        best.products = way.products;
        best
    }
}

/// As many coefficients as there are inputs.
fn dense<N: Number>(patch: Option<&Patch<N>>, inputs: usize) -> Vec<N> {
    let mut row = vec![N::default(); inputs];
    patch.into_iter().flat_map(Patch::iter).for_each(|(element, c)| row[element] = c.clone());
    row
}

impl<N: Number> PatchBound<N> {
    /// Moves a point to where in the domain the linear function is largest that the bound ended with, if it came to the
    /// input. Inputs that it does not read stay where they are, as far as the domain lets them.
    pub fn move_to_corner(&self, domain: &Domain, point: &mut [f64]) -> bool {
        let Some(patch) = &self.input else { return false };
        domain.maximise(&dense(Some(patch), point.len()), point);
        true
    }
}

impl<N: Number> ProductErrors<N> {
    /// As `add_errors_of_product` in [`mod@crate::backward`] has it.
    fn new(sums: &Sums<'_>, range: &Range<N>) -> Self {
        if !N::ROUNDS {
            return Self { largest: Vec::new(), factor: N::default(), underflow: N::default() };
        }
        let sizes: Vec<N> = (0..range.len()).map(|element| range.magnitude(element)).collect();
        let least = underflow::<N>(sums.longest());
        let largest = |output: usize| {
            let mut sum = least.clone();
            sums.terms(output).for_each(|(input, weight)| sum.add(&N::of(weight.abs()).times(&sizes[input])));
            sum
        };
        let one = N::of(1.0);
        let total = sizes.iter().fold(one.clone(), |total, size| total.plus(size));
        let relative = [sums.longest(), sums.outputs()].map(|terms| one.plus(&slack(terms)));
        Self {
            largest: (0..sums.outputs()).map(largest).collect(),
            factor: slack::<N>(sums.readers()).times(&relative[0]).times(&relative[1]),
            underflow: underflow::<N>(sums.readers()).times(&total),
        }
    }
}

/// A linear function on its way to the input: what is to be bounded is at most the sum over all values of its
/// coefficients times the value, plus the constant.
struct PatchWay<'a, 'n, N> {
    patches: &'a Patches<'n, N>,
    setting: &'a PatchSetting<'a, N>,
    /// Of the values that it is a function of.
    coefficients: BTreeMap<ValueId, Patch<N>>,
    constant: Upper<N>,
    products: f64,
}

impl<N: Number> PatchWay<'_, '_, N> {
    /// Notes the bound that follows from where values lie, if it is the best: at this point for the input, if it is all
    /// that is left, and else at the ends of ranges.
    fn stop(&mut self, best: &mut PatchBound<N>, first: Option<LayerId>, corner: Option<&[f64]>) {
        let mut sum = self.constant.clone();
        for (value, patch) in &self.coefficients {
            let range = self.setting.ranges.get(value.index());
            self.products += patch.coefficients().len() as f64;
            for (element, c) in patch.iter().filter(|(_, c)| !c.is_zero()) {
                match (corner, range) {
                    (Some(corner), _) => sum.add_product(c, &N::of(corner[element])),
                    (None, Some(range)) if c.is_positive() => sum.add_product(c, &range.upper[element]),
                    (None, Some(range)) => sum.add_product(c, &range.lower[element]),
                    (None, None) => sum.add_error(&N::of(f64::INFINITY)),
                }
            }
        }
        let limit = sum.bound().limit;
        if limit < best.limit || !best.limit.is_finite() && limit.is_finite() {
            (best.limit, best.first) = (limit, first);
        }
    }

    /// Adds coefficients, `given` to a value, to what it has already.
    fn give(&mut self, value: ValueId, given: Patch<N>) {
        let range = &self.setting.ranges[value];
        if given.iter().any(|(_, c)| !c.is_finite()) {
            self.constant.add_error(&N::of(f64::INFINITY));
        }
        self.products += given.coefficients().len() as f64;
        let given = given.with_layout(self.patches.network.channels(value));
        let Some(present) = self.coefficients.remove(&value) else {
            self.coefficients.insert(value, given);
            return;
        };
        let constant = &mut self.constant;
        let sum = present.add(given, |element, present, given| {
            if !present.is_zero() && !given.is_zero() {
                constant.add_error(&rounding(&present.plus(given), &range.magnitude(element)));
            }
        });
        self.coefficients.insert(value, sum);
    }

    /// Replaces what a node made, with these coefficients on it, by what it was made from.
    fn replace(&mut self, node: usize, mut patch: Patch<N>) {
        let network = self.patches.network;
        let made = &network.nodes()[node];
        let operand = made.operands()[0];
        let layout = network.channels(operand);
        let given = match self.patches.plan(node, self.setting.ranges) {
            NodePlan::Units(layer) => {
                self.relax(*layer, &mut patch);
                patch
            }
            NodePlan::Both => {
                if let Some(&other) = made.operands().get(1) {
                    self.give(other, patch.clone());
                }
                patch
            }
            NodePlan::Joined(sources) => return self.divide(made, sources, &patch),
            NodePlan::Largest(windows) => {
                let elements = self.largest(made, network.result_of(node), windows, &patch);
                Patch::of_elements(layout, elements)
            }
            NodePlan::Move { moves } if moves.is_in_order() => patch,
            NodePlan::Move { moves } => {
                let moved = patch.iter().map(|(element, c)| (moves.source(element), c.clone()));
                Patch::of_elements(layout, moved.collect())
            }
            NodePlan::Each(arithmetic, constants) => {
                self.change_each(operand, *arithmetic, constants, &mut patch);
                patch
            }
            NodePlan::Sums { sums, errors } => {
                let mut size = N::default();
                let mut is_zero = true;
                for (output, c) in patch.iter().filter(|(_, c)| !c.is_zero()) {
                    is_zero = false;
                    if N::ROUNDS {
                        size.add(&c.abs().times(&errors.largest[output]));
                    }
                    self.constant.add_product(c, &N::of(sums.bias(output)));
                }
                if !is_zero && N::ROUNDS {
                    self.constant.add_error(&size.times(&errors.factor).plus(&errors.underflow));
                }
                let words = N::words(patch.coefficients());
                let (product, products) = sums.backward_of_patch(patch);
                self.products += products as f64 * words;
                product
            }
        };
        self.give(operand, given);
    }

    /// Gives coefficients on values side by side to each of them.
    fn divide(&mut self, made: &Node, sources: &[(usize, usize)], patch: &Patch<N>) {
        for (index, &operand) in made.operands().iter().enumerate() {
            let own = patch.iter().filter(|(element, _)| sources[*element].0 == index);
            let own: Vec<(usize, N)> = own.map(|(element, c)| (sources[element].1, c.clone())).collect();
            if !own.is_empty() {
                self.give(operand, Patch::of_elements(self.patches.network.channels(operand), own));
            }
        }
    }

    /// Coefficients on elements of windows that stand for those on the largest of each, and, where none does, a
    /// constant. Where windows overlap, one element may stand for the largest of many: then its coefficient is a sum,
    /// which is rounded.
    fn largest(&mut self, made: &Node, value: ValueId, windows: &MaxWindows, patch: &Patch<N>) -> Vec<(usize, N)> {
        let (range, own) = (&self.setting.ranges[made.operands()[0]], &self.setting.ranges[value]);
        let mut given: BTreeMap<usize, N> = BTreeMap::new();
        for (output, c) in patch.iter().filter(|(_, c)| !c.is_zero()) {
            let mut greatest: Option<usize> = None;
            for input in windows.of(output) {
                let is_greater = |than: usize| range.lower[input] > range.lower[than];
                greatest = if greatest.is_none_or(is_greater) { Some(input) } else { greatest };
            }
            let Some(greatest) = greatest else { continue };
            let is_no_less = |input: usize| input == greatest || range.upper[input] <= range.lower[greatest];
            match !c.is_positive() || windows.of(output).all(is_no_less) {
                true => match given.entry(greatest) {
                    Entry::Vacant(entry) => _ = entry.insert(c.clone()),
                    Entry::Occupied(mut entry) => {
                        let sum = entry.get().plus(c);
                        self.constant.add_error(&rounding(&sum, &range.magnitude(greatest)));
                        entry.insert(sum);
                    }
                },
                false => self.constant.add_product(c, &own.upper[output]),
            }
        }
        given.into_iter().collect()
    }

    /// Replaces coefficients on elements of a value plus, times or over constants.
    fn change_each(&mut self, operand: ValueId, arithmetic: Arithmetic, constants: &[f64], patch: &mut Patch<N>) {
        let range = &self.setting.ranges[operand];
        for (element, c) in patch.iter_mut().filter(|(_, c)| !c.is_zero()) {
            let factor = N::of(constants[element]);
            let scaled = match arithmetic {
                Arithmetic::Add => {
                    self.constant.add_product(c, &factor);
                    continue;
                }
                Arithmetic::Multiply => c.times(&factor),
                Arithmetic::Divide => c.over(&factor),
            };
            if constants[element] != 0.0 {
                self.constant.add_error(&rounding(&scaled, &range.magnitude(element)));
            }
            *c = scaled;
        }
    }

    /// Replaces coefficients on a layer's outputs by those on pre-activations that stand for them.
    fn relax(&mut self, layer: LayerId, patch: &mut Patch<N>) {
        let (network, of) = (self.patches.network, self.patches.network.activation(layer));
        let range = &self.setting.ranges[network.pre_activation(layer)];
        for (unit, c) in patch.iter_mut() {
            if !c.is_zero() && c.is_finite() {
                let at = range.at(unit);
                replace_unit(of, c, &at, &SlopeRange::new(of, &at), None, &mut self.constant);
            }
        }
    }
}
