"""Runs, and their results as tables."""

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from conftest import SMALL

import marline

LONG = {**SMALL, "duration": "20h", "seeds": 1, "schedulers": ["edpf"], "vary": {}}


def test_a_dict_and_a_file_mean_the_same(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(
        textwrap.dedent(
            """
            title = "Small"
            duration = "1s"
            seeds = 3
            schedulers = ["min-rtt", "edpf"]
            links.a = { rate = "6mbit", delay = "10ms", loss = "1%" }
            links.b = { rate = "6mbit", delay = "10ms" }
            workloads = [{ kind = "constant", name = "live", rate = "8mbit" }]
            vary."links.b.delay" = ["10ms", "30ms"]
            """
        )
    )
    of_file, of_dict = marline.run(file), marline.run(SMALL)
    assert len(of_file) == 12
    assert of_file.runs() == of_dict.runs()
    assert of_file.file == str(file)


def test_threads_change_nothing(small: marline.Scenario) -> None:
    assert marline.run(small, threads=1) == marline.run(small, threads=4)


def test_a_scenario_does_not_change(small: marline.Scenario) -> None:
    other = small.set("links.a.delay", "50ms").vary("links.b.delay", ["5ms"]).compare("ecf")
    assert other.schedulers == ["ecf"]
    assert other.cells() == [{"links.b.delay": "5ms"}]
    assert small.schedulers == ["min-rtt", "edpf"]
    assert len(small.cells()) == 2
    assert small.repeat([7, 9]).seeds == [7, 9]
    assert "rate=6mbit" in small.explain()


def test_mistakes_name_the_key_and_the_mend(small: marline.Scenario) -> None:
    with pytest.raises(marline.ScenarioError, match=r"links\.a\.delay"):
        small.set("links.a.delay", "soon")
    with pytest.raises(marline.ScenarioError, match="no-such"):
        marline.run(small, schedulers="no-such")
    with pytest.raises(FileNotFoundError, match="experiments"):
        marline.Scenario("no/such.toml")
    with pytest.raises(TypeError, match="links"):
        marline.Scenario({**SMALL, "links": {"a": object()}})
    with pytest.raises(marline.ScenarioError):
        marline.Scenario({**SMALL, "duration": "-1s"})


def test_values_are_those_of_the_runs(small: marline.Scenario) -> None:
    results = marline.run(small)
    runs = results.runs()
    long = results.values().to_dict()
    seen = {
        (cell, scheduler, seed, measure): value
        for cell, scheduler, seed, measure, value in zip(
            *(long[k] for k in ["links.b.delay", "scheduler", "seed", "measure", "value"]),
            strict=True,
        )
    }
    wanted = {
        (run["cell"]["links.b.delay"], run["scheduler"], run["seed"], measure): value
        for run in runs
        for measure, value in run["values"].items()
    }
    assert seen == wanted
    wide = results.values(wide=True)
    assert len(wide) == 12
    assert wide.column("live.goodput_mbps") == [run["values"]["live.goodput_mbps"] for run in runs]
    series = results.series().to_dict()
    first = [
        v
        for v, seed, m, s, c in zip(
            series["value"],
            series["seed"],
            series["measure"],
            series["scheduler"],
            series["links.b.delay"],
            strict=True,
        )
        if (seed, m, s, c) == (1, "live.goodput_mbps", "min-rtt", "10ms")
    ]
    assert first == runs[0]["series"]["live.goodput_mbps"]["values"]
    quantiles = results.distributions().to_dict()
    rows = sum(len(d["quantiles"]) for run in runs for d in run["distributions"].values())
    assert len(quantiles["probability"]) == rows


def test_the_libraries_see_the_same_numbers(small: marline.Scenario) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    results = marline.run(small)
    for table in [
        results.values(),
        results.values(wide=True),
        results.fractions(),
        results.distributions(),
        results.series(),
        results.summary(),
    ]:
        wanted = table.to_dict()
        arrow = table.to_pyarrow()
        assert isinstance(arrow, pyarrow.Table)
        assert arrow.to_pydict() == wanted
        assert table.to_polars().to_dict(as_series=False) == wanted
        assert isinstance(table.to_polars(), polars.DataFrame)
        frame = table.to_pandas()
        assert isinstance(frame, pandas.DataFrame)
        assert list(frame.columns) == table.columns
        assert len(frame) == len(table)
    # Any consumer of the interface takes it twice.
    assert pyarrow.table(table).equals(pyarrow.table(table))


def test_the_summary_is_that_of_the_values(small: marline.Scenario) -> None:
    results = marline.run(small)
    summary = results.summary(["live.goodput_mbps"]).to_dict()
    values = [r["values"]["live.goodput_mbps"] for r in results.runs()[:3]]
    mean = sum(values) / 3
    assert math.isclose(summary["mean"][0], mean, rel_tol=1e-12)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / 2)
    # t(2) = 4.3027 for 95 %.
    assert math.isclose(summary["high"][0] - mean, 4.30265 * deviation / math.sqrt(3), rel_tol=1e-4)
    assert summary["n"] == [3, 3, 3, 3]
    ratio = results.ratio("edpf", "edpf", "live.goodput_mbps")
    assert ratio is not None and math.isclose(ratio[0], 1.0)


