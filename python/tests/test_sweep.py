"""Sweeps: idempotent, taken up again, the same bytes whatever the engine."""

import fcntl
import hashlib
import json
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import SMALL

import marline
from marline.__main__ import main
from marline.sweeps import Outcome
from marline.sweeps.engine import Attempt
from marline.sweeps.work import make

pytest.importorskip("pyarrow")


@pytest.fixture
def plan(small: marline.Scenario) -> marline.Plan:
    return marline.Plan(small)


def digests(folder: Path) -> dict[str, str]:
    """All files below a folder, by what is in them."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if "slurm" not in file.parts
    }


class Broken:
    """An engine that makes tasks here, in an odd order, twice, and not at the first time."""

    workers = 2

    def __init__(self, text: str, failures: int, which: int | None = None) -> None:
        """Tasks, or the one of this number, fail that many times."""
        self.text, self.failures, self.which = text, failures, which
        self.waiting: list[Attempt] = []
        self.random = random.Random(1)
        self.failed_at: list[list[str]] = []
        self.closed = False

    def start(self, attempts: Sequence[Attempt]) -> None:
        self.waiting.extend(attempts)

    def wait(self) -> list[Outcome]:
        self.random.shuffle(self.waiting)
        attempt = self.waiting.pop()
        fails = self.which in (None, attempt.task.number)
        if fails and len(attempt.failed_at) < self.failures:
            return [Outcome(attempt.task, error="killed", where=f"node{len(attempt.failed_at)}")]
        self.failed_at.append(attempt.failed_at)
        lines = make(self.text, attempt.task.runs)
        return [Outcome(attempt.task, lines=lines), Outcome(attempt.task, lines=lines)]

    def close(self) -> None:
        self.closed = True


def test_engines_and_interruptions_change_no_byte(plan: marline.Plan, tmp_path: Path) -> None:
    whole, odd = tmp_path / "whole", tmp_path / "odd"
    results = marline.sweep(plan, out=whole, workers=2)
    engine = Broken(plan.to_json(), failures=2)
    again = marline.sweep(plan, engine, out=odd, chunk=5)
    assert engine.closed
    assert engine.failed_at == [["node0", "node1"]] * 3
    assert again == results == marline.sweep(plan)
    assert digests(whole) == digests(odd)
    assert set(digests(whole)) == {
        "runs.jsonl",
        "results.parquet",
        "fractions.parquet",
        "distributions.parquet",
        "series.parquet",
    }
    # Those of `run`, too.
    assert results.runs() == marline.run(SMALL).runs()


def test_what_fails_too_often_is_said_and_the_rest_is_kept(
    plan: marline.Plan, tmp_path: Path
) -> None:
    with pytest.raises(marline.SweepError, match="3 tasks failed more than 1 times; runs .*killed"):
        marline.sweep(plan, Broken(plan.to_json(), failures=2), out=tmp_path, chunk=5, retries=1)

    with pytest.raises(marline.SweepError, match="1 tasks failed"):
        engine = Broken(plan.to_json(), failures=9, which=1)
        marline.sweep(plan, engine, out=tmp_path, chunk=5, retries=1)
    kept = list((tmp_path / "parts").glob("*.jsonl"))
    assert len(kept) == 2
    engine = Broken(plan.to_json(), failures=0)
    results = marline.sweep(plan, engine, out=tmp_path, chunk=5)
    # Only the five runs that were missing.
    assert len(engine.failed_at) == 1
    assert results == marline.sweep(plan)


def test_a_sweep_that_is_there_is_not_made_again(plan: marline.Plan, tmp_path: Path) -> None:
    marline.sweep(plan, out=tmp_path)
    before = digests(tmp_path)

    class Never:
        workers = 1

        def start(self, attempts: Sequence[Attempt]) -> None:
            raise AssertionError("nothing is missing")

        def wait(self) -> list[Outcome]:
            raise AssertionError

        def close(self) -> None:
            pass

    marline.sweep(plan, Never(), out=tmp_path)
    assert digests(tmp_path) == before
    # A line that was cut counts as not there, and its run alone is made.
    file = tmp_path / "runs.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    engine = Broken(plan.to_json(), failures=0)
    marline.sweep(plan, engine, out=tmp_path)
    assert len(engine.failed_at) == 1
    assert digests(tmp_path) == before


def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    scenario = marline.Scenario({**SMALL, "duration": "3s", "seeds": 40})
    plan = marline.Plan(scenario)
    file, out = tmp_path / "plan.json", tmp_path / "out"
    file.write_text(plan.to_json())
    command = [
        sys.executable,
        "-m",
        "marline",
        "sweep",
        str(file),
        "--out",
        str(out),
        "--workers",
        "2",
    ]
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not list(out.glob("parts/*.jsonl")) and child.poll() is None:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL, "it was over before it could be killed"
    kept = {part.name: part.stat().st_mtime_ns for part in out.glob("parts/*.jsonl")}
    assert kept
    engine = Broken(plan.to_json(), failures=0)
    marline.sweep(file, engine, out=out)
    texts = b"".join(make(plan.to_json(), tuple(range(len(plan)))).splitlines(keepends=True))
    assert (out / "runs.jsonl").read_bytes() == texts
    made = sum(1 for _ in engine.failed_at)
    assert 0 < made < 160


def test_an_interrupted_sweep_says_so(tmp_path: Path) -> None:
    scenario = marline.Scenario({**SMALL, "duration": "20h", "seeds": 2})
    file = tmp_path / "plan.json"
    file.write_text(marline.Plan(scenario).to_json())
    command = [sys.executable, "-m", "marline", "sweep", str(file), "--out", str(tmp_path / "out")]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "out" / "parts").exists():
        time.sleep(0.01)
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "goes on from here" in said


def test_two_sweeps_in_one_folder_lose_nothing(
    small: marline.Scenario, plan: marline.Plan, tmp_path: Path
) -> None:
    other = marline.Plan(small.set("links.a.loss", "3%"))
    marline.sweep(plan, out=tmp_path)
    before = (tmp_path / "runs.jsonl").read_bytes()
    marline.sweep(other, out=tmp_path)
    after = (tmp_path / "runs.jsonl").read_bytes()
    assert after.endswith(before) and after.count(b"\n") == 24
    engine = Broken(plan.to_json(), failures=0)
    marline.sweep(plan, engine, out=tmp_path)
    assert not engine.failed_at
    # Not at the same time.
    with open(tmp_path / "runs.jsonl", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RuntimeError, match="another program writes to it"):
            marline.sweep(other, out=tmp_path)


def test_parquet_holds_the_values(plan: marline.Plan, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    results = marline.sweep(plan, out=tmp_path)
    table = parquet.read_table(tmp_path / "results.parquet")
    assert table.column("key").to_pylist() == plan.keys()
    runs = results.runs()
    goodput = [run["values"]["live.goodput_mbps"] for run in runs]
    assert table.column("live.goodput_mbps").to_pylist() == goodput
    assert table.schema.metadata[b"marline.version"] == marline.__version__.encode()
    series = parquet.read_table(tmp_path / "series.parquet")
    assert series.num_rows == sum(len(s["values"]) for run in runs for s in run["series"].values())


def test_keys_are_what_runs_depend_on(small: marline.Scenario) -> None:
    keys = set(marline.Plan(small).keys())
    assert len(keys) == 12
    assert set(marline.Plan(small, schedulers="edpf").keys()) < keys
    assert set(marline.Plan(small, seeds=2).keys()) < keys
    assert not set(marline.Plan(small.set("links.a.loss", "2%")).keys()) & keys
    assert set(marline.Plan(small.set("title", "Other")).keys()) == keys


def test_other_plans_and_versions_are_refused(plan: marline.Plan, tmp_path: Path) -> None:
    text = json.loads(plan.to_json())
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({**text, "version": "0.0.0"}))
    with pytest.raises(marline.ScenarioError, match=r"for version 0\.0\.0"):
        marline.sweep(file)
    text["runs"][3]["seed"] = 99
    file.write_text(json.dumps(text))
    with pytest.raises(marline.SweepError, match="run 3 of the plan"):
        marline.sweep(file, retries=0)
    assert main(["sweep", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 1


def test_progress_says_how_long_it_takes(plan: marline.Plan) -> None:
    seen: list[marline.Progress] = []
    marline.sweep(plan, workers=1, chunk=3, progress=seen.append)
    assert [one.over for one in seen] == [0, 3, 6, 9, 12]
    assert seen[0].seconds_left is None
    assert all(one.seconds_left is not None for one in seen[1:])
    assert seen[-1].seconds_left == 0
    assert str(marline.Progress(10, 200, 600.0)) == "10 of 200 runs, 10 min left"


def test_workers_know_schedulers_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_mine.py").write_text(
        textwrap.dedent(
            """
            import marline

            class Mine:
                def plan(self, step):
                    while step.next_len() is not None and step.paths and step.paths[0].has_room:
                        step.send(0)

            def add():
                marline.add_scheduler("mine-of-a-module", Mine)
            """
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    import importlib

    importlib.import_module("of_mine").add()
    plan = marline.Plan(marline.Scenario(SMALL), schedulers="mine-of-a-module")
    assert len(marline.sweep(plan, setup="of_mine:add")) == 6


SBATCH = """\
#!{python}
# Imitates sbatch: runs the tasks of the array one after the other, in the background.
import os, re, subprocess, sys
script = sys.argv[-1]
text = open(script).read()
assert "--parsable" in sys.argv
last, limit = re.search(r"--array=0-(\\d+)(?:%(\\d+))?", text).groups()
assert limit == "2", limit
count = len(os.listdir("{state}"))
job = f"4{{count}}"
open(f"{state}/{{job}}.script", "w").write(text)
code = f'''
import os, subprocess
for task in range({{int(last) + 1}}):
    env = dict(os.environ, SLURM_ARRAY_TASK_ID=str(task), SLURMD_NODENAME="n1")
    if task == 1 and "{{job}}" == "40":
        # The node dies within the task.
        env["PATH"] = "/nowhere"
        subprocess.run(["{python}", "-c", "import os; os.kill(os.getpid(), 9)"])
        continue
    subprocess.run(["/bin/bash", "{{script}}"], env=env, check=False)
os.rename("{state}/{{job}}.script", "{state}/{{job}}.over")
'''
subprocess.Popen(["{python}", "-c", code], stdout=subprocess.DEVNULL)
print(f"{{job}};cluster")
"""

SQUEUE = """\
#!{python}
import os, sys
job = sys.argv[sys.argv.index("--job") + 1]
if os.path.exists(f"{state}/{{job}}.script"):
    print(job)
