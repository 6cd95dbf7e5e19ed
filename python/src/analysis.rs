//! What codes and plans cost and give, in numbers: the streaming code's analysis, HOP's P_e, and
//! SOS's splits.

use marline_fec::analysis::{self, approximation};
use marline_proto::sched::normal::Table;
use marline_proto::sched::capacity::{Backlog, CapacityForecast, Lateness};
use marline_proto::sched::{hop, sos};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A frame of the streaming code over paths, whose last slot on one path carries the coded packet:
/// the analysis of S-EDPF, section 3.
///
/// `paths` are (loss, slots, slot_time); `coded` is the index of the path of the coded packet.
///
/// >>> import marline.codes
/// >>> frame = marline.codes.Frame([(0.01, 10, 1.0), (0.05, 5, 2.0)], coded=1)
/// >>> frame.interval, round(frame.load, 3)
/// (15, 0.35)
/// >>> abs(sum(frame.distribution(200)) - 1) < 1e-9
/// True
#[pyclass(module = "marline.codes", frozen)]
#[derive(Debug)]
pub struct Frame(analysis::Frame);

#[pymethods]
impl Frame {
    #[new]
    fn new(paths: Vec<(f64, u32, f64)>, coded: usize) -> PyResult<Self> {
        let paths = paths.into_iter();
        let paths = paths.map(|(loss, slots, slot_time)| analysis::Path {
            loss,
            slots,
            slot_time,
        });
        let paths: Vec<_> = paths.collect();
        analysis::Frame::new(&paths, coded).map(Self).map_err(wrong)
    }

    /// τ: the slots of a frame, the coded packet's included.
    #[getter]
    fn interval(&self) -> usize {
        self.0.interval()
    }

    /// Slots that a frame loses in the mean; from 1 on decoding periods never end.
    #[getter]
    fn load(&self) -> f64 {
        self.0.load()
    }

    /// P(S = 0): no information packet is lost.
    #[getter]
    fn idle(&self) -> f64 {
        self.0.idle()
    }

    /// P(S = k) for k = 0 to `longest`, in frames.
    fn distribution(&self, longest: usize) -> Vec<f64> {
        self.0.distribution(longest)
    }

    /// E[S]: the mean length of a decoding period, in frames.
    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// E[S²].
    #[getter]
    fn second_moment(&self) -> f64 {
        self.0.second_moment()
    }

    /// Bound of the mean buffering delay, in the unit of the slots (Theorem 3, corrected).
    #[getter]
    fn buffering_bound(&self) -> f64 {
        self.0.buffering_bound()
    }
}

/// The longest coding interval τ at which packets wait no longer than `wait` frames in the mean;
/// `information` and `coded` are the shares of these packets that are lost. None if nothing is
/// lost.
#[pyfunction]
pub fn coding_interval(information: f64, coded: f64, wait: f64) -> Option<u32> {
    analysis::interval(information, coded, wait)
}

/// How long packets wait in the mean (frames) where every `tau`-th packet is coded: a bound.
#[pyfunction]
pub fn coding_wait(tau: u32, information: f64, coded: f64) -> f64 {
    analysis::wait(tau, information, coded)
}

/// The index of the path for coded packets: the lossiest one (Theorem 4).
#[pyfunction]
pub fn coded_path(losses: Vec<f64>) -> Option<usize> {
    analysis::coded_path(losses)
}

/// The closed forms of the paper for equal paths: (mean, second moment) of the decoding period, in
/// frames.
#[pyfunction]
pub fn approximate_moments(interval: u32, loss: f64) -> (f64, f64) {
    (
        approximation::mean(interval, loss),
        approximation::second_moment(interval, loss),
    )
}

