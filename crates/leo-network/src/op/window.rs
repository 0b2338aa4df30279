//! How windows lie on the positions of a channel: kernel, strides, dilations and padding, in any number of dimensions.
//!
//! A window says for each position of what is made which positions of what is read it touches, and by which of the
//! kernel's entries. Convolutions, their transposes and pools are made of that, and ask for nothing else.

use crate::shape::{MAX_ELEMENTS, NetworkError, product};

/// How many pairs of a position and one that it reads a map may have: more than a kernel of 7 by 7 has on 580 by 580
/// positions.
const MAX_TAPS: usize = 1 << 24;

/// A kernel that moves over positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    axes: Vec<WindowAxis>,
    /// Whether it spreads what it reads instead of gathering it.
    is_transposed: bool,
}

/// A window along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    /// How many entries the kernel has.
    pub kernel: usize,
    /// How far the window moves from a position to the next.
    pub stride: usize,
    /// How far neighbouring entries of the kernel are from each other.
    pub dilation: usize,
    /// How many positions there are before the first one that nobody made.
    pub before: usize,
    /// And after the last one. Of what a transposed window makes, so many positions are left out at either end.
    pub after: usize,
    /// For a transposed window: how many positions more are made than the windows reach.
    pub extra: usize,
}

impl WindowAxis {
    /// A window of `kernel` neighbours that moves by `stride`.
    pub fn new(kernel: usize, stride: usize) -> Self {
        Self { kernel, stride, dilation: 1, before: 0, after: 0, extra: 0 }
    }

    /// How many positions the window spans.
    pub fn span(&self) -> Option<usize> {
        self.kernel.checked_sub(1)?.checked_mul(self.dilation)?.checked_add(1)
    }

    /// How many positions are made of `extent`.
    fn output(&self, extent: usize, is_transposed: bool) -> Result<usize, NetworkError> {
        let span = self.span().filter(|_| self.stride > 0 && self.dilation > 0);
        let span = span.filter(|&span| span <= MAX_ELEMENTS && self.stride <= MAX_ELEMENTS);
        let Some(span) = span else {
            return Err(NetworkError::mismatch(format!(
                "a window with kernel {}, stride {} and dilation {}",
                self.kernel, self.stride, self.dilation
            )));
        };
        if [self.before, self.after, self.extra].iter().any(|&pad| pad > MAX_ELEMENTS) {
            return Err(NetworkError::mismatch("more padding than Leo takes".to_owned()));
        }
        let padding = self.before + self.after;
        if is_transposed {
            let reached = (extent - 1).checked_mul(self.stride).map(|reached| reached + span + self.extra);
            let made = reached.and_then(|reached| reached.checked_sub(padding)).filter(|&made| made > 0);
            return made.ok_or_else(|| NetworkError::mismatch("padding leaves nothing of what is made".to_owned()));
        }
        if span > extent + padding {
            return Err(NetworkError::mismatch(format!(
                "a window that spans {span} positions does not fit on {extent} with {padding} of padding"
            )));
        }
        Ok((extent + padding - span) / self.stride + 1)
    }

    /// For each position along the axis, the positions that it reads, in ascending order, each with its entry of the
    /// kernel.
    fn taps(&self, extent: usize, output: usize, is_transposed: bool) -> Vec<Vec<(u32, u32)>> {
        if is_transposed {
            // Each position that is read is spread over the kernel's entries: there are no more pairs than that.
            let mut taps = vec![Vec::new(); output];
            for read in 0..extent {
                for entry in 0..self.kernel {
                    let at = (read * self.stride + entry * self.dilation).checked_sub(self.before);
                    if let Some(taps) = at.and_then(|at| taps.get_mut(at)) {
                        taps.push((read as u32, entry as u32));
                    }
                }
            }
            return taps;
        }
        let gathered = |at: usize, entry: usize| {
            let read = (at * self.stride + entry * self.dilation).checked_sub(self.before)?;
            (read < extent).then_some(read)
        };
        let of_position = |at: usize| {
            (0..self.kernel).filter_map(|entry| Some((gathered(at, entry)? as u32, entry as u32))).collect()
        };
        (0..output).map(of_position).collect()
    }
}

