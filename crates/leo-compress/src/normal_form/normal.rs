//! The normal form: every pre-activation and every port as an affine function of the entry and of the units that stay.
//!
//! ```text
//! h_i = its own column        a unit that stays
//!     = its pre-activation    always on
//!     = 0                     always off
//!     = c h_k                 its pre-activation is c times that of unit k, c > 0
//!     = |c| h_k + c g_k       the same, c < 0
//! ```
//!
//! Two networks with the same units and the same rows are the same function, however many layers they have and whatever
//! flows through them.

use leo_check::Expression;
use leo_network::add_product;

use crate::normal_form::affine::Affine;
use crate::normal_form::linear::NOISE;
use crate::rewriting::plan::{ChannelFate, Rule};
use crate::rewriting::region::Region;

/// Coefficients smaller than this, in units of the row's size, are what rounding left of nothing.
const CANCELLED_SIZE: f64 = NOISE / 16.0;

/// A variable: an entry, or a unit that stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl Column {
    pub(crate) fn magnitude(self) -> f64 {
        self.lower.abs().max(self.upper.abs())
    }

    pub(crate) fn middle(self) -> f64 {
        self.lower / 2.0 + self.upper / 2.0
    }

    pub(crate) fn half_width(self) -> f64 {
        self.upper / 2.0 - self.lower / 2.0
    }
}

/// What is decided about the units before the normal form is made.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    /// For each layer, units that are nearly constant or nearly linear, and are taken to be.
    pub(crate) negligible: Vec<Vec<Option<Expression<usize>>>>,
    /// For each layer, units that are always on and stay all the same.
    pub(crate) retained: Vec<Vec<bool>>,
    /// For each layer, whether a negative multiple of another unit shall be replaced.
    pub(crate) opposites: Vec<bool>,
    /// For each layer and unit, how much a multiple may be off.
    pub(crate) allowance: Vec<Vec<f64>>,
}

impl Choices {
    /// Nothing is approximated, and no unit stays that need not.
    pub(crate) fn new(region: &Region) -> Self {
        let each = |layer: &crate::rewriting::region::RegionLayer| layer.map.rows;
        Self {
            negligible: region.layers.iter().map(|layer| vec![None; each(layer)]).collect(),
            retained: region.layers.iter().map(|layer| vec![false; each(layer)]).collect(),
            opposites: vec![true; region.layers.len()],
            allowance: region.layers.iter().map(|layer| vec![0.0; each(layer)]).collect(),
        }
    }
}

/// Rows over the columns that there were when they were made: a layer's, or a port's.
#[derive(Clone, Debug)]
pub(crate) struct NormalRows {
    /// Over columns, not over units.
    pub(crate) map: Affine,
    /// The sum of the absolute values of all that each row was computed from.
    pub(crate) sizes: Vec<f64>,
    /// What rounding can have made of each row: nothing, if its numbers are the file's own.
    pub(crate) noise: Vec<f64>,
}

impl NormalRows {
    /// A row's coefficient; 0 on columns that came later.
    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        if column < self.map.columns { self.map.at(row, column) } else { 0.0 }
    }
}

/// A region in normal form.
#[derive(Clone, Debug)]
pub(crate) struct NormalForm {
    pub(crate) columns: Vec<Column>,
    /// For each layer, where the columns of its units begin.
    pub(crate) starts: Vec<usize>,
    /// For each layer and unit, its column.
    pub(crate) column_of: Vec<Vec<Option<usize>>>,
    pub(crate) layers: Vec<NormalRows>,
    pub(crate) ports: Vec<NormalRows>,
    pub(crate) fates: Vec<Vec<ChannelFate>>,
    /// For each layer, the sum of its activation's slopes: what belongs to negative multiples.
    slopes: Vec<f64>,
}

