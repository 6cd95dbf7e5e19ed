//! Applications that are written in Python, inside the simulator.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};
use marline_sim::batch::Batch;
use marline_sim::measure::Measure;
use marline_sim::scenario::{Load, Outside, WorkloadPlan};
use marline_sim::workload::{self, Pipe, Workload};
use marline_sim::{Duration, End, Instant};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

use crate::lend::Lent;
use crate::running;

/// Shortest time that an application can wait: what rounding leaves of a time in floating point
/// must not keep it at one moment for ever.
const LEAST_WAIT: Duration = Duration::from_micros(1);

/// A unit that arrived, or that is known not to arrive.
#[pyclass(module = "marline", frozen, get_all)]
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The number that `write` gave it.
    unit: u64,
    /// What `write` was given to remember.
    tag: u64,
    /// Its size (bytes).
    size: u64,
    /// When it was written (seconds from the start of the run).
    written: f64,
    /// It did not come and will not.
    lost: bool,
}

impl Delivery {
    fn of(delivery: &workload::Delivery) -> Self {
        Self {
            unit: delivery.unit,
            tag: delivery.tag,
            size: delivery.size,
            written: delivery.written.since(Instant::ZERO).as_secs_f64(),
            lost: delivery.lost,
        }
    }
}

/// What is lent to Python during a call.
struct Inside {
    cx: NonNull<workload::Context<'static>>,
    ask: Option<NonNull<Pipe>>,
    answer: Option<NonNull<Pipe>>,
}

/// What an application may see and use while it is called; not afterwards.
#[pyclass(module = "marline")]
pub struct Context(Lent<Inside>);

impl Context {
    fn cx(&mut self) -> PyResult<&mut workload::Context<'static>> {
        let inside = self.0.get()?;
        // SAFETY: as for what is lent: it lives until the call is over, and `&mut self` keeps
        // others from using it meanwhile.
        Ok(unsafe { inside.cx.as_mut() })
    }

    fn write_to(&mut self, back: bool, size: u64, tag: u64) -> PyResult<Option<u64>> {
        let inside = self.0.get()?;
        let pipe = if back { inside.answer } else { inside.ask };
        let mut pipe = pipe.ok_or_else(|| PyRuntimeError::new_err("the flow is not open"))?;
        // SAFETY: as above; the pipes and the context are different values.
        let (pipe, cx) = unsafe { (pipe.as_mut(), inside.cx.as_mut()) };
        Ok(pipe.write(cx, size, tag))
    }
}

#[pymethods]
impl Context {
    /// The present, in seconds from the start of the run.
    #[getter]
    fn now(&mut self) -> PyResult<f64> {
        Ok(self.cx()?.now().since(Instant::ZERO).as_secs_f64())
    }

    /// Writes a unit of this number of bytes. Its number, or None if the flow refuses it.
    #[pyo3(signature = (size, tag = 0))]
    fn write(&mut self, size: u64, tag: u64) -> PyResult<Option<u64>> {
        self.write_to(false, size, tag)
    }

    /// Writes a unit the other way, on the same flow, once something has arrived there.
    #[pyo3(signature = (size, tag = 0))]
    fn reply(&mut self, size: u64, tag: u64) -> PyResult<Option<u64>> {
        self.write_to(true, size, tag)
    }

    /// Has `wake` called after this time (seconds), at least a microsecond, so that time goes on.
    /// The earliest time asked for counts.
    fn wake_after(&mut self, seconds: f64) -> PyResult<()> {
        let after = Duration::try_from_secs_f64(seconds);
        let after =
            after.map_err(|error| PyValueError::new_err(format!("{seconds} s: {error}")))?;
        let cx = self.cx()?;
        cx.wake_at(cx.now() + after.max(LEAST_WAIT));
        Ok(())
    }

    /// A number from 0 to 1, of the run's own stream of random numbers: use it instead of
    /// `random`, so that a seed gives the same run again.
    fn uniform(&mut self) -> PyResult<f64> {
        Ok(self.cx()?.rng.uniform())
    }

    /// A random time of this mean, exponentially distributed.
    fn exponential(&mut self, mean: f64) -> PyResult<f64> {
        Ok(-mean * (1.0 - self.cx()?.rng.uniform()).ln())
    }

    /// Counts a delay (seconds ago to now) as `WORKLOAD.reply_delay`.
    fn replied(&mut self, begun: f64) -> PyResult<()> {
        let begun = Duration::try_from_secs_f64(begun);
        let begun = begun.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let cx = self.cx()?;
        let now = cx.now();
        cx.meter
            .delay(Measure::ReplyDelay, Instant::ZERO + begun, now);
        Ok(())
    }
}

/// An application whose methods are Python's.
struct InPython {
    plan: WorkloadPlan,
    object: Py<PyAny>,
    context: Py<Context>,
    ask: Option<Pipe>,
    answer: Option<Pipe>,
    has: Methods,
    deliveries: Vec<workload::Delivery>,
}

/// Which of the methods that may be left out it has.
#[derive(Clone, Copy)]
struct Methods {
    wake: bool,
    delivered: bool,
    answered: bool,
    stop: bool,
}

impl fmt::Debug for InPython {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InPython")
            .field("plan", &self.plan.name)
            .finish_non_exhaustive()
    }
}

