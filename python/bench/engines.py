"""What an engine costs beside threads of this process, over small cells.

    python bench/engines.py [ENGINE] [RUNS] [ROUNDS]

The same sweep of RUNS cells (10,000) by the local pool with two workers and by ENGINE (ray) with
two, ROUNDS times (3) in turn, because the machine may have other work. The engine is there already;
what its start takes is printed beside. Ends with 1 if it takes more than 1.15 times as long.
"""

import os
import statistics
import sys
import time
from typing import Any

import marline


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
    ratios = []
    for _ in range(int(rounds)):
        began = time.perf_counter()
        local = marline.sweep(plan, "local", workers=2)
        between = time.perf_counter()
        there = marline.sweep(plan, engine, workers=2, **options)
        took, local_took = time.perf_counter() - between, between - began
        assert there == local
        ratios.append(took / local_took)
        print(f"{len(plan)} runs: local {local_took:.1f} s, {engine} {took:.1f} s", flush=True)
    stop()
    ratio = statistics.median(ratios)
    print(f"{engine} takes {ratio:.3f} times as long as the local pool; it starts in {start:.1f} s")
    return 0 if ratio <= 1.15 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