impl NormalForm {
    pub(crate) fn new(region: &Region, choices: &Choices) -> Self {
        let entry = region.range.lower.iter().zip(&region.range.upper);
        let mut form = Self {
            columns: entry.map(|(&lower, &upper)| Column { lower, upper }).collect(),
            starts: Vec::new(),
            column_of: Vec::new(),
            layers: Vec::new(),
            ports: Vec::new(),
            fates: Vec::new(),
            slopes: Vec::new(),
        };
        for (index, layer) in region.layers.iter().enumerate() {
            let rows = form.rows(layer.parent, &layer.map);
            form.starts.push(form.columns.len());
            form.add_layer(region, index, rows, choices);
        }
        form.ports = region.ports.iter().map(|port| form.rows(port.parent, &port.map)).collect();
        form.remove_dead();
        form
    }

    /// A map from a layer's units, or the entry, as rows over columns.
    fn rows(&self, parent: Option<usize>, map: &Affine) -> NormalRows {
        let sized = |row: usize, sizes: &[f64]| {
            map.bias[row].abs() + map.row(row).iter().zip(sizes).map(|(w, size)| w.abs() * size).sum::<f64>()
        };
        let Some(parent) = parent else {
            let sizes: Vec<f64> = self.columns[..map.columns].iter().map(|column| column.magnitude()).collect();
            let sizes = (0..map.rows).map(|row| sized(row, &sizes)).collect();
            return NormalRows { map: map.clone(), sizes, noise: vec![0.0; map.rows] };
        };
        let (given, fates, slopes) = (&self.layers[parent], &self.fates[parent], &self.slopes[parent]);
        let mut made = Affine { bias: map.bias.clone(), ..Affine::zero(map.rows, self.columns.len()) };
        // How much of which pre-activations, and the sizes of what units give.
        let mut through = Affine::zero(map.rows, given.map.rows);
        let mut sizes = vec![0.0; fates.len()];
        for (unit, fate) in fates.iter().enumerate() {
            let mut direct = None;
            let mut linear = None;
            match fate.expression() {
                Expression::Itself => direct = Some((unit, 1.0)),
                Expression::Affine { slope, constant } => {
                    linear = (slope != 0.0).then_some((unit, slope));
                    sizes[unit] = constant.abs();
                    if constant != 0.0 {
                        (0..map.rows).for_each(|row| made.bias[row] += map.at(row, unit) * constant);
                    }
                }
                Expression::Multiple { of, factor } => {
                    direct = Some((of, factor.abs()));
                    linear = (factor < 0.0).then_some((of, factor * *slopes));
                }
            }
            if let Some((of, factor)) = direct
                && let Some(column) = self.column_of[parent][of]
            {
                sizes[unit] += factor * self.columns[column].magnitude();
                (0..map.rows).for_each(|row| made.row_mut(row)[column] += map.at(row, unit) * factor);
            }
            if let Some((of, factor)) = linear {
                sizes[unit] += factor.abs() * given.sizes[of];
                (0..map.rows).for_each(|row| through.row_mut(row)[of] += map.at(row, unit) * factor);
            }
        }
        let used: Vec<usize> =
            (0..through.columns).filter(|&of| (0..map.rows).any(|row| through.at(row, of) != 0.0)).collect();
        let sizes: Vec<f64> = (0..map.rows).map(|row| sized(row, &sizes)).collect();
        let is_plain = |fate: &ChannelFate| {
            fate.expression() == Expression::Itself || fate.expression() == Expression::constant(0.0)
        };
        let is_plain = fates.iter().all(is_plain);
        let noise = sizes.iter().map(|size| if is_plain { 0.0 } else { NOISE * size }).collect();
        let mut rows = NormalRows { map: made, sizes, noise };
        if !used.is_empty() {
            rows.add_through(&through.with_columns(&used), &given.map.with_rows(&used), &self.columns);
        }
        rows
    }