/// λ(0) … λ(most) of a path: the probability that its j-th packet of `packet` bits is late, where
/// its capacity (bit/s) is normal with this mean and deviation, `backlog` bits wait already, and
/// `window` seconds are left in which a packet can leave the bottleneck and be on time.
///
/// >>> import marline.codes
/// >>> late = marline.codes.hop_lateness(40e6, 8e6, window=0.0225, packet=12e3, most=100)
/// >>> late[0], round(late[75], 2)
/// (0.0, 0.5)
#[pyfunction]
#[pyo3(signature = (mean, deviation, *, window, packet, most, backlog = 0.0))]
pub fn hop_lateness(
    mean: f64,
    deviation: f64,
    window: f64,
    packet: f64,
    most: u32,
    backlog: f64,
) -> PyResult<Vec<f64>> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !positive(mean)
        || !positive(window)
        || !positive(packet)
        || deviation.is_nan()
        || deviation < 0.0
    {
        return Err(PyValueError::new_err(
            "mean, window and packet are above zero, deviation and backlog not below",
        ));
    }
    if most > 1_000_000 {
        return Err(PyValueError::new_err("at most 1000000 packets"));
    }
    let lateness = Lateness {
        backlog: Backlog::known(backlog.max(0.0)),
        capacity: CapacityForecast::normal(mean, deviation),
        window,
        slots: 1,
        packet,
    };
    Ok(lateness.all(&Table::new(), 1, most))
}

fn lanes(late: Vec<Vec<f64>>, losses: Option<Vec<f64>>, least: usize) -> PyResult<Vec<hop::Lane>> {
    let losses = losses.unwrap_or_else(|| vec![0.0; late.len()]);
    if losses.len() != late.len() {
        return Err(PyValueError::new_err(
            "a loss for each path, or none at all",
        ));
    }
    let probability = |p: &f64| (0.0..=1.0).contains(p);
    if !late.iter().flatten().chain(&losses).all(probability) {
        return Err(PyValueError::new_err("probabilities are from 0 to 1"));
    }
    let lanes = late.into_iter().zip(losses);
    let lanes =
        lanes.map(|(late, loss)| hop::Lane::from_values(late, Vec::new(), least).with_loss(loss));
    Ok(lanes.collect())
}

/// P_e of HOP (equation 4): the probability that fewer than `k` packets are on time if `packets[i]`
/// go on path i. `late[i][j]` is λ(j) of path i, with λ(0) = 0; `losses` are those of its packets.
///
/// >>> import marline.codes
/// >>> late = [[0, 0.01, 0.02, 0.5], [0, 0.1, 0.1, 0.1]]
/// >>> round(marline.codes.hop_failure(late, [2, 1], k=2), 6)
/// 0.011
#[pyfunction]
#[pyo3(signature = (late, packets, *, k, losses = None))]
pub fn hop_failure(
    late: Vec<Vec<f64>>,
    packets: Vec<usize>,
    k: usize,
    losses: Option<Vec<f64>>,
) -> PyResult<f64> {
    let lanes = lanes(late, losses, 0)?;
    if packets.len() != lanes.len() {
        return Err(PyValueError::new_err("a number of packets for each path"));
    }
    if let Some((lane, n)) = lanes
        .iter()
        .zip(&packets)
        .find(|(lane, n)| **n > lane.most())
    {
        let most = lane.most();
        return Err(PyValueError::new_err(format!(
            "{n} packets on a path of which λ is known for at most {most}"
        )));
    }
    Ok(hop::failure(&lanes, &packets, k))
}

/// JUMP (equation 1): the smallest schedule for a block of `k` packets that fails with probability
/// at most `target`: packets on each path, P_e, and whether it is reliable enough.
#[pyfunction]
#[pyo3(signature = (late, *, k, target, losses = None, tolerance = 0.0))]
pub fn hop_jump(
    late: Vec<Vec<f64>>,
    k: usize,
    target: f64,
    losses: Option<Vec<f64>>,
    tolerance: f64,
) -> PyResult<(Vec<usize>, f64, bool)> {
    let lanes = lanes(late, losses, 0)?;
    let useful: Vec<hop::Lane> = lanes.iter().map(|lane| lane.useful(k)).collect();
    let found = hop::jump(&useful, &hop::Order::new(&useful, tolerance), k, target);
    Ok((found.packets, found.failure, found.feasible))
}

