"""Finished runs in a folder, so that a sweep goes on where it was stopped.

Each finished task is a file below `parts/`, named by the digest of its runs' keys and put there by
one rename: it is there whole or not at all. At the end all runs stand in `runs.jsonl`, in the order
of the plan and in the form of the program's own store, beside the same as Parquet.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from .._marline import Plan, Results


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file that is there whole or not at all, whenever the program is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _key(line: bytes) -> str:
    """The key that a line begins with: `{"key":"…","run":…}`."""
    return line[len('{"key":"') :].partition(b'"')[0].decode(errors="replace")


class Store:
    """The results of a plan in a folder."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.parts = folder / "parts"
        self._keys = plan.keys()
        self.parts.mkdir(parents=True, exist_ok=True)
        self._whole = folder / "runs.jsonl"
        # As the program does: two that write to one folder would lose each other's runs.
        self._lock = open(self._whole, "ab")  # noqa: SIM115
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise RuntimeError(
                f"{self._whole}: another program writes to it; wait for its end"
            ) from error

    def close(self) -> None:
        """Lets others write to the folder."""
        self._lock.close()

    def part(self, runs: tuple[int, ...]) -> Path:
        """Where the lines of these runs stand, once they are made."""
        digest = hashlib.sha256()
        for run in runs:
            digest.update(self._keys[run].encode())
        return self.parts / f"{digest.hexdigest()[:32]}.jsonl"

    def add(self, runs: tuple[int, ...], lines: bytes) -> None:
        """Keeps the lines of a task."""
        write_whole(self.part(runs), lines)

    def texts(self) -> Iterator[bytes]:
        """All lines that are there: those of this sweep, and those that the program made."""
        for file in [self._whole, *sorted(self.parts.glob("*.jsonl"))]:
            try:
                yield file.read_bytes()
            except FileNotFoundError:
                continue

    def finish(self, plan: Plan, results: Results) -> None:
        """Writes the results whole, and removes the parts that they are made of. Runs of other
        sweeps that are in the folder stay, after those of this one."""
        ours = set(self._keys)
        lines = self._whole.read_bytes().splitlines(keepends=True)
        others = [line for line in lines if line.endswith(b"\n") and _key(line) not in ours]
        write_whole(self._whole, plan.lines(results) + b"".join(others))
        write_parquet(self.folder, plan, results)
        shutil.rmtree(self.parts, ignore_errors=True)


def write_parquet(folder: Path, plan: Plan, results: Results) -> None:
    """Writes the results as Parquet: `results`, a row a run and a column a measure, and
    `fractions`, `distributions` and `series` in long form. The same results are the same bytes."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError(
            "results are written as Parquet by pyarrow: pip install 'marline[arrow]'"
        ) from error
    wide = results.values(wide=True).to_pyarrow()
    wide = wide.add_column(0, "key", pyarrow.array(plan.keys()))
    tables = {
        "results": wide,
        "fractions": results.fractions().to_pyarrow(),
        "distributions": results.distributions().to_pyarrow(),
        "series": results.series().to_pyarrow(),
    }
    for name, table in tables.items():
        metadata = {"marline.version": plan.version, "marline.title": plan.title}
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(table.replace_schema_metadata(metadata), sink, compression="zstd")
        write_whole(folder / f"{name}.parquet", sink.getvalue().to_pybytes())
