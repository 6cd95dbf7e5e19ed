"""Sweeps on Ray and Dask as they come from PyPI."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL
from test_sweep import digests

import marline

pytestmark = pytest.mark.engines


@pytest.fixture
def plan() -> marline.Plan:
    return marline.Plan(marline.Scenario({**SMALL, "seeds": 20}))


def kill_one(find: Any, killed: list[int]) -> None:
    """Kills a worker as soon as one works."""
    for _ in range(2_000):
        for pid in find():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            return
        time.sleep(0.01)


def children(words: str) -> list[int]:
    """Descendants of this process whose command line has these words."""
    found, parents = [], {os.getpid()}
    processes = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            parent = int(text.rpartition(")")[2].split()[1])
            processes.append((int(folder.name), parent, command))
    for _ in range(6):
        parents |= {pid for pid, parent, _ in processes if parent in parents}
    found = [pid for pid, _, command in processes if pid in parents and words in command]
    return found


def test_ray_gives_the_same_bytes_though_a_worker_is_killed(
    plan: marline.Plan, tmp_path: Path
) -> None:
    ray = pytest.importorskip("ray")
    marline.sweep(plan, out=tmp_path / "local")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    killed: list[int] = []
    try:
        # A worker is named after the task that it makes.
        find = lambda: children("ray::_work")  # noqa: E731
        killer = threading.Thread(target=kill_one, args=(find, killed))
        killer.start()
        marline.sweep(plan, "ray", out=tmp_path / "ray", chunk=4)
        killer.join()
    finally:
        ray.shutdown()
    assert len(killed) == 1
    assert digests(tmp_path / "ray") == digests(tmp_path / "local")


def test_dask_gives_the_same_bytes_though_a_worker_is_killed(
    plan: marline.Plan, tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    marline.sweep(plan, out=tmp_path / "local")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        killed: list[int] = []

        def work(progress: marline.Progress) -> None:
            if progress.over and not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        marline.sweep(plan, "dask", out=tmp_path / "dask", chunk=4, client=client, progress=work)
    assert len(killed) == 1
    assert digests(tmp_path / "dask") == digests(tmp_path / "local")
