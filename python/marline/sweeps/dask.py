"""The engine "dask"."""

from collections.abc import Sequence
from queue import Queue
from typing import Any

from .engine import Attempt, Outcome, Task


def _work(text: str, runs: tuple[int, ...], setup: str | None) -> bytes:
    from marline.sweeps.work import make

    return make(text, runs, setup)


class Dask:
    """Makes tasks on a Dask cluster: that of `client`, the one at `address`, or a new one with
    `workers` processes on this machine."""

    def __init__(
        self,
        text: str,
        workers: int | None,
        setup: str | None,
        *,
        address: str | None = None,
        client: Any = None,
    ) -> None:
        try:
            import distributed
        except ImportError as error:
            raise ImportError("dask is not installed: pip install 'marline[dask]'") from error
        self._cluster: Any = None
        self._owned = client is None
        if client is None and address is None:
            self._cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None
            )
            client = distributed.Client(self._cluster)
        elif client is None:
            client = distributed.Client(address)
        self._client: Any = client
        threads: dict[str, int] = client.nthreads()
        self.workers = max(1, sum(threads.values()))
        self._text = client.scatter(text, broadcast=True)
        self._setup = setup
        self._done: Queue[Any] = Queue()
        self._waiting: list[Attempt] = []
        self._tasks: dict[Any, Task] = {}

    def _fill(self) -> None:
        while self._waiting and len(self._tasks) < 2 * self.workers:
            attempt = self._waiting.pop(0)
            where: dict[str, Any] = {}
            if attempt.failed_at:
                alive = list(self._client.scheduler_info(n_workers=-1)["workers"])
                others = [worker for worker in alive if worker not in attempt.failed_at]
                if others:
                    where = {"workers": others, "allow_other_workers": True}
            future = self._client.submit(
                _work, self._text, attempt.task.runs, self._setup, pure=False, **where
            )
            self._tasks[future.key] = attempt.task
            future.add_done_callback(self._done.put)

    def start(self, attempts: Sequence[Attempt]) -> None:
        self._waiting.extend(attempts)
        self._fill()

    def wait(self) -> list[Outcome]:
        future = self._done.get()
        task = self._tasks.pop(future.key)
        try:
            outcome = Outcome(task, lines=future.result())
        except Exception as error:  # Whatever a worker raised, or its end.
            worker = getattr(getattr(error, "last_worker", None), "address", None)
            outcome = Outcome(task, error=repr(error), where=worker)
        future.release()
        self._fill()
        return [outcome]

    def close(self) -> None:
        self._tasks.clear()
        if self._owned:
            self._client.close()
        if self._cluster is not None:
            self._cluster.close()
