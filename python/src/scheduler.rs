//! Schedulers that are written in Python, inside the simulator.

use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use marline_proto::flow::Symbol as Piece;
use marline_proto::sched::{self, Choice, Entry, Feedback, Outcome, Scheduler, registry};
use marline_proto::wire::FlowKind;
use marline_sim::Instant;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::errors::ScenarioError;
use crate::lend::Lent;
use crate::running;

/// What makes the schedulers of a name.
static FACTORIES: Mutex<BTreeMap<&'static str, Py<PyAny>>> = Mutex::new(BTreeMap::new());

fn seconds(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_secs_f64()
}

/// One path as a scheduler sees it, at the time of the call. Times are in seconds, amounts in
/// bytes, rates in bits per second.
#[pyclass(module = "marline", frozen, get_all)]
#[derive(Clone, Debug)]
pub struct PathView {
    /// The number of the path in its session.
    id: u32,
    /// Congestion window.
    window: u64,
    /// Bytes sent and neither acknowledged nor lost.
    in_flight: u64,
    /// Bytes that leave on this path before what is queued now.
    queued: u64,
    /// Bytes of this flow that wait for this path.
    queued_own: u64,
    /// Smoothed round-trip time.
    srtt: f64,
    /// Mean deviation of the round-trip time.
    rtt_var: f64,
    /// Smallest round-trip time of the last 10 to 20 s.
    min_rtt: f64,
    /// Delivery rate.
    rate: f64,
    /// Fraction of packets lost lately.
    loss: f64,
    /// Smoothed forward delay beyond its minimum.
    queueing: f64,
    /// Largest symbol that fits one datagram.
    symbol: u32,
    /// Cost rank that the user gave; lower is cheaper.
    cost: u32,
    /// Bytes that the window still takes.
    room: u64,
    /// Has the window room for a whole symbol?
    has_room: bool,
    /// Expected time until a symbol of the largest size that is queued now has arrived.
    arrival: f64,
}

impl PathView {
    fn of(view: &sched::PathView) -> Self {
        Self {
            id: u32::try_from(view.id.0).unwrap_or(u32::MAX),
            window: view.window,
            in_flight: view.in_flight,
            queued: view.queued,
            queued_own: view.queued_own,
            srtt: view.srtt.as_secs_f64(),
            rtt_var: view.rtt_var.as_secs_f64(),
            min_rtt: view.min_rtt.as_secs_f64(),
            rate: view.rate.as_bps() as f64,
            loss: view.loss,
            queueing: view.queueing.as_secs_f64(),
            symbol: view.symbol,
            cost: view.cost,
            room: view.room(),
            has_room: view.has_room(),
            arrival: view.arrival(view.symbol).as_secs_f64(),
        }
    }
}

#[pymethods]
impl PathView {
    fn __repr__(&self) -> String {
        format!(
            "<marline.PathView {}: srtt {:.1} ms, {:.1} Mb/s, room {} B>",
            self.id,
            self.srtt * 1e3,
            self.rate / 1e6,
            self.room
        )
    }
}

/// A piece of a flow that was emitted.
#[pyclass(module = "marline", frozen)]
#[derive(Clone, Debug)]
pub struct Symbol(pub Piece);

#[pymethods]
impl Symbol {
    /// The unit that it belongs to: 0 in streams, the number of a message, block or object; of a
    /// repair symbol its own number.
    #[getter]
    fn unit(&self) -> u64 {
        self.0.unit
    }

    /// Where it begins in its unit, in bytes.
    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset
    }

    /// Its length in bytes.
    #[getter]
    fn len(&self) -> u32 {
        self.0.len
    }
}

/// One planning step of a flow: what a scheduler sees, and where its emissions go. It may be used
/// during the call of `plan` alone.
#[pyclass(module = "marline", name = "PlanningStep")]
#[derive(Debug)]
pub struct Plan(Lent<sched::Plan<'static>>);

impl Plan {
    fn index(&mut self, index: usize) -> PyResult<&mut sched::Plan<'static>> {
        let plan = self.0.get()?;
        match index < plan.paths().len() {
            true => Ok(plan),
            false => Err(PyIndexError::new_err(format!(
                "there are {} paths, none with index {index}",
                plan.paths().len()
            ))),
        }
    }
}

