//! Operators whose windows move over positions: convolutions, their transposes, and pools.

use super::Call;
use crate::onnx::Reason;
use crate::onnx::compose::Composer;
use crate::onnx::dims::Axis;
use crate::onnx::import::{Computed, Value};
use crate::onnx::tensor::Tensor;
use leo_network::NetworkError;
use leo_network::op::{Arithmetic, Convolution, MaxPool, SumPool, Window, WindowAxis};

/// `W * x + b`, in groups.
pub(super) fn conv(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let kernel = KernelInputs::of(call)?;
    let &[outputs, ..] = &kernel.weights.dims[..] else { return Err(kernel.misfit()) };
    let axes = kernel.layout.axes(&kernel.positions)?;
    let groups = kernel.groups;
    let convolution = Convolution::new(Window::new(axes), groups, outputs, kernel.weights.floats()?, kernel.bias)?;
    composer.windowed(convolution, kernel.x).map(Value::Computed)
}

/// The transpose of a convolution, as a map of its own.
pub(super) fn conv_transpose(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let kernel = KernelInputs::of(call)?;
    let &[inputs, of_group, ..] = &kernel.weights.dims[..] else { return Err(kernel.misfit()) };
    let axes = kernel.layout.transposed_axes(call, &kernel.positions)?;
    let (groups, entries) = (kernel.groups, kernel.layout.entries()?);
    if groups == 0 || !inputs.is_multiple_of(groups) {
        return Err(kernel.misfit());
    }
    // From rows for the input channels to rows for the output channels.
    let (values, inputs) = (kernel.weights.floats()?, inputs / groups);
    let outputs = groups * of_group;
    let row = |output: usize, input: usize| {
        let input = output / of_group * inputs + input;
        &values[(input * of_group + output % of_group) * entries..][..entries]
    };
    let weights = (0..outputs).flat_map(|output| (0..inputs).flat_map(move |input| row(output, input).iter().copied()));
    let weights = weights.collect();
    let convolution = Convolution::new(Window::transposed(axes), groups, outputs, weights, kernel.bias)?;
    composer.windowed(convolution, kernel.x).map(Value::Computed)
}

pub(super) fn average_pool(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let x = call.computed(0)?;
    let (positions, layout) = (positions(x)?, Layout::of_attributes(call)?);
    let axes = layout.axes(&positions)?;
    let counts_padding = call.int("count_include_pad", 0)? != 0;
    let window = Window::new(axes.clone());
    let extents = window.output(&positions)?;
    // How many positions each window has, along each axis; those beyond the padding do not count in any case.
    let of_axis = |(index, made): (usize, &usize)| {
        let (axis, extent) = (axes[index], positions[index]);
        let (from, to) = match counts_padding {
            // Nor does what a last window needs to fit, if sizes are rounded up.
            true if layout.auto == AutoPad::Given => (0, axis.before + extent + layout.given(index).after),
            true => (0, axis.before + extent + axis.after),
            false => (axis.before, axis.before + extent),
        };
        let count = |at: usize| {
            let entries = (0..axis.kernel).map(|entry| at * axis.stride + entry * axis.dilation);
            entries.filter(|entry| (from..to).contains(entry)).count()
        };
        (0..*made).map(count).collect::<Vec<usize>>()
    };
    let counts: Vec<Vec<usize>> = extents.iter().enumerate().map(of_axis).collect();
    let is_same = counts.iter().all(|counts| counts.iter().all(|count| *count == counts[0]));
    let product = |outer: Vec<f64>, counts: &Vec<usize>| {
        let counts = if is_same { &counts[..1] } else { counts };
        outer.iter().flat_map(|outer| counts.iter().map(move |&count| outer * count as f64)).collect()
    };
    let divisors: Vec<f64> = counts.iter().fold(vec![1.0], product);
    let dims = if is_same { vec![] } else { extents };
    averaged(composer, window, x, &Tensor::doubles(dims, divisors))
}

pub(super) fn global_average_pool(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let x = call.computed(0)?;
    let positions = positions(x)?;
    let count = positions.iter().product::<usize>() as f64;
    averaged(composer, whole(&positions), x, &Tensor::doubles(vec![], vec![count]))
}

