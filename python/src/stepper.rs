//! A run that stops at each decision and asks: the core of the gymnasium environment.
//!
//! The simulator runs on a thread of its own and hands over what it sees by a channel; no Python
//! runs there.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use marline_proto::flow::Symbol;
use marline_proto::sched::{Entry, PathView, Plan, Scheduler, registry};
use marline_proto::wire::{FlowId, FlowKind};
use marline_proto::{Event, OpenError};
use marline_sim::batch::Job;
use marline_sim::measure::Measure;
use marline_sim::results::{FORMAT, Results as Plain, Run};
use marline_sim::scenario::{Cell, Load, Outside, WorkloadPlan};
use marline_sim::workload::{self, Context, Pipe, Workload};
use marline_sim::{End, Instant, Rate};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::ScenarioError;
use crate::results::Results;
use crate::running::{self, Control};
use crate::scenario::Scenario;

/// Numbers that are shown of each path.
const OF_PATH: usize = 9;
/// Numbers that are shown besides.
const BESIDES: usize = 2;

/// What is done at a decision.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Nothing more leaves now.
    Wait,
    Send(usize),
    Copy(usize),
    Repair(usize),
}

/// The time, and what is seen at it.
type Shown = (f64, Vec<f64>);

/// A decision to make.
struct Question {
    now: f64,
    seen: Vec<f64>,
}

/// The scheduler's end of the channels.
struct Ends {
    ask: Sender<Question>,
    answer: Receiver<Action>,
    paths: usize,
}

thread_local! {
    static ENDS: RefCell<Option<Ends>> = const { RefCell::new(None) };
}

/// Asks, and waits for the answer; `Wait` if nobody answers any more.
fn ask(question: impl FnOnce(usize) -> Question) -> Action {
    ENDS.with_borrow(|ends| {
        let Some(ends) = ends else {
            return Action::Wait;
        };
        if ends.ask.send(question(ends.paths)).is_err() {
            return Action::Wait;
        }
        ends.answer.recv().unwrap_or(Action::Wait)
    })
}

#[derive(Debug)]
struct Stepped {
    codes: bool,
    last: Option<Symbol>,
}

/// The number of a path among those of the scenario, which join in order.
fn number(view: &PathView) -> usize {
    usize::try_from(view.id.0).unwrap_or(usize::MAX)
}

fn seen(plan: &Plan<'_>, paths: usize) -> Vec<f64> {
    let mut seen = vec![0.0; paths * OF_PATH + BESIDES];
    for view in plan.paths() {
        let at = number(view).saturating_mul(OF_PATH);
        let Some(slot) = seen.get_mut(at..at + OF_PATH) else {
            continue;
        };
        if at >= paths * OF_PATH {
            continue;
        }
        slot.copy_from_slice(&[
            if view.has_room() { 1.0 } else { 0.5 },
            view.arrival(view.symbol).as_secs_f64(),
            view.srtt.as_secs_f64(),
            view.min_rtt.as_secs_f64(),
            view.rtt_var.as_secs_f64(),
            view.rate.as_bps() as f64,
            view.loss,
            view.room() as f64,
            view.in_flight as f64 + view.queued as f64,
        ]);
    }
    seen[paths * OF_PATH] = plan.unsent() as f64;
    seen[paths * OF_PATH + 1] = plan.next_len().map_or(0.0, f64::from);
    seen
}

impl Scheduler for Stepped {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        loop {
            let has_room = plan.paths().iter().any(PathView::has_room);
            if !has_room || plan.next_len().is_none() {
                return;
            }
            let now = plan.now().since(Instant::ZERO).as_secs_f64();
            let action = ask(|paths| Question {
                now,
                seen: seen(plan, paths),
            });
            let index = |wanted: usize| plan.paths().iter().position(|path| number(path) == wanted);
            match action {
                Action::Wait => return,
                Action::Send(path) => match index(path) {
                    Some(index) => self.last = Some(plan.send(index)),
                    None => return,
                },
                Action::Copy(path) => match index(path).zip(self.last) {
                    Some((index, symbol)) => plan.copy(index, symbol),
                    None => return,
                },
                Action::Repair(path) => {
                    // Where there is nothing to repair it would be asked for ever.
                    if index(path).and_then(|index| plan.repair(index)).is_none() {
                        return;
                    }
                }
            }
        }
    }

    fn awaits_room(&self) -> bool {
        true
    }

    fn codes(&self) -> bool {
        self.codes
    }
}