#[pymethods]
impl Plan {
    /// The present, in seconds from the start of the run.
    #[getter]
    fn now(&mut self) -> PyResult<f64> {
        Ok(seconds(self.0.get()?.now()))
    }

    /// The paths that may carry data now; their queues include what this step emitted.
    #[getter]
    fn paths(&mut self) -> PyResult<Vec<PathView>> {
        Ok(self.0.get()?.paths().iter().map(PathView::of).collect())
    }

    /// Length of the next symbol (bytes), or None if there is nothing to send.
    fn next_len(&mut self) -> PyResult<Option<u32>> {
        Ok(self.0.get()?.next_len())
    }

    /// Bytes that could be sent now, were there room.
    #[getter]
    fn unsent(&mut self) -> PyResult<u64> {
        Ok(self.0.get()?.unsent())
    }

    /// Emits the next symbol on the path at this index of `paths`.
    fn send(&mut self, index: usize) -> PyResult<Symbol> {
        let plan = self.index(index)?;
        if plan.next_len().is_none() {
            return Err(PyValueError::new_err(
                "there is nothing to send: ask next_len() first",
            ));
        }
        Ok(Symbol(plan.send(index)))
    }

    /// Emits a copy of a symbol on another path.
    fn copy(&mut self, index: usize, symbol: &Symbol) -> PyResult<()> {
        self.index(index)?.copy(index, symbol.0);
        Ok(())
    }

    /// Emits a repair symbol of the flow's streaming code, or None: the flow is not coded, there is
    /// nothing to repair, or the budget is spent.
    fn repair(&mut self, index: usize) -> PyResult<Option<Symbol>> {
        Ok(self.index(index)?.repair(index).map(Symbol))
    }

    /// Emits a repair symbol of a block or an object, or None if it has none left.
    fn repair_of(&mut self, unit: u64, index: usize) -> PyResult<Option<Symbol>> {
        Ok(self.index(index)?.repair_of(unit, index).map(Symbol))
    }

    /// The units under way: (number, bytes left to emit, seconds to its deadline or None).
    fn units(&mut self) -> PyResult<Vec<(u64, u64, Option<f64>)>> {
        let plan = self.0.get()?;
        let now = seconds(plan.now());
        let units = plan.units().into_iter();
        let units =
            units.map(|unit| (unit.id, unit.len, unit.deadline.map(|at| seconds(at) - now)));
        Ok(units.collect())
    }

    /// Takes back all symbols of this flow that have not left yet; answers their bytes.
    fn take_back(&mut self) -> PyResult<u64> {
        Ok(self.0.get()?.take_back())
    }
}

/// A scheduler whose decisions are made in Python.
struct InPython {
    object: Py<PyAny>,
    step: Py<Plan>,
    takes_feedback: bool,
    awaits_room: bool,
    codes: bool,
}

impl fmt::Debug for InPython {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InPython").finish_non_exhaustive()
    }
}

/// What stands in where one could not be made: it sends nothing, and the run is over.
#[derive(Debug)]
struct None_;