/// Sums over windows, over how many numbers these have.
fn averaged(composer: &mut Composer, window: Window, x: &Computed, divisors: &Tensor) -> Result<Value, Reason> {
    let sum = composer.windowed(SumPool::new(window), x)?;
    composer.elementwise_of_operator(&sum, Arithmetic::Divide, divisors).map(Value::Computed)
}

pub(super) fn max_pool(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let x = call.computed(0)?;
    let (positions, layout) = (positions(x)?, Layout::of_attributes(call)?);
    let window = Window::new(layout.axes(&positions)?);
    composer.windowed(MaxPool::new(window), x).map(Value::Computed)
}

pub(super) fn global_max_pool(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let x = call.computed(0)?;
    let window = whole(&positions(x)?);
    composer.windowed(MaxPool::new(window), x).map(Value::Computed)
}

pub(super) fn reduce_mean(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let Some((sum, count)) = reduced(composer, call)? else { return call.required(0).cloned() };
    let count = Tensor::doubles(vec![], vec![count as f64]);
    composer.elementwise_of_operator(&sum, Arithmetic::Divide, &count).map(Value::Computed)
}

pub(super) fn reduce_sum(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    match reduced(composer, call)? {
        Some((sum, _)) => Ok(Value::Computed(sum)),
        None => call.required(0).cloned(),
    }
}

/// The sum over some axes, and of how many numbers it is; nothing if there is nothing to be summed up.
fn reduced(composer: &mut Composer, call: &Call<'_>) -> Result<Option<(Computed, usize)>, Reason> {
    let x = call.computed(0)?;
    let all = || (0..x.dims.rank()).collect::<Vec<usize>>();
    let axes = call.ints("axes", 1)?.unwrap_or_default();
    let axes = match axes.is_empty() {
        true if call.int("noop_with_empty_axes", 0)? != 0 => return Ok(None),
        true => all(),
        false => axes.iter().map(|&axis| x.dims.axis(axis)).collect::<Result<Vec<_>, _>>()?,
    };
    composer.sum_over(x, &axes, call.int("keepdims", 1)? != 0).map(Some)
}

/// A window on all positions at once.
fn whole(positions: &[usize]) -> Window {
    Window::new(positions.iter().map(|&extent| WindowAxis::new(extent, 1)).collect::<Vec<_>>())
}

/// The extents behind the samples and the channels.
fn positions(x: &Computed) -> Result<Vec<usize>, Reason> {
    let wrong = || NetworkError::mismatch(format!("takes samples, channels and positions, not axes {}", x.dims));
    let axes = x.dims.axes();
    if axes.len() < 3 {
        return Err(wrong().into());
    }
    axes[1..].iter().try_for_each(|axis| match axis {
        Axis::Batch(_) => Err(Reason::MixesBatch),
        Axis::Fixed(_) => Ok(()),
    })?;
    Ok(axes[2..].iter().map(|axis| if let Axis::Fixed(extent) = axis { *extent } else { 1 }).collect())
}

/// What both kinds of convolutions have.
struct KernelInputs<'a> {
    x: &'a Computed,
    positions: Vec<usize>,
    weights: &'a Tensor,
    bias: Option<Vec<f64>>,
    groups: usize,
    layout: Layout,
}

impl<'a> KernelInputs<'a> {
    fn of(call: &'a Call<'_>) -> Result<Self, Reason> {
        let (x, weights) = (call.computed(0)?, call.constant(1)?);
        let positions = positions(x)?;
        let bias = call.optional(2).map(|_| call.constant(2)?.floats()).transpose()?;
        let groups = usize::try_from(call.int("group", 1)?).unwrap_or(0);
        let extents = weights.dims.get(2..).unwrap_or_default().to_vec();
        let layout = Layout::new(call, extents)?;
        let declared = call.ints("kernel_shape", usize::MAX)?;
        let kernel = Self { x, positions, weights, bias, groups, layout };
        let own = || kernel.layout.kernel.iter().map(|&extent| extent as i64);
        let is_declared = declared.is_none_or(|shape| own().eq(shape.iter().copied()));
        match is_declared && own().len() == kernel.positions.len() {
            true => Ok(kernel),
            false => Err(kernel.misfit()),
        }
    }