    /// Decides what becomes of a layer's units, and gives those that stay their columns.
    fn add_layer(&mut self, region: &Region, index: usize, rows: NormalRows, choices: &Choices) {
        let layer = &region.layers[index];
        let mut fates = Vec::new();
        let mut search = Multiples::new(&rows, &self.columns);
        for unit in 0..layer.map.rows {
            fates.push(if layer.is_inactive(unit) {
                ChannelFate::Gone(Rule::Inactive, Expression::constant(0.0))
            } else if let Some(constant) = rows.constant(unit, &self.columns) {
                ChannelFate::Gone(Rule::Constant, Expression::constant(layer.activation.of(constant)))
            } else if layer.is_active(unit) {
                let (slope, constant) = layer.line(unit);
                let linear = ChannelFate::Gone(Rule::Linear, Expression::Affine { slope, constant });
                if choices.retained[index][unit] { ChannelFate::Kept } else { linear }
            } else if let Some(claim) = choices.negligible[index][unit] {
                ChannelFate::Gone(Rule::Negligible, claim)
            } else if !layer.activation.is_homogeneous() {
                ChannelFate::Kept
            } else {
                match search.find(unit, choices.opposites[index], choices.allowance[index][unit]) {
                    Some((of, factor)) => {
                        let rule = if factor > 0.0 { Rule::Multiple } else { Rule::Opposite };
                        ChannelFate::Gone(rule, Expression::Multiple { of, factor })
                    }
                    None => ChannelFate::Kept,
                }
            });
        }
        let mut column_of = vec![None; fates.len()];
        for unit in (0..fates.len()).filter(|&unit| fates[unit].is_kept()) {
            column_of[unit] = Some(self.columns.len());
            self.columns.push(Column { lower: layer.output.lower[unit], upper: layer.output.upper[unit] });
        }
        self.layers.push(rows);
        self.slopes.push(layer.activation.pieces().iter().map(|piece| piece.slope).sum());
        self.fates.push(fates);
        self.column_of.push(column_of);
    }

    /// Units that stay but that nobody reads do not stay.
    fn remove_dead(&mut self) {
        let mut read = vec![false; self.columns.len()];
        let mark = |rows: &NormalRows, row: usize, read: &mut [bool]| {
            read.iter_mut().zip(rows.map.row(row)).for_each(|(read, coefficient)| *read |= *coefficient != 0.0);
        };
        for rows in &self.ports {
            (0..rows.map.rows).for_each(|row| mark(rows, row, &mut read));
        }
        for index in (0..self.layers.len()).rev() {
            for (unit, column) in self.column_of[index].iter().enumerate() {
                match column {
                    Some(column) if read[*column] => mark(&self.layers[index], unit, &mut read),
                    Some(_) => self.fates[index][unit] = ChannelFate::Gone(Rule::Dead, Expression::Itself),
                    None => {}
                }
            }
        }
    }

    /// How many of a layer's units stay.
    pub(crate) fn kept(&self, index: usize) -> usize {
        self.fates[index].iter().filter(|fate| fate.is_kept()).count()
    }
}

impl NormalRows {
    /// What a row is if it is constant.
    fn constant(&self, row: usize, columns: &[Column]) -> Option<f64> {
        let mut constant = self.map.bias[row];
        for (&c, column) in self.map.row(row).iter().zip(columns).filter(|(c, _)| **c != 0.0) {
            if column.half_width() > 0.0 {
                return None;
            }
            constant += c * column.lower;
        }
        Some(constant)
    }

    /// Adds multiples of other rows. What rounding left of nothing is nothing.
    fn add_through(&mut self, through: &Affine, given: &Affine, columns: &[Column]) {
        let width = given.columns;
        let mut product = vec![0.0; through.rows * width];
        add_product(&mut product, &through.weight, &given.weight, through.rows, through.columns, width);
        for (row, product) in product.chunks_exact(width).enumerate() {
            let size = self.sizes[row];
            for ((sum, &part), column) in self.map.row_mut(row).iter_mut().zip(product).zip(columns) {
                *sum += part;
                if sum.abs() * column.magnitude() <= CANCELLED_SIZE * size {
                    *sum = 0.0;
                }
            }
        }
        add_product(&mut self.map.bias, &through.weight, &given.bias, through.rows, through.columns, 1);
    }
}

