"""Sweeps: the runs of a plan on engines that exist.

A plan is a file (`marline sim sweep FILE --vary … --plan PLAN`, or :class:`marline.Plan`). It holds
all that its runs depend on, and each run by the digest of that: the same run is the same wherever,
whenever and however often it is made.
"""

from .driver import Progress, SweepError, sweep
from .engine import Engine, Outcome, Task

__all__ = ["Engine", "Outcome", "Progress", "SweepError", "Task", "sweep"]
