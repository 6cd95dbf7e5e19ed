"""What an engine costs beside threads of this process, over small cells.

    python bench/engines.py [ENGINE] [RUNS] [ROUNDS]

The same sweep of RUNS cells (10,000) by the local pool with two workers and by ENGINE (ray) with
two, ROUNDS times (3) in turn, because the machine may have other work. The engine is there already;
what its start takes is printed beside, and the CPU time of all processes, which other work does not
change. Ends with 1 if the engine takes more than 1.15 times as long.
"""

import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import marline


def cpu_seconds() -> float:
    """CPU time of this process and of all that descend from it and live."""
    parents, times = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            times[int(folder.name)] = int(fields[11]) + int(fields[12])

    def descends(pid: int) -> bool:
        while pid > 1:
            if pid == os.getpid():
                return True
            pid = parents.get(pid, 0)
        return False

    ticks = sum(time for pid, time in times.items() if descends(pid))
    return ticks / os.sysconf("SC_CLK_TCK")


def sweep_of(runs: int) -> marline.Plan:
    """A plan of cells that take some two milliseconds each."""
    link = {"rate": "6mbit", "delay": "10ms", "queue": "100ms"}
    scenario = marline.Scenario(
        {
            "duration": "300ms",
            "schedulers": ["min-rtt", "edpf"],
            "links": {"a": {**link, "loss": "1%"}, "b": link},
            "workloads": [{"kind": "constant", "name": "live", "rate": "8mbit"}],
        }
    )
    delays = [f"{n}ms" for n in range(5, 15)]
    return marline.Plan(scenario.vary("links.b.delay", delays), seeds=runs // 20)


def started(engine: str) -> tuple[Any, dict[str, Any]]:
    """What ends the engine, and the options that sweeps have by it."""
    if engine == "ray":
        # By default workers have the niceness 15: what else the machine does would slow them alone.
        os.environ.setdefault("RAY_worker_niceness", "0")
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        return ray.shutdown, {}
    import distributed

    client = distributed.Client(
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    )
    return client.shutdown, {"client": client}


def main(engine: str = "ray", runs: str = "10000", rounds: str = "3") -> int:
    """Prints the figures; the exit code."""
    plan = sweep_of(int(runs))
    began = time.perf_counter()
    stop, options = started(engine)
    start = time.perf_counter() - began
    # Workers import the package once.
    marline.sweep(sweep_of(200), engine, **options)
    ratios, of_cpu = [], []
    for _ in range(int(rounds)):
        began, cpu_began = time.perf_counter(), cpu_seconds()
        local = marline.sweep(plan, "local", workers=2)
        between, cpu_between = time.perf_counter(), cpu_seconds()
        there = marline.sweep(plan, engine, workers=2, **options)
        took, local_took = time.perf_counter() - between, between - began
        cpu, local_cpu = cpu_seconds() - cpu_between, cpu_between - cpu_began
        assert there == local
        ratios.append(took / local_took)
        of_cpu.append(cpu / local_cpu)
        print(
            f"{len(plan)} runs: local {local_took:.1f} s ({local_cpu:.1f} s of CPU), "
            f"{engine} {took:.1f} s ({cpu:.1f} s of CPU)",
            flush=True,
        )
    stop()
    ratio = statistics.median(ratios)
    print(
        f"{engine} takes {ratio:.3f} times as long as the local pool, and "
        f"{statistics.median(of_cpu):.3f} times its CPU time; it starts in {start:.1f} s"
    )
    return 0 if ratio <= 1.15 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