impl Window {
    /// A window that gathers what it reads.
    pub fn new(axes: impl Into<Vec<WindowAxis>>) -> Self {
        Self { axes: axes.into(), is_transposed: false }
    }

    /// The transpose of a window: it spreads what it reads.
    pub fn transposed(axes: impl Into<Vec<WindowAxis>>) -> Self {
        Self { axes: axes.into(), is_transposed: true }
    }

    /// The window along each axis.
    pub fn axes(&self) -> &[WindowAxis] {
        &self.axes
    }

    /// Whether it is the transpose of one that gathers.
    pub fn is_transposed(&self) -> bool {
        self.is_transposed
    }

    /// How many entries the kernel has.
    pub fn entries(&self) -> Option<usize> {
        product(&self.axes.iter().map(|axis| axis.kernel).collect::<Vec<_>>())
    }

    /// The extents of what is made of positions with these extents.
    ///
    /// # Errors
    /// If the window does not fit on them, or touches more than Leo takes.
    pub fn output(&self, extents: &[usize]) -> Result<Vec<usize>, NetworkError> {
        if extents.len() != self.axes.len() {
            return Err(NetworkError::mismatch(format!(
                "a window along {} axes does not fit on positions with {}",
                self.axes.len(),
                extents.len()
            )));
        }
        let axes = self.axes.iter().zip(extents);
        let made =
            axes.map(|(axis, &extent)| axis.output(extent, self.is_transposed)).collect::<Result<Vec<_>, _>>()?;
        let reads = if self.is_transposed { extents } else { &made };
        let taps = product(reads).and_then(|positions| positions.checked_mul(self.entries()?));
        match taps {
            Some(taps) if taps <= MAX_TAPS => Ok(made),
            _ => Err(NetworkError::mismatch(format!("a window that reads more than {MAX_TAPS} positions in all"))),
        }
    }

    /// How many pairs of a position and one that it reads there can be, at the most, on positions with these extents,
    /// which the window must fit on.
    pub(crate) fn most_taps(&self, extents: &[usize]) -> usize {
        let made = self.output(extents).unwrap_or_default();
        let reads = if self.is_transposed { extents } else { &made };
        reads.iter().product::<usize>().saturating_mul(self.entries().unwrap_or(usize::MAX))
    }

    /// Whether every position that is made reads something, on positions with these extents, which the window must fit
    /// on.
    pub(crate) fn has_no_empty(&self, extents: &[usize]) -> bool {
        let made = self.output(extents).unwrap_or_default();
        let axes = self.axes.iter().zip(extents).zip(made);
        axes.into_iter().all(|((axis, &extent), made)| {
            axis.taps(extent, made, self.is_transposed).iter().all(|taps| !taps.is_empty())
        })
    }

    /// Which positions read which, for positions with these extents, which the window must fit on.
    pub(crate) fn taps(&self, extents: &[usize]) -> Taps {
        let made = self.output(extents).expect("a window that fits");
        let mut all: Vec<Vec<(u32, u32)>> = vec![vec![(0, 0)]];
        for ((axis, &extent), &output) in self.axes.iter().zip(extents).zip(&made) {
            let along = axis.taps(extent, output, self.is_transposed);
            let joined = |outer: &Vec<(u32, u32)>, inner: &Vec<(u32, u32)>| {
                let (extent, kernel) = (extent as u32, axis.kernel as u32);
                let pairs = outer.iter().flat_map(|&(read, entry)| {
                    inner.iter().map(move |&(more, further)| (read * extent + more, entry * kernel + further))
                });
                pairs.collect::<Vec<_>>()
            };
            all = all.iter().flat_map(|outer| along.iter().map(move |inner| joined(outer, inner))).collect();
        }
        let mut starts = vec![0];
        starts.extend(all.iter().scan(0, |sum, taps| {
            *sum += taps.len();
            Some(*sum)
        }));
        Taps {
            starts,
            taps: all.concat(),
            entries: self.entries().unwrap_or(0),
            read: extents.iter().product(),
            made: made.iter().product(),
        }
    }
}

/// Which positions read which.
#[derive(Clone, Debug)]
pub struct Taps {
    /// For each position that is made, where its taps begin, and where the last ones end.
    starts: Vec<usize>,
    /// What is read, and by which entry of the kernel.
    taps: Vec<(u32, u32)>,
    entries: usize,
    read: usize,
    made: usize,
}