/// Schedulers whose every decision is asked for: without and with repair symbols.
static STEPPED: [Entry; 2] = [
    Entry {
        name: "stepped",
        publication: "the gymnasium environment",
        help: "asks for every decision; runs in the environment alone",
        kinds: &[FlowKind::Stream, FlowKind::Packets],
        options: &[],
        new: |_| {
            Box::new(Stepped {
                codes: false,
                last: None,
            })
        },
    },
    Entry {
        name: "stepped-coded",
        publication: "the gymnasium environment",
        help: "the same of a flow that is coded",
        kinds: &[FlowKind::Stream, FlowKind::Packets],
        options: &[],
        new: |_| {
            Box::new(Stepped {
                codes: true,
                last: None,
            })
        },
    },
];

/// Delays of units that arrived since they were asked for (seconds); infinite of lost ones.
type Arrived = Arc<Mutex<Vec<f64>>>;

/// Units of one size at a constant rate, as the workload `constant`, and a note of each arrival.
#[derive(Debug)]
struct Noted {
    plan: WorkloadPlan,
    rate: Rate,
    size: u32,
    arrived: Arrived,
    pipe: Option<Pipe>,
    began: Instant,
    written: u64,
    over: bool,
    deliveries: Vec<workload::Delivery>,
}

impl Noted {
    fn due(&self) -> Instant {
        self.began + self.rate.time_for(self.written * u64::from(self.size))
    }

    fn note(&self, delay: f64) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.push(delay);
    }
}

impl Workload for Noted {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        self.began = cx.now();
        self.pipe = Some(Pipe::open(cx, self.plan.from, &self.plan.flow)?);
        self.wake(cx);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        while !self.over && self.due() <= cx.now() {
            let Some(pipe) = &mut self.pipe else { return };
            let refused = pipe.write(cx, u64::from(self.size), 0).is_none();
            self.written += 1;
            if refused {
                self.note(f64::INFINITY);
            }
        }
        if !self.over {
            cx.wake_at(self.due());
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, _: End, event: &Event) {
        let Some(pipe) = &mut self.pipe else { return };
        match event {
            Event::FlowWritable(_) => pipe.on_writable(cx),
            Event::FlowReadable(_) => {
                pipe.read(cx, &mut self.deliveries);
                let measure = match pipe.is_ordered() {
                    true => Measure::InOrderDelay,
                    false => Measure::PacketDelay,
                };
                for delivery in std::mem::take(&mut self.deliveries) {
                    let now = cx.now();
                    if delivery.lost {
                        self.note(f64::INFINITY);
                    } else {
                        cx.meter.delay(measure, delivery.written, now);
                        self.note(now.since(delivery.written).as_secs_f64());
                    }
                }
            }
            _ => {}
        }
    }

    fn stop(&mut self, _: &mut Context<'_>) {
        self.over = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(pipe) = &mut self.pipe {
            pipe.settle(cx, None, &mut self.deliveries);
        }
    }

    fn flows(&self) -> Vec<(FlowId, End)> {
        self.pipe.iter().map(Pipe::sends).collect()
    }
}

/// A run under way, on its thread.
struct UnderWay {
    control: Arc<Control>,
    answer: Sender<Action>,
    question: Mutex<Receiver<Question>>,
    thread: JoinHandle<Option<Run>>,
}

/// A run that asks for every decision of its schedulers. `marline.gym` makes an environment of it.
#[pyclass(module = "marline")]
pub struct Stepper {
    under_way: Option<UnderWay>,
    arrived: Arrived,
    title: String,
    file: String,
    run: Option<Run>,
    /// Paths of the session.
    #[pyo3(get)]
    paths: usize,
}

fn registered() -> PyResult<()> {
    static ONCE: OnceLock<Result<(), String>> = OnceLock::new();
    let added = ONCE.get_or_init(|| {
        let added = registry::add(&[&STEPPED[0], &STEPPED[1]]);
        added.map_err(|error| error.to_string())
    });
    added.clone().map_err(ScenarioError::of)
}

