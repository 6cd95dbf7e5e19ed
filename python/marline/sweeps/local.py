"""The engine "local": threads of this process."""

import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from .engine import Attempt, Outcome, Task
from .work import make, prepare


class Stopped(Exception):
    """The sweep is over before its end."""


class Local:
    """Makes tasks on threads, one a core unless `workers` says otherwise."""

    def __init__(self, text: str, workers: int | None, setup: str | None) -> None:
        prepare(setup)
        self.workers = workers or len(os.sched_getaffinity(0))
        self._text = text
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="marline-sweep")
        self._futures: dict[Future[bytes], Task] = {}
        self._stopped = False

    def _make(self, task: Task) -> bytes:
        def check() -> None:
            if self._stopped:
                raise Stopped

        return make(self._text, task.runs, check=check)

    def start(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._futures[self._pool.submit(self._make, attempt.task)] = attempt.task

    def wait(self) -> list[Outcome]:
        done, _ = wait(self._futures, return_when=FIRST_COMPLETED)
        outcomes = []
        for future in done:
            task = self._futures.pop(future)
            error = future.exception()
            if error is None:
                outcomes.append(Outcome(task, lines=future.result()))
            else:
                outcomes.append(Outcome(task, error=repr(error), where="local"))
        return outcomes

    def close(self) -> None:
        self._stopped = True
        self._pool.shutdown(wait=True, cancel_futures=True)
