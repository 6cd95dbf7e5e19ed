"""A scheduler that is learnt, in numpy alone, held against `auto`.

The policy scores each path by a few of its features and takes the lowest; its weights are found by
the cross-entropy method: draw weights, run them, keep the best, draw around those.

    python examples/learn_scheduler.py
"""

import numpy as np

import marline
from marline.gym import PATH_FEATURES, SchedulerEnv

SCENARIO = {
    "duration": "4s",
    "warmup": "500ms",
    "links": {
        "wifi": {"rate": "8mbit", "delay": "8ms", "jitter": "6ms", "queue": "80ms"},
        "lte": {"rate": "6mbit", "delay": "30ms", "queue": "120ms"},
    },
    "workloads": [{"kind": "constant", "name": "live", "rate": "9mbit", "size": 1200}],
}
DELAY = "live.in_order_delay.p99_ms"
CHOSEN = [PATH_FEATURES.index(name) for name in ("arrival_s", "srtt_s", "rtt_var_s", "ahead_kb")]
SCALE = np.array([0.05, 0.05, 0.01, 50.0])


def decide(weights: np.ndarray, seen: np.ndarray, paths: int) -> int:
    """The path with the lowest score of those that have room."""
    features = seen[: paths * len(PATH_FEATURES)].reshape(paths, -1)
    scores = (features[:, CHOSEN] / SCALE) @ weights
    scores[features[:, 0] < 1] = np.inf
    return int(np.argmin(scores)) if np.isfinite(scores).any() else 3 * paths


def episode(env: SchedulerEnv, weights: np.ndarray, seed: int) -> tuple[float, marline.Results]:
    """The reward of a run, and its results."""
    seen, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        seen, reward, over, _, _ = env.step(decide(weights, seen, env.paths))
        total += reward
    results = env.results()
    assert results is not None
    return total, results


def learn(env: SchedulerEnv, generations: int, seed: int = 0) -> np.ndarray:
    """Weights by the cross-entropy method."""
    random = np.random.default_rng(seed)
    mean, spread = np.array([0.0, 1.0, 0.0, 0.0]), np.ones(len(CHOSEN))
    for generation in range(generations):
        drawn = random.normal(mean, spread, (8, len(CHOSEN)))
        rewards = [episode(env, weights, 100 + generation)[0] for weights in drawn]
        best = drawn[np.argsort(rewards)[-3:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
    return mean


def p99(results: marline.Results) -> float:
    """The measure that is compared (ms)."""
    return float(results.values([DELAY]).column("value")[0])


def main(generations: int = 6, seeds: int = 5) -> tuple[list[float], list[float]]:
    """The 99th percentiles of what was learnt and of `auto`, over seeds that nothing learnt of."""
    env = SchedulerEnv(SCENARIO, workload="live", deadline=0.06)
    weights = learn(env, generations)
    learnt = [p99(episode(env, weights, seed)[1]) for seed in range(1, seeds + 1)]
    auto = [
        p99(marline.run(SCENARIO, schedulers="auto", seeds=[seed])) for seed in range(1, seeds + 1)
    ]
    return learnt, auto


if __name__ == "__main__":
    learnt, auto = main()
    print(f"weights are learnt; 99th percentile of the delay over {len(auto)} other seeds:")
    print(f"  learnt {np.mean(learnt):6.1f} ms")
    print(f"  auto   {np.mean(auto):6.1f} ms")
    print(f"  ratio  {np.exp(np.mean(np.log(np.array(learnt) / np.array(auto)))):6.2f}")
