"""Several unreliable links bonded into one low-latency connection, for Python.

The simulator (:func:`run`, :func:`repro`, :class:`Scenario`), sweeps on many machines
(:func:`sweep`), schedulers and applications written in Python (:func:`add_scheduler`,
:class:`Scheduler`, :class:`Workload`), the codes (:mod:`marline.codes`), plots
(:mod:`marline.plot`), a gymnasium environment (:mod:`marline.gym`), and a client and a server for
asyncio (:func:`connect`, :func:`serve`).

Nothing else is imported unless it is asked for: pandas, polars, pyarrow, matplotlib, gymnasium, ray
and dask are extras of the package.
"""

from ._marline import (
    Connection,
    Context,
    Delivery,
    Identity,
    Packets,
    PathView,
    Plan,
    PlanningStep,
    Results,
    RunError,
    Scenario,
    ScenarioError,
    Server,
    Session,
    Stream,
    Symbol,
    Table,
    __version__,
    add_scheduler,
    connect,
    experiments,
    repro,
    run,
    schedulers,
    serve,
)
from .protocols import Scheduler, Workload
from .sweeps import Progress, SweepError, sweep

__all__ = [
    "Connection",
    "Context",
    "Delivery",
    "Identity",
    "Packets",
    "PathView",
    "Plan",
    "PlanningStep",
    "Progress",
    "Results",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Scheduler",
    "Server",
    "Session",
    "Stream",
    "SweepError",
    "Symbol",
    "Table",
    "Workload",
    "__version__",
    "add_scheduler",
    "connect",
    "experiments",
    "repro",
    "run",
    "schedulers",
    "serve",
    "sweep",
]
