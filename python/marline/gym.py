"""A gymnasium environment: schedule one flow, packet by packet, inside the simulator.

>>> import marline.gym  # doctest: +SKIP
>>> env = marline.gym.SchedulerEnv("examples/handover", workload="live")  # doctest: +SKIP

Each step is one decision: the flow has something to send, and some path has room for it. Time goes
on when the agent waits, or when nothing has room.
"""

from typing import Any

import numpy as np

from ._marline import SEEN, Results, Scenario, Stepper

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise ImportError("gymnasium is not installed: pip install 'marline[gym]'") from error

PATH_FEATURES = (
    "usable",
    "arrival_s",
    "srtt_s",
    "min_rtt_s",
    "rtt_var_s",
    "rate_mbps",
    "loss",
    "room_kb",
    "ahead_kb",
)
"""What is seen of each path, in this order. `usable` is 0 where it may carry nothing now, 0.5
without room for a packet, 1 with; `arrival_s` is when a packet that is queued now would have
arrived; `ahead_kb` is in flight or queued."""

_SCALE = np.array([1, 1, 1, 1, 1, 1e-6, 1, 1e-3, 1e-3], dtype=np.float64)

SEND, COPY, REPAIR, WAIT = range(4)


class SchedulerEnv(gymnasium.Env[np.ndarray, np.int64]):
    """Schedules the flow of a workload of the kind `constant`.

    Observation: for each path :data:`PATH_FEATURES`, then what is unsent (kB) and the length of the
    next packet (kB). Action: with n paths, 0 to n − 1 sends the next packet on that path, n to 2n −
    1 copies the packet before it there, 2n to 3n − 1 sends a repair symbol there (of a coded flow:
    `coded=True`), 3n waits.

    Reward: what the flow wants. A unit that arrives `deadline` seconds after it was written, or
    sooner, is worth 1, one that is late or lost −1, and each copy or repair symbol costs `price`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: Scenario | str | dict[str, Any],
        *,
        workload: str,
        deadline: float = 0.1,
        price: float = 0.05,
        coded: bool = False,
    ) -> None:
        self._scenario = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
        self._workload, self._deadline, self._price = workload, deadline, price
        self._coded = coded
        self._stepper: Stepper | None = None
        probe = Stepper(self._scenario, 1, workload, coded=coded)
        self.paths = probe.paths
        probe.close()
        size = self.paths * SEEN[0] + SEEN[1]
        self.observation_space = spaces.Box(0.0, np.inf, (size,), np.float32)
        self.action_space = spaces.Discrete(3 * self.paths + 1)
        self._last = np.zeros(size, dtype=np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins a run; `seed` is its seed, so that the same seed meets the same links."""
        super().reset(seed=seed)
        self.close()
        run = seed if seed is not None else int(self.np_random.integers(1, 2**31))
        self._stepper = Stepper(self._scenario, run, self._workload, coded=self._coded)
        _, info, _ = self._look()
        return self._last, info

    def step(self, action: int | np.int64) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Makes a decision; the observation of the next one."""
        if self._stepper is None:
            raise RuntimeError("call reset() before step()")
        what, path = divmod(int(action), self.paths)
        self._stepper.answer(what, path if what < WAIT else 0)
        reward, info, over = self._look()
        if what in (COPY, REPAIR):
            reward -= self._price
        return self._last, reward, over, False, info

    def _look(self) -> tuple[float, dict[str, Any], bool]:
        assert self._stepper is not None
        question, arrived = self._stepper.question()
        delays = np.asarray(arrived)
        in_time = int((delays <= self._deadline).sum())
        reward = float(in_time - (len(delays) - in_time))
        if question is None:
            return reward, {"delays": delays}, True
        now, seen = question
        numbers = np.asarray(seen)
        split = self.paths * SEEN[0]
        of_paths = numbers[:split].reshape(self.paths, SEEN[0]) * _SCALE
        self._last = np.concatenate([of_paths.ravel(), numbers[split:] * 1e-3]).astype(np.float32)
        return reward, {"delays": delays, "now": now}, False

    def results(self) -> Results | None:
        """What the run measured, once it is over: the same measures as those of any run."""
        return None if self._stepper is None else self._stepper.results()

    def close(self) -> None:
        """Ends a run that is under way."""
        if self._stepper is not None:
            self._stepper.close()
            self._stepper = None