#[pymethods]
impl Stepper {
    /// Begins the run of a scenario's first cell. `workload` is the one whose arrivals are noted;
    /// it has to be of the kind `constant`.
    #[new]
    #[pyo3(signature = (scenario, seed, workload, *, coded = false))]
    fn new(scenario: &Bound<'_, PyAny>, seed: u64, workload: &str, coded: bool) -> PyResult<Self> {
        registered()?;
        let source = Scenario::of(scenario)?;
        let mut checked = source.first()?;
        let arrived = Arrived::default();
        let sessions = checked.sessions.iter_mut();
        let mut found = sessions.flat_map(|session| &mut session.workloads);
        let found = found.find(|plan| plan.name == workload);
        let plan = found.ok_or_else(|| {
            PyValueError::new_err(format!("the scenario has no workload `{workload}`"))
        })?;
        let Load::Constant { rate, size } = plan.load else {
            return Err(PyValueError::new_err(format!(
                "the workload `{workload}` is not of the kind constant, whose units are noted"
            )));
        };
        let notes = arrived.clone();
        plan.load = Load::Outside(Outside::new(workload, move |plan| {
            Box::new(Noted {
                plan: plan.clone(),
                rate,
                size,
                arrived: notes.clone(),
                pipe: None,
                began: Instant::ZERO,
                written: 0,
                over: false,
                deliveries: Vec::new(),
            })
        }));
        let paths = checked
            .sessions
            .first()
            .map_or(0, |session| session.paths.len());
        let name = STEPPED[usize::from(coded)].name;
        marline_sim::run::check(&checked, name).map_err(ScenarioError::of)?;
        let (ask, question) = channel();
        let (answer, answers) = channel();
        let control = Arc::new(Control::default());
        let (title, shared) = (checked.title.clone(), control.clone());
        let thread = std::thread::spawn(move || {
            ENDS.set(Some(Ends {
                ask,
                answer: answers,
                paths,
            }));
            let cell = Cell::new();
            let job = Job {
                cell: &cell,
                scenario: &checked,
                scheduler: name,
                seed,
            };
            let run = running::one(&job, &shared);
            // The channel closes, so that who waits for a question sees the end.
            ENDS.set(None);
            run
        });
        Ok(Self {
            under_way: Some(UnderWay {
                control,
                answer,
                question: Mutex::new(question),
                thread,
            }),
            arrived,
            title,
            file: source.file().to_owned(),
            run: None,
            paths,
        })
    }

    /// The next decision: the time, what is seen, and the delays of units that arrived since the
    /// last one (infinite of lost ones). None at the end of the run.
    fn question(&mut self, py: Python<'_>) -> PyResult<(Option<Shown>, Vec<f64>)> {
        let Some(under_way) = &self.under_way else {
            return Ok((None, Vec::new()));
        };
        let question = py.detach(|| {
            let question = under_way.question.lock();
            question.unwrap_or_else(PoisonError::into_inner).recv().ok()
        });
        if question.is_none() {
            self.end(py)?;
        }
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let arrived = std::mem::take(&mut *arrived);
        Ok((
            question.map(|question| (question.now, question.seen)),
            arrived,
        ))
    }

    /// Answers it: `what` is 0 (send), 1 (copy the last symbol), 2 (a repair symbol) or 3 (nothing
    /// more now), `path` the number of a path.
    fn answer(&self, what: u8, path: usize) -> PyResult<()> {
        let action = match what {
            0 => Action::Send(path),
            1 => Action::Copy(path),
            2 => Action::Repair(path),
            3 => Action::Wait,
            _ => return Err(PyValueError::new_err("there are the actions 0 to 3")),
        };
        if let Some(under_way) = &self.under_way {
            // The run may be over meanwhile; the next question says so.
            let _ = under_way.answer.send(action);
        }
        Ok(())
    }

    /// What the run measured, once it is over.
    fn results(&self) -> Option<Results> {
        let run = self.run.clone()?;
        Some(Results(Arc::new(Plain {
            format: FORMAT,
            title: self.title.clone(),
            file: self.file.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            runs: vec![run],
        })))
    }

    /// Ends the run.
    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Some(under_way) = &self.under_way {
            under_way.control.stop();
        }
        self.end(py)
    }
}

impl Stepper {
    fn end(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(UnderWay {
            control,
            answer,
            question,
            thread,
        }) = self.under_way.take()
        else {
            return Ok(());
        };
        // A run that waits for an answer goes on without one.
        drop((answer, question));
        self.run = py.detach(|| thread.join()).ok().flatten();
        match control.take_error() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        if let Some(under_way) = self.under_way.take() {
            under_way.control.stop();
            // The thread ends by itself: nobody answers, and its flag says stop.
        }
    }
}

/// How many numbers are seen of each path, and besides.
pub const SEEN: (usize, usize) = (OF_PATH, BESIDES);