impl Taps {
    /// How many positions are made.
    pub fn made(&self) -> usize {
        self.made
    }

    /// How many positions are read.
    pub fn read(&self) -> usize {
        self.read
    }

    /// How many entries the kernel has.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// What a position reads, in ascending order: positions, each with its entry of the kernel.
    pub fn of(&self, position: usize) -> &[(u32, u32)] {
        &self.taps[self.starts[position]..self.starts[position + 1]]
    }

    /// How many pairs of a position and one that it reads there are.
    pub fn count(&self) -> usize {
        self.taps.len()
    }

    /// How many positions one reads at the most.
    pub fn longest(&self) -> usize {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// Whether each position reads itself and nothing else, by a kernel of one entry.
    pub(crate) fn is_pointwise(&self) -> bool {
        self.entries == 1 && self.read == self.made && self.count() == self.made && self.longest() == 1
    }

    /// The same for each entry of the kernel, as runs of positions at equal distances.
    pub(crate) fn runs(&self) -> Vec<Vec<TapRun>> {
        let mut runs: Vec<Vec<TapRun>> = vec![Vec::new(); self.entries];
        for position in 0..self.made {
            for &(read, entry) in self.of(position) {
                let (read, runs) = (read as usize, &mut runs[entry as usize]);
                match runs.last_mut() {
                    Some(run) if run.takes(position, read) => {
                        (run.made_step, run.read_step) = run.step_to(position, read);
                        run.length += 1;
                    }
                    _ => runs.push(TapRun { made: position, made_step: 1, read, read_step: 1, length: 1 }),
                }
            }
        }
        runs
    }
}

/// The positions of a channel with all padding around them, in one row: each entry of the kernel reads at a fixed
/// distance from where the window stands, so that sums of all positions are made as of neighbours, and those that
/// windows pass over are left out in the end.
#[derive(Clone, Debug)]
pub(crate) struct Plane {
    /// How many numbers the row has.
    pub(crate) size: usize,
    /// Where rows of neighbours begin among the positions that are read, and where they go.
    pub(crate) rows: Vec<(usize, usize)>,
    /// How many neighbours each of them has.
    pub(crate) row: usize,
    /// For each entry of the kernel, how far ahead it reads.
    pub(crate) offsets: Vec<usize>,
    /// For each position that is made, where its window stands.
    pub(crate) places: Vec<usize>,
}

impl Plane {
    /// For positions with these extents, if a window gathers them, which must fit on them.
    pub(crate) fn new(window: &Window, extents: &[usize]) -> Option<Self> {
        let made = window.output(extents).ok().filter(|_| !window.is_transposed)?;
        let padded: Vec<usize> =
            window.axes.iter().zip(extents).map(|(axis, extent)| axis.before + extent + axis.after).collect();
        let size = product(&padded).filter(|&size| size <= MAX_ELEMENTS)?;
        // All sums of a number along each axis, in the order of the axes.
        let sums = |along: &dyn Fn(usize) -> Vec<usize>| {
            let axes = (0..padded.len()).map(|axis| (along(axis), padded[axis + 1..].iter().product::<usize>()));
            axes.fold(vec![0], |sums, (numbers, step)| {
                sums.iter().flat_map(|sum| numbers.iter().map(move |number| sum + number * step)).collect()
            })
        };
        let last = padded.len().checked_sub(1)?;
        let starts = |axis: usize| if axis == last { 1 } else { extents[axis] };
        let to = sums(&|axis| (0..starts(axis)).map(|at| at + window.axes[axis].before).collect());
        let rows = to.into_iter().enumerate().map(|(row, to)| (row * extents[last], to)).collect();
        Some(Self {
            size,
            rows,
            row: extents[last],
            offsets: sums(&|axis| (0..window.axes[axis].kernel).map(|at| at * window.axes[axis].dilation).collect()),
            places: sums(&|axis| (0..made[axis]).map(|at| at * window.axes[axis].stride).collect()),
        })
    }
}

/// Positions at equal distances that read positions at equal distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TapRun {
    pub(crate) made: usize,
    pub(crate) made_step: usize,
    pub(crate) read: usize,
    pub(crate) read_step: usize,
    pub(crate) length: usize,
}

