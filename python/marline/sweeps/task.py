"""One task of an array job: `python -m marline.sweeps.task PLAN TASKS NUMBER`."""

import json
import os
import sys
from pathlib import Path

from .store import write_whole
from .work import make


def main(plan: str, tasks: str, number: str) -> None:
    """Makes the runs of a task and puts their lines where the driver looks for them."""
    task = json.loads(Path(tasks).read_text(encoding="utf-8"))[int(number)]
    part = Path(task["part"])
    if part.exists():
        return
    node = part.with_suffix(".node")
    write_whole(node, os.environ.get("SLURMD_NODENAME", "").encode())
    text = Path(plan).read_text(encoding="utf-8")
    write_whole(part, make(text, tuple(task["runs"]), task["setup"]))
    node.unlink(missing_ok=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