    fn misfit(&self) -> Reason {
        let (weights, groups) = (&self.weights.dims, self.groups);
        NetworkError::mismatch(format!("weights of shape {weights:?} in {groups} groups for axes {}", self.x.dims))
            .into()
    }
}

/// How windows lie, as attributes say it.
struct Layout {
    kernel: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    /// All that come before, then all that come after.
    pads: Vec<usize>,
    auto: AutoPad,
    rounds_up: bool,
}

/// Who chooses the padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AutoPad {
    /// The file.
    Given,
    /// There is none.
    Valid,
    /// As many positions are made as are read, over the stride; what is odd comes after.
    SameUpper,
    /// The same; what is odd comes before.
    SameLower,
}

impl Layout {
    fn of_attributes(call: &Call<'_>) -> Result<Self, Reason> {
        let kernel = call.ints("kernel_shape", usize::MAX)?.unwrap_or_default();
        let extent = |&extent: &i64| usize::try_from(extent).unwrap_or(0);
        Self::new(call, kernel.iter().map(extent).collect())
    }

    fn new(call: &Call<'_>, kernel: Vec<usize>) -> Result<Self, Reason> {
        let count = kernel.len();
        let numbers = |name: &str, count: usize, default: usize| {
            let Some(numbers) = call.ints(name, usize::MAX)? else { return Ok(vec![default; count]) };
            let numbers: Option<Vec<usize>> = numbers.iter().map(|&number| usize::try_from(number).ok()).collect();
            let numbers = numbers.filter(|numbers| numbers.len() == count);
            numbers.ok_or_else(|| Reason::Unusable(format!("has {name:?} that are negative, or not {count} numbers")))
        };
        let auto = match call.text("auto_pad")? {
            None | Some("NOTSET" | "") => AutoPad::Given,
            Some("VALID") => AutoPad::Valid,
            Some("SAME_UPPER") => AutoPad::SameUpper,
            Some("SAME_LOWER") => AutoPad::SameLower,
            Some(other) => return Err(Reason::Unusable(format!("has \"auto_pad\" {other:?}, which there is not"))),
        };
        let pads = numbers("pads", 2 * count, 0)?;
        if auto != AutoPad::Given && pads.iter().any(|&pad| pad > 0) {
            return Err(Reason::Unusable(
                "has both \"auto_pad\" and \"pads\", of which programs take either".to_owned(),
            ));
        }
        let rounds_up = call.int("ceil_mode", 0)? != 0;
        if rounds_up && auto != AutoPad::Given {
            return Err(Reason::Unusable(
                "has both \"auto_pad\" and \"ceil_mode\", of which programs take either".to_owned(),
            ));
        }
        let dilations = numbers("dilations", count, 1)?;
        if matches!(auto, AutoPad::SameUpper | AutoPad::SameLower) && dilations.iter().any(|&dilation| dilation > 1) {
            return Err(Reason::Unusable(
                "has both \"auto_pad\" and dilations, which programs pad in different ways".to_owned(),
            ));
        }
        Ok(Self { strides: numbers("strides", count, 1)?, dilations, pads, auto, rounds_up, kernel })
    }

    fn entries(&self) -> Result<usize, Reason> {
        let entries = leo_network::product(&self.kernel);
        entries.ok_or_else(|| NetworkError::TooLarge { extents: self.kernel.clone() }.into())
    }

    /// The window along an axis, with the padding that the file gives.
    fn given(&self, axis: usize) -> WindowAxis {
        WindowAxis {
            dilation: self.dilations[axis],
            before: self.pads[axis],
            after: self.pads[self.kernel.len() + axis],
            ..WindowAxis::new(self.kernel[axis], self.strides[axis])
        }
    }

