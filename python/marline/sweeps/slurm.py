"""The engine "slurm": array jobs.

A script is written for each submission and given to `sbatch`; each task of the array makes some
runs and puts their lines into the folder of the results, on a disk that all nodes share. Nothing
else is exchanged with the nodes, so that the driver may be stopped and started again.
"""

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .engine import Attempt, Outcome, Task
from .store import Store, write_whole

MOST_TASKS = 1000
"""Tasks of an array: Slurm's MaxArraySize is 1001 unless a site changes it."""

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=marline-sweep
#SBATCH --array=0-{last}{limit}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --output={folder}/%A_%a.log
{flags}
exec {python} -m marline.sweeps.task {plan} {tasks} "$SLURM_ARRAY_TASK_ID"
"""


class Slurm:
    """Makes tasks by array jobs. `sbatch` are flags for it, such as `["--time=01:00:00"]`;
    `workers` bounds the tasks at once; `python` is the interpreter on the nodes."""

    def __init__(
        self,
        text: str,
        workers: int | None,
        setup: str | None,
        *,
        store: Store,
        sbatch: Sequence[str] = (),
        python: str = sys.executable,
        poll: float = 5.0,
    ) -> None:
        self._limit = workers
        self.workers = workers or MOST_TASKS // 16
        self._store = store
        self._setup = setup
        self._flags = list(sbatch)
        self._python = python
        self._poll = poll
        self._folder = store.folder.resolve() / "slurm"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._plan = self._folder / "plan.json"
        write_whole(self._plan, text.encode())
        self._submissions = 0
        self._jobs: dict[str, dict[int, Task]] = {}
        """Tasks that are open, by job."""

    def _submit(self, attempts: Sequence[Attempt]) -> None:
        self._submissions += 1
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{self._submissions}"
        tasks, script = self._folder / f"{name}.tasks.json", self._folder / f"{name}.sh"
        parts = [
            {
                "runs": attempt.task.runs,
                "part": str(self._store.part(attempt.task.runs).resolve()),
                "setup": self._setup,
            }
            for attempt in attempts
        ]
        write_whole(tasks, json.dumps(parts).encode())
        flags = list(self._flags)
        nodes = sorted({node for attempt in attempts for node in attempt.failed_at if node})
        if nodes:
            flags.append(f"--exclude={','.join(nodes)}")
        text = SCRIPT.format(
            last=len(parts) - 1,
            limit=f"%{self._limit}" if self._limit else "",
            folder=self._folder,
            flags="\n".join(f"#SBATCH {flag}" for flag in flags),
            python=shlex.quote(self._python),
            plan=shlex.quote(str(self._plan)),
            tasks=shlex.quote(str(tasks)),
        )
        write_whole(script, text.encode())
        job = _output(["sbatch", "--parsable", str(script)]).split(";")[0].strip()
        self._jobs[job] = {attempt.task.number: attempt.task for attempt in attempts}

    def start(self, attempts: Sequence[Attempt]) -> None:
        for at in range(0, len(attempts), MOST_TASKS):
            self._submit(attempts[at : at + MOST_TASKS])

    def wait(self) -> list[Outcome]:
        while True:
            outcomes: list[Outcome] = []
            for job, tasks in list(self._jobs.items()):
                # Asked first: what is written before a job is over counts.
                is_over = not _is_queued(job)
                for number, task in list(tasks.items()):
                    part = self._store.part(task.runs)
                    if part.exists():
                        outcomes.append(Outcome(task, lines=part.read_bytes()))
                        del tasks[number]
                    elif is_over:
                        why = f"job {job} ended without its results: see {self._folder}"
                        outcomes.append(Outcome(task, error=why, where=_failed_on(part)))
                        del tasks[number]
                if not tasks:
                    del self._jobs[job]
            if outcomes or not self._jobs:
                return outcomes
            time.sleep(self._poll)

    def close(self) -> None:
        for job, tasks in self._jobs.items():
            if tasks:
                subprocess.run(["scancel", job], check=False, capture_output=True)
        self._jobs.clear()


def _failed_on(part: Path) -> str | None:
    """The node that a task said that it began on."""
    try:
        return part.with_suffix(".node").read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _is_queued(job: str) -> bool:
    """Does the job wait or run? `squeue` fails for a job that it has forgotten."""
    asked = subprocess.run(
        ["squeue", "--noheader", "--job", job, "--format=%i"],
        check=False,
        capture_output=True,
        text=True,
    )
    return asked.returncode == 0 and bool(asked.stdout.strip())


def _output(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise RuntimeError(f"no program {command[0]}: is Slurm installed here?") from error
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"{shlex.join(command)} failed: {error.stderr.strip()}") from error
    return done.stdout
