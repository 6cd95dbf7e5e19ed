"""What the whole `repro` costs: a share of its runs measured, the rest computed.

    python bench/repro.py [RUNS_OF_EACH] [CORES …]

Of each experiment but the examples, RUNS_OF_EACH (3) runs are made, spread evenly over its cells,
schedulers and seeds, and their CPU time is taken for that of all its runs. From the sum and the
longest run follows how long a number of cores takes, if all are busy to the end: docs/SCALE.md.
"""

import sys
import time

import marline


def sampled(plan: marline.Plan, count: int) -> list[float]:
    """CPU seconds of some runs, spread evenly."""
    step = max(1, len(plan) // count)
    took = []
    for number in range(step // 2, len(plan), step):
        began = time.process_time()
        plan.make([number])
        took.append(time.process_time() - began)
    return took[:count]


def main(count: str = "3", *cores: str) -> None:
    """Prints a line an experiment, and the sum."""
    runs, seconds, longest, left_out = 0, 0.0, 0.0, []
    print(f"{'experiment':32} {'runs':>7} {'s/run':>8} {'CPU h':>8}")
    for name in marline.experiments():
        if name.split("/")[0] == "examples":
            continue
        try:
            plan = marline.Plan(marline.Scenario(name))
        except marline.ScenarioError:
            left_out.append(name)
            continue
        took = sampled(plan, int(count))
        mean = sum(took) / len(took)
        runs, seconds = runs + len(plan), seconds + mean * len(plan)
        longest = max(longest, *took)
        print(f"{name:32} {len(plan):7} {mean:8.2f} {mean * len(plan) / 3600:8.2f}", flush=True)
    print(
        f"all: {runs} runs, {seconds / 3600:.1f} hours of a core, the longest run {longest:.1f} s"
    )
    print(f"left out, they need measured traces: {', '.join(left_out) or 'none'}")
    for number in cores or ("2", "64", "1000"):
        wall = max(seconds / int(number), longest)
        print(f"{number} cores: {wall / 3600:.2f} h ({wall / 60:.0f} min)")


if __name__ == "__main__":
    main(*sys.argv[1:])