    /// The windows on these positions.
    fn axes(&self, positions: &[usize]) -> Result<Vec<WindowAxis>, Reason> {
        if positions.len() != self.kernel.len() {
            let (kernel, axes) = (self.kernel.len(), positions.len());
            let message = format!("has a kernel along {kernel} axes for positions along {axes}");
            return Err(NetworkError::mismatch(message).into());
        }
        let axis = |(index, &extent): (usize, &usize)| {
            let given = self.given(index);
            let Some(span) = given.span().filter(|_| given.stride > 0 && given.dilation > 0) else {
                return Err(Reason::Unusable("has a stride, a dilation or a kernel of 0".to_owned()));
            };
            let total = |made: usize| (made - 1).saturating_mul(given.stride).saturating_add(span);
            Ok(match self.auto {
                AutoPad::Valid => WindowAxis { before: 0, after: 0, ..given },
                AutoPad::SameUpper | AutoPad::SameLower => {
                    let Some(padding) = total(extent.div_ceil(given.stride)).checked_sub(extent) else {
                        let why =
                            "has \"auto_pad\" where windows leave positions out, which programs do in different ways";
                        return Err(Reason::Unusable(why.to_owned()));
                    };
                    let (less, more) = (padding / 2, padding - padding / 2);
                    let [before, after] = if self.auto == AutoPad::SameUpper { [less, more] } else { [more, less] };
                    WindowAxis { before, after, ..given }
                }
                AutoPad::Given if self.rounds_up => {
                    let padded = extent.saturating_add(given.before).saturating_add(given.after);
                    let beyond = padded.checked_sub(span).map(|room| room.div_ceil(given.stride));
                    // A last window that begins beyond all that is there is none.
                    let last =
                        beyond.map(|last| if last * given.stride >= extent + given.before { last - 1 } else { last });
                    let needed = last.map(|last| total(last + 1).saturating_sub(extent + given.before));
                    WindowAxis { after: needed.unwrap_or(given.after), ..given }
                }
                AutoPad::Given => given,
            })
        };
        positions.iter().enumerate().map(axis).collect()
    }

    /// The windows of a transposed convolution on these positions.
    fn transposed_axes(&self, call: &Call<'_>, positions: &[usize]) -> Result<Vec<WindowAxis>, Reason> {
        let wrong = |what: &str| Reason::Unusable(format!("has {what}"));
        let numbers = |name: &str| {
            let numbers = call.ints(name, usize::MAX)?;
            let fits =
                |numbers: &Vec<i64>| numbers.len() == positions.len() && numbers.iter().all(|&number| number >= 0);
            match numbers {
                Some(numbers) if !fits(&numbers) => Err(wrong(&format!("{name:?} that do not fit its positions"))),
                numbers => Ok(numbers),
            }
        };
        let (extra, shape) = (numbers("output_padding")?, numbers("output_shape")?);
        let axis = |(index, &extent): (usize, &usize)| {
            let extra = extra.as_ref().map_or(0, |extra| extra[index] as usize);
            let given = WindowAxis { extra, ..self.given(index) };
            let Some(span) = given.span().filter(|_| given.stride > 0 && given.dilation > 0) else {
                return Err(wrong("a stride, a dilation or a kernel of 0"));
            };
            let wanted = match (&shape, self.auto) {
                (Some(shape), _) => shape[index] as usize,
                (None, AutoPad::SameUpper | AutoPad::SameLower) => extent.saturating_mul(given.stride),
                (None, AutoPad::Valid) => return Ok(WindowAxis { before: 0, after: 0, ..given }),
                (None, AutoPad::Given) => return Ok(given),
            };
            let reached = (extent - 1).checked_mul(given.stride).and_then(|reached| reached.checked_add(span + extra));
            let padding = reached.and_then(|reached| reached.checked_sub(wanted));
            let padding = padding.ok_or_else(|| wrong("an output that is larger than its windows reach"))?;
            let (less, more) = (padding / 2, padding - padding / 2);
            let [before, after] = if self.auto == AutoPad::SameUpper { [less, more] } else { [more, less] };
            Ok(WindowAxis { before, after, ..given })
        };
        positions.iter().enumerate().map(axis).collect()
    }
}