elif not os.path.exists(f"{state}/{{job}}.over"):
    sys.exit("slurm_load_jobs error: Invalid job id specified")
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`sbatch` and `squeue`, imitated."""
    programs, state = tmp_path / "bin", tmp_path / "state"
    programs.mkdir()
    state.mkdir()
    for name, text in [("sbatch", SBATCH), ("squeue", SQUEUE)]:
        file = programs / name
        file.write_text(text.format(python=sys.executable, state=state))
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return state


def test_slurm_makes_array_jobs(plan: marline.Plan, tmp_path: Path, cluster: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    marline.sweep(plan, out=whole)
    results = marline.sweep(
        plan, "slurm", out=out, workers=2, chunk=4, poll=0.05, sbatch=["--time=00:10:00"]
    )
    assert len(results) == 12
    assert digests(out) == digests(whole)
    scripts = sorted(cluster.glob("*.over"))
    # The task that was killed was submitted once more, alone.
    assert [script.stem for script in scripts] == ["40", "41"]
    first, second = (script.read_text() for script in scripts)
    assert "#SBATCH --array=0-2%2" in first and "#SBATCH --time=00:10:00" in first
    assert "#SBATCH --array=0-0%2" in second
    assert subprocess.run(["bash", "-n", scripts[0]], check=False).returncode == 0


def test_slurm_needs_a_folder_and_its_programs(
    plan: marline.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="needs `out`"):
        marline.sweep(plan, "slurm")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="is Slurm installed"):
        marline.sweep(plan, "slurm", out=tmp_path / "out")
    with pytest.raises(ValueError, match="there are local, ray, dask and slurm"):
        marline.sweep(plan, "abacus")


def test_the_program_writes_plans_and_takes_results_back(tmp_path: Path) -> None:
    program = os.environ.get("MARLINE")
    if not program:
        pytest.skip("MARLINE names no program")
    scenario, plan, out = tmp_path / "s.toml", tmp_path / "plan.json", tmp_path / "out"
    scenario.write_text(
        'duration = "1s"\nlinks.a = { rate = "6mbit" }\nlinks.b = { rate = "6mbit" }\n'
        'workloads = [{ kind = "constant", name = "live", rate = "8mbit" }]\n'
    )
    vary = ["--vary", "links.b.delay=10ms,30ms", "--seeds", "3", "--scheduler", "edpf,min-rtt"]

    def sim(*words: str) -> str:
        done = subprocess.run(
            [program, "sim", "sweep", *words], capture_output=True, text=True, check=True
        )
        return done.stdout + done.stderr

    assert "12 runs are planned" in sim(str(scenario), *vary, "--plan", str(plan))
    results = marline.sweep(plan, out=out)
    said = sim("--plan", str(plan), "--out", str(out))
    assert "0 runs made, 12 there already" in said
    back = marline.Results.from_json((out / "results.json").read_text())
    assert back.runs() == results.runs()
    # What is in the program's own sweep is the same, and what it made is not made again here.
    own = tmp_path / "own"
    sim("--plan", str(plan), "--out", str(own))
    assert marline.sweep(plan, out=own) == results