impl InPython {
    fn call(
        &mut self,
        cx: &mut workload::Context<'_>,
        method: &str,
        delivery: Option<&workload::Delivery>,
    ) {
        let Some(control) = running::current() else {
            return;
        };
        if control.is_stopped() {
            return;
        }
        let mut inside = Inside {
            cx: NonNull::from(cx).cast(),
            ask: self.ask.as_mut().map(NonNull::from),
            answer: self.answer.as_mut().map(NonNull::from),
        };
        let called = Python::attach(|py| {
            self.context
                .borrow_mut(py)
                .0
                .lend(NonNull::from(&mut inside));
            let called = match delivery {
                None => self.object.call_method1(py, method, (&self.context,)),
                Some(delivery) => {
                    let delivery = Delivery::of(delivery);
                    self.object
                        .call_method1(py, method, (&self.context, delivery))
                }
            };
            self.context.borrow_mut(py).0.take_back();
            called.map(drop)
        });
        if let Err(error) = called {
            control.fail(error);
        }
    }

    /// Reads what came one way and hands it to the application.
    fn read(&mut self, cx: &mut workload::Context<'_>, back: bool) {
        let mut deliveries = std::mem::take(&mut self.deliveries);
        let pipe = if back {
            &mut self.answer
        } else {
            &mut self.ask
        };
        let Some(pipe) = pipe else { return };
        pipe.read(cx, &mut deliveries);
        let measure = match pipe.is_ordered() {
            true => Measure::InOrderDelay,
            false => Measure::PacketDelay,
        };
        for delivery in deliveries.drain(..) {
            if !back && !delivery.lost {
                let now = cx.now();
                cx.meter.delay(measure, delivery.written, now);
            }
            match back {
                false if self.has.delivered => self.call(cx, "delivered", Some(&delivery)),
                true if self.has.answered => self.call(cx, "answered", Some(&delivery)),
                _ => {}
            }
        }
        self.deliveries = deliveries;
    }
}

impl Workload for InPython {
    fn start(&mut self, cx: &mut workload::Context<'_>) -> Result<(), OpenError> {
        let ask = Pipe::open(cx, self.plan.from, &self.plan.flow)?;
        // Replies are only written to flows of messages and bytes, which have two directions.
        self.answer = self.has.answered.then(|| ask.back(&self.plan.flow));
        self.ask = Some(ask);
        self.call(cx, "start", None);
        Ok(())
    }

    fn wake(&mut self, cx: &mut workload::Context<'_>) {
        if self.has.wake {
            self.call(cx, "wake", None);
        }
    }

    fn on_event(&mut self, cx: &mut workload::Context<'_>, end: End, event: &Event) {
        let forward = end == self.plan.from;
        match event {
            Event::FlowWritable(_) => {
                let pipe = if forward {
                    &mut self.ask
                } else {
                    &mut self.answer
                };
                if let Some(pipe) = pipe {
                    pipe.on_writable(cx);
                }
            }
            Event::FlowReadable(_) => self.read(cx, forward),
            _ => {}
        }
    }

    fn stop(&mut self, cx: &mut workload::Context<'_>) {
        if self.has.stop {
            self.call(cx, "stop", None);
        }
    }

    fn finish(&mut self, cx: &mut workload::Context<'_>) {
        let mut lost = Vec::new();
        for pipe in [&mut self.ask, &mut self.answer].into_iter().flatten() {
            pipe.settle(cx, None, &mut lost);
        }
    }

    fn flows(&self) -> Vec<(FlowId, End)> {
        let pipes = self.ask.iter().chain(&self.answer);
        pipes.map(Pipe::sends).collect()
    }
}

/// What stands in where the application could not be made: the run is over.
#[derive(Debug)]
struct Nothing;

impl Workload for Nothing {
    fn start(&mut self, _: &mut workload::Context<'_>) -> Result<(), OpenError> {
        Ok(())
    }
    fn on_event(&mut self, _: &mut workload::Context<'_>, _: End, _: &Event) {}
    fn finish(&mut self, _: &mut workload::Context<'_>) {}
    fn flows(&self) -> Vec<(FlowId, End)> {
        Vec::new()
    }
}

fn make(factory: &Py<PyAny>, plan: &WorkloadPlan) -> PyResult<InPython> {
    Python::attach(|py| {
        let object = factory.call0(py)?.into_bound(py);
        let has = Methods {
            wake: object.hasattr("wake")?,
            delivered: object.hasattr("delivered")?,
            answered: object.hasattr("answered")?,
            stop: object.hasattr("stop")?,
        };
        Ok(InPython {
            plan: plan.clone(),
            context: Py::new(py, Context(Lent::none()))?,
            object: object.unbind(),
            ask: None,
            answer: None,
            has,
            deliveries: Vec::new(),
        })
    })
}

/// Puts applications of Python in the place of workloads of these names.
pub fn replace(batch: &mut Batch, workloads: &Bound<'_, PyAny>) -> PyResult<()> {
    let mapping = workloads.cast::<PyMapping>()?;
    for item in mapping.items()?.try_iter()? {
        let (name, factory): (Bound<'_, PyString>, Py<PyAny>) = item?.extract()?;
        let name = name.to_string();
        let factory = Arc::new(factory);
        let mut found = false;
        let mut known = Vec::new();
        let plans = batch
            .cells
            .iter_mut()
            .flat_map(|(_, scenario)| &mut scenario.sessions);
        for plan in plans.flat_map(|session| &mut session.workloads) {
            if plan.name == name {
                found = true;
                let factory = factory.clone();
                plan.load = Load::Outside(Outside::new(&name, move |plan| {
                    match make(&factory, plan) {
                        Ok(made) => Box::new(made),
                        Err(error) => {
                            if let Some(control) = running::current() {
                                control.fail(error);
                            }
                            Box::new(Nothing)
                        }
                    }
                }));
            }
            known.push(plan.name.clone());
        }
        if !found {
            known.sort();
            known.dedup();
            let known = known.join(", ");
            return Err(PyValueError::new_err(format!(
                "the scenario has no workload `{name}`; there are: {known}"
            )));
        }
    }
    Ok(())
}
