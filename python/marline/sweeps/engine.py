"""What an engine is to a sweep: it makes pieces of a plan, somewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Task:
    """Some runs of a plan, by their numbers, that are made together."""

    number: int
    runs: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of a task: lines of results, or what went wrong and where."""

    task: Task
    lines: bytes | None = None
    error: str | None = None
    where: str | None = None


@dataclass
class Attempt:
    """A task that is to be made, and where it failed before."""

    task: Task
    failed_at: list[str] = field(default_factory=list)


class Engine(Protocol):
    """Makes tasks on workers; a task may be made more than once, and counts once."""

    workers: int
    """How many tasks are made at once."""

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Hands over tasks, to be made elsewhere than where they failed, if there is elsewhere."""
        ...

    def wait(self) -> list[Outcome]:
        """What is over, at least one task; waits for it."""
        ...

    def close(self) -> None:
        """Ends what is under way and gives back what it holds."""
        ...