impl Scheduler for None_ {
    fn plan(&mut self, _: &mut sched::Plan<'_>) {}
}

fn make(choice: &Choice) -> Box<dyn Scheduler> {
    let made = Python::attach(|py| {
        let factories = FACTORIES.lock().unwrap_or_else(PoisonError::into_inner);
        let factory = factories
            .get(choice.name())
            .map(|factory| factory.clone_ref(py));
        drop(factories);
        let factory = factory.ok_or_else(|| PyValueError::new_err("no such scheduler"))?;
        let object = factory.call0(py)?.into_bound(py);
        let flag = |name: &str| -> PyResult<bool> {
            let value = object.getattr_opt(name)?;
            value.map_or(Ok(false), |value| value.is_truthy())
        };
        Ok(InPython {
            step: Py::new(py, Plan(Lent::none()))?,
            takes_feedback: object.hasattr("on_feedback")?,
            awaits_room: flag("awaits_room")?,
            codes: flag("codes")?,
            object: object.unbind(),
        })
    });
    match made {
        Ok(scheduler) => Box::new(scheduler),
        Err(error) => {
            fail(error);
            Box::new(None_)
        }
    }
}

/// Ends the run on this thread, and those beside it.
fn fail(error: PyErr) {
    if let Some(control) = running::current() {
        control.fail(error);
    }
}

impl Scheduler for InPython {
    fn plan(&mut self, plan: &mut sched::Plan<'_>) {
        if running::current().is_none_or(|control| control.is_stopped()) {
            return;
        }
        let called = Python::attach(|py| {
            let pointer = NonNull::from(plan).cast::<sched::Plan<'static>>();
            self.step.borrow_mut(py).0.lend(pointer);
            let called = self.object.call_method1(py, "plan", (&self.step,));
            self.step.borrow_mut(py).0.take_back();
            called.map(drop)
        });
        if let Err(error) = called {
            fail(error);
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        if !self.takes_feedback || running::current().is_none_or(|control| control.is_stopped()) {
            return;
        }
        let outcome = match feedback.outcome {
            Outcome::Sent => "sent",
            Outcome::Acked => "acked",
            Outcome::Lost => "lost",
            Outcome::Recovered => "recovered",
        };
        let called = Python::attach(|py| {
            let symbol = Symbol(feedback.symbol);
            let path = u32::try_from(feedback.path.0).unwrap_or(u32::MAX);
            let arguments = (seconds(now), symbol, path, outcome, seconds(feedback.sent));
            let called = self.object.call_method1(py, "on_feedback", arguments);
            called.map(drop)
        });
        if let Err(error) = called {
            fail(error);
        }
    }

    fn awaits_room(&self) -> bool {
        self.awaits_room
    }

    fn codes(&self) -> bool {
        self.codes
    }
}

/// The kinds of flows by name.
const KINDS: [(&str, FlowKind); 4] = [
    ("stream", FlowKind::Stream),
    ("packets", FlowKind::Packets),
    ("blocks", FlowKind::Blocks),
    ("objects", FlowKind::Objects),
];

/// Makes a scheduler that is written in Python known by a name, for as long as the process lasts.
/// The same name again replaces it, for runs that begin later.
///
/// `factory()` is called for each flow and answers an object with `plan(step)`; see
/// :class:`Scheduler`. The name is written wherever a scheduler's is.
///
/// >>> import marline
/// >>> class First:
/// ...     "The first path that has room."
/// ...     def plan(self, step):
/// ...         while step.next_len() is not None:
/// ...             open = [i for i, path in enumerate(step.paths) if path.has_room]
/// ...             if not open:
/// ...                 return
/// ...             step.send(open[0])
/// >>> marline.add_scheduler("first", First)
/// >>> results = marline.run("examples/link-death", schedulers=["first"], seeds=1, duration="3s")
/// >>> results.schedulers
/// ['first']
#[pyfunction]
#[pyo3(signature = (name, factory, *, kinds = None, help = None))]
pub fn add_scheduler(
    name: &str,
    factory: Py<PyAny>,
    kinds: Option<Vec<String>>,
    help: Option<&str>,
) -> PyResult<()> {
    let well_formed = name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if name.is_empty() || !well_formed || name == sched::AUTO {
        return Err(PyValueError::new_err(format!(
            "`{name}`: a scheduler's name has small letters, digits and hyphens, as min-rtt"
        )));
    }
    let mut factories = FACTORIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = factories.get_mut(name) {
        *known = factory;
        return Ok(());
    }
    let wanted = kinds.unwrap_or_else(|| vec!["stream".to_owned(), "packets".to_owned()]);
    let mut found = Vec::new();
    for word in &wanted {
        let kind = KINDS.iter().find(|(name, _)| name == word);
        let kind = kind.ok_or_else(|| {
            PyValueError::new_err(format!(
                "`{word}` is no kind of flow; there are stream, packets, blocks and objects"
            ))
        })?;
        found.push(kind.1);
    }
    // Entries last as long as the process, and there are as many as names.
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let help = help
        .unwrap_or("written in Python")
        .to_owned()
        .into_boxed_str();
    let entry: &'static Entry = Box::leak(Box::new(Entry {
        name,
        publication: "written in Python",
        help: Box::leak(help),
        kinds: Box::leak(found.into_boxed_slice()),
        options: &[],
        new: make,
    }));
    registry::add(&[entry]).map_err(ScenarioError::of)?;
    factories.insert(name, factory);
    Ok(())
}

/// The schedulers by name: what each does.
#[pyfunction]
pub fn schedulers() -> BTreeMap<String, String> {
    let all = registry::all().map(|entry| (entry.name.to_owned(), entry.help.to_owned()));
    all.collect()
}