def test_nothing_is_imported_unasked() -> None:
    code = """
        import sys, marline
        marline.run({"duration": "100ms", "links": {"a": {}}, "schedulers": ["edpf"],
                     "workloads": [{"kind": "constant", "rate": "1mbit"}]}).values()
        heavy = {"numpy", "pandas", "polars", "pyarrow", "matplotlib", "gymnasium", "ray", "dask"}
        print(sorted(heavy & set(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_progress_is_reported_and_may_stop(small: marline.Scenario) -> None:
    seen: list[tuple[int, int]] = []
    marline.run(small, progress=lambda over, total: seen.append((over, total)))
    assert seen[-1] == (12, 12)
    assert seen == sorted(seen)

    def stop(_over: int, _total: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        marline.run(LONG, progress=stop)


def test_other_threads_run_meanwhile() -> None:
    """With the interpreter's lock held, the other thread could not stop the run."""
    stopped = threading.Event()

    def watch(_over: int, _total: int) -> None:
        if stopped.is_set():
            raise InterruptedError

    def other() -> None:
        sum(range(1000))
        stopped.set()

    threading.Timer(0.2, other).start()
    with pytest.raises(InterruptedError):
        # `watch` is called at once, and whenever a run is over.
        marline.run({**LONG, "duration": "2s", "seeds": 200}, threads=1, progress=watch)


def test_an_interrupt_ends_a_long_run() -> None:
    code = f"""
        import marline
        print("begun", flush=True)
        try:
            marline.run({LONG!r})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    os.kill(child.pid, signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out == "interrupted\n"


def test_experiments_come_with_it() -> None:
    names = marline.experiments()
    assert "examples/handover" in names
    assert marline.Scenario("examples/handover").title
    with pytest.raises(ValueError, match="several experiments"):
        shared = [n.split("/")[1] for n in names]
        marline.Scenario(next(n for n in shared if shared.count(n) > 1))


def test_json_is_that_of_the_program(small: marline.Scenario, tmp_path: Path) -> None:
    results = marline.run(small)
    again = marline.Results.from_json(results.to_json())
    assert again == results
    program = os.environ.get("MARLINE")
    if not program:
        pytest.skip("MARLINE names no program to compare with")
    file = tmp_path / "small.toml"
    file.write_text(scenario_text())
    done = subprocess.run(
        [program, "sim", "run", str(file), "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["runs"] == marline.run(file).runs()


def scenario_text() -> str:
    """A scenario file without axes."""
    return textwrap.dedent(
        """
        duration = "1s"
        seeds = 2
        schedulers = ["edpf"]
        links.a = { rate = "6mbit", delay = "10ms", loss = "1%" }
        links.b = { rate = "6mbit" }
        workloads = [{ kind = "constant", name = "live", rate = "8mbit" }]
        """
    )


def test_repro_is_a_table_of_verdicts() -> None:
    seen: list[int] = []
    verdicts, results = marline.repro(
        "sos", "one-point", seeds=1, progress=lambda n, _: seen.append(n)
    )
    table = verdicts.to_dict()
    assert set(table["outcome"]) <= {"holds", "missed", "unbounded"}
    assert all(n == 1 for n in table["seeds"])
    assert set(table["paper"]) == {"sos"}
    assert seen[-1] == sum(len(one) for one in results.values())
    with pytest.raises(ValueError, match="no paper"):
        marline.repro("no-such-paper")
