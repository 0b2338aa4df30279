//! Networks with convolutions: channels that only linear bounds by patches decide, and what is found whatever the
//! number of threads.

use leo_check::{ProvedBounds, Side, Status};
use leo_network::op::{Concat, Convolution, MaxPool, Relu, Sum, Window, WindowAxis};
use leo_network::{Domain, Network, NetworkError, Shape, ValueId};
use leo_stability::{Analysis, AnalysisOptions, Unit, analyze};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// How what comes before a layer gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Straight,
    /// With a sum of branches in between.
    Residual,
    /// With channels side by side.
    Joined,
    /// With the largest of each window.
    Pooled,
}

fn point() -> Window {
    Window::new(vec![WindowAxis::new(1, 1); 2])
}

fn padded() -> Window {
    Window::new(vec![WindowAxis { before: 1, after: 1, ..WindowAxis::new(3, 1) }; 2])
}

/// The first layer makes `x + 2`, which is always on, and `x`. The second one's first three channels are at each
/// position `relu(x) - (x + 2) + 0.9`, which is always off; its negative, always on; and `relu(x) - (x + 2) + 1.1`,
/// which can be either. Intervals see none of that. A third layer reads the first two, one of which is 0.
fn planted(way: Way) -> Result<Network, NetworkError> {
    let mut builder = Network::builder(Shape::new([1, 4, 5])?);
    let first = Convolution::new(point(), 1, 2, vec![1.0, 1.0], Some(vec![2.0, 0.0]))?;
    let made = builder.add("conv1", first, &[ValueId::INPUT])?;
    let mut units = builder.add("relu1", Relu, &[made])?;
    match way {
        Way::Straight => {}
        Way::Residual => {
            let half = Convolution::new(point(), 2, 2, vec![0.5, 0.5], None)?;
            let [one, other] = ["half1", "half2"].map(|name| builder.add(name, half.clone(), &[units]));
            units = builder.add("sum", Sum, &[one?, other?])?;
        }
        Way::Joined => {
            let [one, other] = [(1.0, 0.0), (0.0, 1.0)].map(|(a, b)| {
                let part = Convolution::new(point(), 1, 1, vec![a, b], None)?;
                builder.add(format!("part{a}"), part, &[units])
            });
            units = builder.add("join", Concat::new(0, 2), &[one?, other?])?;
        }
        Way::Pooled => units = builder.add("max", MaxPool::new(point()), &[units])?,
    }
    let rows = vec![-1.0, 1.0, 1.0, -1.0, -1.0, 1.0];
    let second = Convolution::new(point(), 1, 3, rows, Some(vec![0.9, -0.9, 1.1]))?;
    let made = builder.add("conv2", second, &[units])?;
    let units = builder.add("relu2", Relu, &[made])?;
    // Off because the first channel before is.
    let kernel: Vec<f64> = (0..27).map(|index| if index < 9 { 1.0 } else { 0.0 }).collect();
    let third = Convolution::new(padded(), 1, 1, kernel, Some(vec![-0.01]))?;
    let made = builder.add("conv3", third, &[units])?;
    let units = builder.add("relu3", Relu, &[made])?;
    builder.finish(vec![units])
}

fn by<'a>(analysis: &'a Analysis<'_>, layer: usize) -> Vec<(Status, &'a str)> {
    let by = |unit: &'a Unit| (unit.status, unit.by.map_or("", |technique| technique.name));
    analysis.layers[layer].units.iter().map(by).collect()
}

#[test]
fn what_only_linear_bounds_decide_is_decided() -> Anything {
    for way in [Way::Straight, Way::Residual, Way::Joined, Way::Pooled] {
        let network = planted(way)?;
        let domain = Domain::uniform(20, -1.0, 1.0)?;
        let analysis = analyze(&network, &domain, &AnalysisOptions::default())?;
        let linear = [(Status::OFF, "linear"), (Status::ON, "linear"), (Status::Unstable, "witness")];
        assert_eq!(by(&analysis, 1), linear, "{way:?}");
        assert_eq!(by(&analysis, 2), [(Status::OFF, "linear")], "{way:?}: what follows from that");
        // Nothing is said of channels that follow by intervals from what linear bounds have shown.
        let told: Vec<_> =
            analysis.channel_bounds.iter().map(|b| (b.layer.index(), b.side, b.channels.clone())).collect();
        assert_eq!(told, [(1, Side::Upper, vec![0]), (1, Side::Lower, vec![1])], "{way:?}");
        let bounds = &analysis.channel_bounds;
        let again = ProvedBounds::<f64>::of_channels(&network, &domain, bounds, &())?;
        assert!(network.values().all(|value| again.range(value) == analysis.facts.range(value)), "{way:?}");
        ProvedBounds::<leo_check::Exact>::of_channels(&network, &domain, bounds, &())?;
        // Anything else is refused: another channel, the other side, and a bound that stops too early.
        for index in 0..bounds.len() {
            let mut changed = vec![bounds.clone(); 3];
            changed[0][index].channels = vec![2];
            changed[1][index].side = if bounds[index].side == Side::Upper { Side::Lower } else { Side::Upper };
            changed[2][index].first += 1;
            for (kind, changed) in changed.iter().enumerate() {
                assert!(ProvedBounds::<f64>::of_channels(&network, &domain, changed, &()).is_err(), "{way:?}, {kind}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_number_of_threads_does_not_show() -> Anything {
    let network = planted(Way::Residual)?;
    let domain = Domain::uniform(20, -1.0, 1.0)?;
    let on = |threads: usize| -> Anything<String> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        let analysis = pool.install(|| analyze(&network, &domain, &AnalysisOptions::default()))?;
        let units: Vec<_> = analysis.layers.iter().map(|layer| &layer.units).collect();
        Ok(format!("{units:?} {:?} {:?}", analysis.channel_bounds, analysis.facts.range(network.outputs()[0])))
    };
    let one = on(1)?;
    assert_eq!(one, on(2)?);
    assert_eq!(one, on(3)?);
    Ok(())
}
