"""Drives a sweep: what is missing is cut into tasks, an engine makes them, each run counts once."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from .._marline import Plan, Results, Scenario
from .engine import Attempt, Engine, Outcome, Task
from .store import Store

MOST_RUNS = 256
"""Runs of a task at most: what a killed worker loses is made again in little time."""

TASKS_A_WORKER = 16
"""Tasks that each worker gets, about: the last ones end nearly together."""


class SweepError(Exception):
    """Runs of a sweep could not be made, however often they were tried. What was made is kept."""


@dataclass(frozen=True)
class Progress:
    """How far a sweep is."""

    over: int
    """Runs that are over, with those that were there already."""
    total: int
    """Runs of the plan."""
    seconds_left: float | None
    """Time to go, by the time that the runs so far took; None before the first."""

    def __str__(self) -> str:
        if self.seconds_left is None:
            left = ""
        elif self.seconds_left < 90:
            left = f", {self.seconds_left:.0f} s left"
        elif self.seconds_left < 5400:
            left = f", {self.seconds_left / 60:.0f} min left"
        else:
            left = f", {self.seconds_left / 3600:.1f} h left"
        return f"{self.over} of {self.total} runs{left}"


def sweep(
    plan: Plan | Scenario | str | PathLike[str],
    engine: str | Engine = "local",
    *,
    out: str | PathLike[str] | None = None,
    workers: int | None = None,
    retries: int = 3,
    chunk: int | None = None,
    setup: str | None = None,
    progress: bool | Callable[[Progress], object] = False,
    **options: Any,
) -> Results:
    """Makes the runs of a plan on an engine; the results do not depend on which.

    `plan` is a plan, the name of its file, or a scenario. `engine` is "local" (threads of this
    process), "ray", "dask", "slurm", or an object of your own (:class:`marline.sweeps.Engine`).

    With `out`, a folder, finished runs are kept there: a sweep that was stopped, however, goes on
    where it was, and at the end the folder holds `runs.jsonl`, which `marline sim sweep --plan`
    takes back, and the results as Parquet. "slurm" needs such a folder on a disk that all nodes
    share.

    A task that fails is tried again elsewhere, `retries` times. `setup` names a module that workers
    import first, for schedulers written in Python; of such a scheduler only the name distinguishes
    its runs from those of another. `progress` is True, for a line on standard error, or a function.
    `options` are the engine's: `address` of Ray and Dask, `sbatch` (list of flags) and others of
    Slurm.

    >>> import marline
    >>> scenario = marline.Scenario({
    ...     "duration": "1s",
    ...     "schedulers": ["min-rtt", "edpf"],
    ...     "links": {"a": {"rate": "6mbit"}, "b": {"rate": "6mbit"}},
    ...     "workloads": [{"kind": "constant", "rate": "8mbit"}],
    ... })
    >>> results = marline.sweep(marline.Plan(scenario, seeds=5), workers=2)
    >>> len(results)
    10
    >>> results == marline.sweep(scenario.repeat(5), workers=1)
    True
    """
    opened, text = _read(plan)
    store = None if out is None else Store(Path(out), opened)
    kept: list[bytes] = []
    try:
        results, missing = opened.gather(kept if store is None else store.texts())
        if missing:
            made = _engine(engine, text, store, workers, setup, options)
            try:
                tasks = _tasks(missing, chunk or _chunk(len(missing), made.workers))
                report = _reporter(progress, len(opened), len(opened) - len(missing))
                _drive(made, tasks, retries, store, kept, report)
            finally:
                made.close()
            results, missing = opened.gather(kept if store is None else store.texts())
        if missing:
            raise SweepError(f"{len(missing)} runs were not made: run the sweep again to go on")
        if store is not None:
            store.finish(opened, results)
        return results
    finally:
        if store is not None:
            store.close()


def _read(plan: Plan | Scenario | str | PathLike[str]) -> tuple[Plan, str]:
    if isinstance(plan, Scenario):
        plan = Plan(plan)
    if isinstance(plan, Plan):
        return plan, plan.to_json()
    text = Path(plan).read_text(encoding="utf-8")
    return Plan.from_json(text), text


def _engine(
    engine: str | Engine,
    text: str,
    store: Store | None,
    workers: int | None,
    setup: str | None,
    options: dict[str, Any],
) -> Engine:
    if not isinstance(engine, str):
        return engine
    if engine == "local":
        from .local import Local

        return Local(text, workers, setup, **options)
    if engine == "ray":
        from .ray import Ray

        return Ray(text, workers, setup, **options)
    if engine == "dask":
        from .dask import Dask

        return Dask(text, workers, setup, **options)
    if engine == "slurm":
        from .slurm import Slurm

        if store is None:
            raise ValueError("slurm needs `out`, a folder on a disk that all nodes share")
        return Slurm(text, workers, setup, store=store, **options)
    raise ValueError(f"no engine {engine!r}; there are local, ray, dask and slurm")


def _chunk(runs: int, workers: int) -> int:
    return max(1, min(MOST_RUNS, runs // (workers * TASKS_A_WORKER)))


def _tasks(runs: Sequence[int], size: int) -> list[Task]:
    starts = range(0, len(runs), size)
    return [Task(n, tuple(runs[at : at + size])) for n, at in enumerate(starts)]


def _drive(
    engine: Engine,
    tasks: Sequence[Task],
    retries: int,
    store: Store | None,
    kept: list[bytes],
    report: Callable[[int], None],
) -> None:
    failed_at: dict[int, list[str]] = {task.number: [] for task in tasks}
    open_tasks = {task.number for task in tasks}
    errors: list[str] = []
    over = 0
    engine.start([Attempt(task) for task in tasks])
    while open_tasks:
        again: list[Attempt] = []
        for outcome in engine.wait():
            number = outcome.task.number
            if number not in open_tasks:
                continue  # It was made twice: the first one counts.
            if outcome.lines is not None:
                if store is not None:
                    store.add(outcome.task.runs, outcome.lines)
                else:
                    kept.append(outcome.lines)
                open_tasks.discard(number)
                over += len(outcome.task.runs)
                report(over)
                continue
            failed_at[number].append(outcome.where or "")
            if len(failed_at[number]) > retries:
                open_tasks.discard(number)
                errors.append(_why(outcome))
            else:
                again.append(Attempt(outcome.task, failed_at[number]))
        if again:
            engine.start(again)
    if errors:
        raise SweepError(f"{len(errors)} tasks failed more than {retries} times; {errors[0]}")


def _why(outcome: Outcome) -> str:
    runs = outcome.task.runs
    return f"runs {runs[0]} to {runs[-1]}: {outcome.error}"


def _reporter(
    progress: bool | Callable[[Progress], object], total: int, before: int
) -> Callable[[int], None]:
    began = time.monotonic()

    def report(over: int) -> None:
        left = (total - before - over) * (time.monotonic() - began) / over if over else None
        state = Progress(before + over, total, left)
        if callable(progress):
            progress(state)
        elif progress:
            end = "\n" if state.over == total else ""
            print(f"\r\x1b[K{state}", end=end, file=sys.stderr, flush=True)

    report(0)
    return report
