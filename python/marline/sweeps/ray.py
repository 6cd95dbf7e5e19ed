"""The engine "ray"."""

from collections.abc import Sequence
from typing import Any

from .engine import Attempt, Outcome, Task


def _work(text: str, runs: tuple[int, ...], setup: str | None) -> bytes:
    from marline.sweeps.work import make

    return make(text, runs, setup)


class Ray:
    """Makes tasks on a Ray cluster: the one that runs, the one at `address`, or a new one with
    `workers` processes on this machine.

    Ray's own retries are off: a task whose worker dies comes back as failed, and is handed out
    again, to another node if there is one.
    """

    def __init__(
        self, text: str, workers: int | None, setup: str | None, *, address: str | None = None
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError("ray is not installed: pip install 'marline[ray]'") from error
        self._ray: Any = ray
        self._owned = not ray.is_initialized()
        if self._owned:
            if address is None:
                ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
            else:
                ray.init(address=address, log_to_driver=False)
        cpus = int(ray.cluster_resources().get("CPU", 1))
        self.workers = min(workers, cpus) if workers else cpus
        self._text = ray.put(text)
        self._setup = setup
        self._work = ray.remote(max_retries=0, num_cpus=1)(_work)
        self._waiting: list[Attempt] = []
        self._tasks: dict[Any, tuple[Task, str]] = {}

    def _node(self, failed_at: Sequence[str]) -> str | None:
        """A node that the task has not failed on, if it has failed and there is one."""
        if not failed_at:
            return None
        alive = [node["NodeID"] for node in self._ray.nodes() if node["Alive"]]
        others = [node for node in alive if node not in failed_at]
        return others[0] if others else None

    def _fill(self) -> None:
        # Two a worker: the next one waits beside it while the driver is busy.
        while self._waiting and len(self._tasks) < 2 * self.workers:
            attempt = self._waiting.pop(0)
            work, node = self._work, self._node(attempt.failed_at)
            if node is not None:
                from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

                strategy = NodeAffinitySchedulingStrategy(node_id=node, soft=True)
                work = work.options(scheduling_strategy=strategy)
            reference = work.remote(self._text, attempt.task.runs, self._setup)
            self._tasks[reference] = (attempt.task, node or "")

    def start(self, attempts: Sequence[Attempt]) -> None:
        self._waiting.extend(attempts)
        self._fill()

    def wait(self) -> list[Outcome]:
        done, _ = self._ray.wait(list(self._tasks), num_returns=1)
        outcomes = []
        for reference in done:
            task, node = self._tasks.pop(reference)
            try:
                outcomes.append(Outcome(task, lines=self._ray.get(reference)))
            except self._ray.exceptions.RayError as error:
                where = getattr(error, "node_id", None) or node
                outcomes.append(Outcome(task, error=str(error), where=where))
        self._fill()
        return outcomes

    def close(self) -> None:
        for reference in self._tasks:
            self._ray.cancel(reference, force=True)
        self._tasks.clear()
        if self._owned:
            self._ray.shutdown()