impl TapRun {
    fn step_to(&self, made: usize, read: usize) -> (usize, usize) {
        match self.length {
            1 => (made - self.made, read.wrapping_sub(self.read)),
            _ => (self.made_step, self.read_step),
        }
    }

    /// Whether a further pair goes on as the run does.
    fn takes(&self, made: usize, read: usize) -> bool {
        let (made_step, read_step) = self.step_to(made, read);
        read > self.read && made == self.made + self.length * made_step && read == self.read + self.length * read_step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_gather_and_their_transposes_spread() -> Result<(), NetworkError> {
        let axis = WindowAxis { before: 1, after: 1, ..WindowAxis::new(3, 2) };
        let window = Window::new([axis]);
        assert_eq!(window.output(&[5])?, [3]);
        let taps = window.taps(&[5]);
        assert_eq!(taps.of(0), [(0, 1), (1, 2)]);
        assert_eq!(taps.of(2), [(3, 0), (4, 1)]);
        let back = Window::transposed([axis]);
        assert_eq!(back.output(&[3])?, [5]);
        let there: Vec<(u32, u32, u32)> =
            (0..3).flat_map(|at| taps.of(at as usize).iter().map(move |&(read, entry)| (read, at, entry))).collect();
        let taps = back.taps(&[3]);
        let mut again: Vec<(u32, u32, u32)> =
            (0..5).flat_map(|at| taps.of(at as usize).iter().map(move |&(read, entry)| (at, read, entry))).collect();
        again.sort_unstable();
        let mut there = there;
        there.sort_unstable();
        assert_eq!(there, again);
        Ok(())
    }

    #[test]
    fn runs_are_the_same_as_taps() {
        for (axes, extents) in [
            (vec![WindowAxis { before: 1, after: 1, ..WindowAxis::new(3, 1) }; 2], vec![4, 5]),
            (vec![WindowAxis { dilation: 2, after: 2, ..WindowAxis::new(2, 3) }; 2], vec![7, 6]),
            (vec![WindowAxis::new(1, 1); 3], vec![2, 3, 2]),
        ] {
            for window in [Window::new(axes.clone()), Window::transposed(axes)] {
                let taps = window.taps(&extents);
                let mut told: Vec<(usize, usize, usize)> = Vec::new();
                for (entry, runs) in taps.runs().iter().enumerate() {
                    for run in runs {
                        let pair = |i: usize| (run.made + i * run.made_step, run.read + i * run.read_step, entry);
                        told.extend((0..run.length).map(pair));
                    }
                }
                told.sort_unstable();
                let all = (0..taps.made()).flat_map(|at| {
                    let taps = taps.of(at).iter();
                    taps.map(move |&(read, entry)| (at, read as usize, entry as usize)).collect::<Vec<_>>()
                });
                let all: Vec<(usize, usize, usize)> = all.collect();
                assert_eq!(told, all);
                let Some(plane) = Plane::new(&window, &extents) else { continue };
                // Which position stands at each place of the row, if one does.
                let mut at = vec![None; plane.size];
                for &(from, to) in &plane.rows {
                    (0..plane.row).for_each(|step| at[to + step] = Some(from + step));
                }
                let mut told: Vec<(usize, usize, usize)> = Vec::new();
                for (made, place) in plane.places.iter().enumerate() {
                    let entries = plane.offsets.iter().enumerate();
                    told.extend(entries.filter_map(|(entry, offset)| Some((made, at[place + offset]?, entry))));
                }
                assert_eq!(told, all);
            }
        }
    }

    #[test]
    fn windows_that_do_not_fit_are_refused() {
        let refused = |axis: WindowAxis| Window::new([axis]).output(&[4]).is_err();
        assert!(refused(WindowAxis::new(5, 1)) && refused(WindowAxis::new(0, 1)) && refused(WindowAxis::new(1, 0)));
        assert!(refused(WindowAxis { dilation: usize::MAX, ..WindowAxis::new(3, 1) }));
        assert!(refused(WindowAxis { before: usize::MAX, ..WindowAxis::new(3, 1) }));
        assert!(Window::new([WindowAxis::new(4096, 1)]).output(&[1 << 20]).is_err(), "too much to read");
    }
}