/// LEAP (equation 7): the largest block that is reliable enough: its packets, and its schedule as
/// from `hop_jump`; None if not even one packet is.
#[pyfunction]
#[pyo3(signature = (late, *, target, losses = None, tolerance = 0.0))]
#[expect(clippy::type_complexity, reason = "it is a tuple of Python")]
pub fn hop_leap(
    late: Vec<Vec<f64>>,
    target: f64,
    losses: Option<Vec<f64>>,
    tolerance: f64,
) -> PyResult<Option<(usize, (Vec<usize>, f64, bool))>> {
    let found = hop::leap(&lanes(late, losses, 0)?, tolerance, target);
    Ok(found.map(|(k, found)| (k, (found.packets, found.failure, found.feasible))))
}

/// A path for `sos_split`: mean time between its arrivals μ, width w, delay P, packets ahead u.
type SosPath = (f64, f64, f64, f64);

fn sos_lanes(paths: Vec<SosPath>) -> Vec<sos::Lane> {
    let paths = paths.into_iter();
    let lanes = paths.map(|(mean, width, delay, ahead)| sos::Lane::new(mean, width, delay, ahead));
    lanes.collect()
}

/// SOS's split (equation 5): how many of an object's `n` packets go on each path, and when all have
/// arrived with high probability. Paths are (mean, width, delay, ahead), in any one unit of time: n
/// packets take (n + ahead)·mean + √(n + ahead)·width + delay.
///
/// >>> import marline.codes
/// >>> marline.codes.sos_split([(1.0, 0.0, 10.0, 0), (1.0, 0.0, 14.0, 0)], 20)
/// ([12, 8], 22.0)
#[pyfunction]
pub fn sos_split(paths: Vec<SosPath>, n: u32) -> (Vec<u32>, f64) {
    let split = sos::split(&sos_lanes(paths), n);
    (split.packets.to_vec(), split.bound)
}

/// SOS-FEC's split (equations 8 and 9): what goes on each path of an object that is decoded from
/// any `n` packets, with `gamma` from 0 (most redundancy) to 1 (none).
#[pyfunction]
pub fn sos_redundant(paths: Vec<SosPath>, n: u32, gamma: f64) -> (Vec<u32>, f64) {
    let split = sos::redundant(&sos_lanes(paths), n, gamma);
    (split.packets.to_vec(), split.bound)
}

/// w of a path whose packets' times have this deviation (by the normal distribution), or lie in a
/// range (by Hoeffding's bound), among `paths` paths that are late together with probability
/// `epsilon` (equation 2).
#[pyfunction]
#[pyo3(signature = (*, paths, epsilon = sos::EPSILON, deviation = None, range = None))]
pub fn sos_width(
    paths: usize,
    epsilon: f64,
    deviation: Option<f64>,
    range: Option<f64>,
) -> PyResult<f64> {
    let (width, deviation, range) = match (deviation, range) {
        (Some(deviation), None) => (sos::Width::Normal, deviation, 0.0),
        (None, Some(range)) => (sos::Width::Hoeffding, 0.0, range),
        _ => return Err(PyValueError::new_err("either a deviation or a range")),
    };
    let moments = sos::Moments {
        mean: 0.0,
        deviation,
        skewness: 0.0,
        min: 0.0,
        p95: range,
    };
    Ok(width.scale(epsilon, paths).spread(&moments))
}

/// Adds the module's functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Frame>()?;
    module.add_function(wrap_pyfunction!(coding_interval, module)?)?;
    module.add_function(wrap_pyfunction!(coding_wait, module)?)?;
    module.add_function(wrap_pyfunction!(coded_path, module)?)?;
    module.add_function(wrap_pyfunction!(approximate_moments, module)?)?;
    module.add_function(wrap_pyfunction!(hop_lateness, module)?)?;
    module.add_function(wrap_pyfunction!(hop_failure, module)?)?;
    module.add_function(wrap_pyfunction!(hop_jump, module)?)?;
    module.add_function(wrap_pyfunction!(hop_leap, module)?)?;
    module.add_function(wrap_pyfunction!(sos_split, module)?)?;
    module.add_function(wrap_pyfunction!(sos_redundant, module)?)?;
    module.add_function(wrap_pyfunction!(sos_width, module)?)
}
