"""The gymnasium environment."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("gymnasium")

import marline  # noqa: E402
from marline.gym import PATH_FEATURES, SchedulerEnv  # noqa: E402

SCENARIO: dict[str, Any] = {
    "duration": "1s",
    "links": {"a": {"rate": "6mbit", "delay": "10ms"}, "b": {"rate": "6mbit", "delay": "20ms"}},
    "workloads": [{"kind": "constant", "name": "live", "rate": "8mbit", "size": 1200}],
}


def quickest(seen: Any, paths: int) -> int:
    """Sends on the open path on which a packet arrives first."""
    table = seen[: paths * len(PATH_FEATURES)].reshape(paths, -1)
    arrival = np.where(table[:, 0] == 1, table[:, 1], np.inf)
    return int(np.argmin(arrival)) if np.isfinite(arrival).any() else 3 * paths


def play(env: SchedulerEnv, seed: int, choose: Any = quickest) -> tuple[float, marline.Results]:
    seen, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        seen, reward, over, truncated, _ = env.step(choose(seen, env.paths))
        assert not truncated and env.observation_space.contains(seen)
        total += reward
    results = env.results()
    assert results is not None
    return total, results


def test_it_is_an_environment() -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(SchedulerEnv(SCENARIO, workload="live"), skip_render_check=True)


def test_a_seed_gives_the_same_run() -> None:
    env = SchedulerEnv(SCENARIO, workload="live")
    first, again = play(env, 3), play(env, 3)
    assert first[0] == again[0]
    assert first[1].runs()[0]["values"] == again[1].runs()[0]["values"]


def test_the_reward_is_what_the_flow_wants() -> None:
    env = SchedulerEnv(SCENARIO, workload="live", deadline=0.1)
    good, results = play(env, 1)
    bad, _ = play(env, 1, lambda seen, paths: 0)
    units = results.fractions().to_dict()
    trials = units["trials"][units["measure"].index("live.refused")]
    # Nearly all of what was written came in time, and by one link alone it cannot.
    assert trials * 0.9 < good <= trials
    assert bad < good / 2


def test_copies_cost_and_waiting_sends_nothing() -> None:
    env = SchedulerEnv(SCENARIO, workload="live", price=0.5)
    env.reset(seed=1)
    _, plain, *_ = env.step(0)
    _, copied, *_ = env.step(env.paths)
    assert copied == pytest.approx(plain - 0.5)
    total, results = play(env, 1, lambda seen, paths: 3 * paths)
    assert results.runs()[0]["values"]["live.goodput_mbps"] == 0
    assert total <= 0


def test_a_run_may_be_left() -> None:
    env = SchedulerEnv(SCENARIO, workload="live")
    for seed in range(5):
        env.reset(seed=seed)
        env.step(0)
    env.close()
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0)
    with pytest.raises(ValueError, match="no workload"):
        SchedulerEnv(SCENARIO, workload="other")


def example(name: str) -> ModuleType:
    file = Path(__file__).parent.parent / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_learnt_is_held_against_auto() -> None:
    learnt, auto = example("learn_scheduler").main(generations=2, seeds=2)
    assert len(learnt) == len(auto) == 2
    # It is no rival after two generations, and it is no nonsense either.
    assert all(0.5 < mine / theirs < 3 for mine, theirs in zip(learnt, auto, strict=True))
