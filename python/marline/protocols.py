"""What schedulers and applications written in Python look like to the simulator."""

from typing import Protocol

from ._marline import Context, PlanningStep


class Scheduler(Protocol):
    """Decides which path carries what of one flow.

    `plan` is called whenever something changed that could change the answer, and ends when nothing
    more should leave now: each call may emit what fits the paths' windows. An exception ends the
    run and is raised by :func:`marline.run`.

    Three things may be there besides, and save or bring calls:

    * `awaits_room = True`: it emits nothing while no path has room, and need not be asked then.
    * `codes = True`: it emits repair symbols, so that the flow is coded.
    * `on_feedback(now, symbol, path, outcome, sent)`: what became of a symbol: "sent", "acked",
      "lost" or "recovered".
    """

    def plan(self, step: PlanningStep) -> None:
        """Emits what should leave now."""
        ...


class Workload(Protocol):
    """An application on both ends of a session.

    `marline.run(scenario, workloads={"live": App})` calls `App()` for each run and puts it in the
    place of the scenario's workload `live`, whose flow it has. These may be there besides:

    * `wake(cx)`: the time that `cx.wake_after` asked for has come.
    * `delivered(cx, delivery)`: a unit arrived at the other end, or is known to be lost.
    * `answered(cx, delivery)`: the same of what `cx.reply` wrote there.
    * `stop(cx)`: its time is over, it writes nothing more.
    """

    def start(self, cx: Context) -> None:
        """Its time has come: write, ask to be woken."""
        ...