/// Looks for units whose pre-activations are multiples of each other.
struct Multiples<'a> {
    rows: &'a NormalRows,
    columns: &'a [Column],
    /// For each unit, where it is largest, and a number that multiples share, but for rounding.
    keys: Vec<Option<(usize, f64)>>,
    /// The units that stay, by this number.
    kept: Vec<(f64, usize)>,
}

/// How far the numbers that multiples share may be apart.
const KEY_WIDTH: f64 = 1e-6;

impl<'a> Multiples<'a> {
    fn new(rows: &'a NormalRows, columns: &'a [Column]) -> Self {
        // The fractional parts of multiples of the golden ratio are as irregular as needed.
        let irregular = |index: usize| (index as f64 * 0.618_033_988_749_894_9).fract() - 0.5;
        let weights: Vec<f64> = (0..=rows.map.columns).map(irregular).collect();
        let keys = (0..rows.map.rows).map(|row| key(rows, columns, &weights, row)).collect();
        Self { rows, columns, keys, kept: Vec::new() }
    }

    /// Of which unit that stays this one is a multiple, and by which factor. If there is none, it is one that stays
    /// itself.
    fn find(&mut self, unit: usize, opposites: bool, allowance: f64) -> Option<(usize, f64)> {
        let (place, key) = self.keys[unit]?;
        let near = self.kept.partition_point(|&(other, _)| other < key - KEY_WIDTH);
        let mut best = None;
        for &(_, other) in self.kept[near..].iter().take_while(|&&(other, _)| other <= key + KEY_WIDTH) {
            let factor = self.at(unit, place) / self.at(other, place);
            if factor == 0.0 || !factor.is_finite() || (factor < 0.0 && !opposites) {
                continue;
            }
            let noise = self.rows.noise[unit] + factor.abs() * self.rows.noise[other];
            let allowed = noise.max(allowance);
            let is_near = || allowed > 0.0 && self.distance(unit, other, factor) <= allowed;
            if self.are_equal(unit, other, factor) || is_near() {
                best = Some((other, factor));
                break;
            }
        }
        if best.is_none() {
            let place = self.kept.partition_point(|&(other, _)| other < key);
            self.kept.insert(place, (key, unit));
        }
        best
    }

    /// A coefficient, or the constant.
    fn at(&self, unit: usize, place: usize) -> f64 {
        if place == self.rows.map.columns { self.rows.map.bias[unit] } else { self.rows.map.at(unit, place) }
    }

    /// Whether each number of a unit is the same multiple of another's, but for the rounding of the factor.
    fn are_equal(&self, unit: usize, other: usize, factor: f64) -> bool {
        let equal = |a: f64, b: f64| (a - factor * b).abs() <= 2.0 * f64::EPSILON * a.abs();
        (0..=self.rows.map.columns).all(|place| equal(self.at(unit, place), self.at(other, place)))
    }

    /// How far a unit's pre-activation can be from a multiple of another's.
    fn distance(&self, unit: usize, other: usize, factor: f64) -> f64 {
        let pairs = self.rows.map.row(unit).iter().zip(self.rows.map.row(other)).zip(self.columns);
        let linear: f64 = pairs.map(|((a, b), column)| (a - factor * b).abs() * column.magnitude()).sum();
        linear + (self.rows.map.bias[unit] - factor * self.rows.map.bias[other]).abs()
    }
}

/// The place of a row's largest term, the constant counted as one after the columns, and a number that is the same for
/// its multiples: the sum of all terms, each with a weight of its own, in units of the sum of their sizes.
fn key(rows: &NormalRows, columns: &[Column], weights: &[f64], row: usize) -> Option<(usize, f64)> {
    let linear = rows.map.row(row).iter().zip(columns).map(|(c, column)| c * column.magnitude());
    let (mut sum, mut size, mut largest) = (0.0, 0.0, (0, 0.0));
    for (index, (term, weight)) in linear.chain([rows.map.bias[row]]).zip(weights).enumerate() {
        sum += term * weight;
        size += term.abs();
        if term.abs() > largest.1 {
            largest = (index, term.abs());
        }
    }
    (size > 0.0 && size.is_finite()).then(|| (largest.0, sum.abs() / size))
}
