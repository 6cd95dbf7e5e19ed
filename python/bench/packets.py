"""How many packets a second a scheduler and an application written in Python handle.

    python bench/packets.py [SECONDS]

The same run by the scheduler in Python, and by `edpf` in Rust, in seconds of one core, so that what
else the machine does changes nothing. Ends with 1 below the 20,000 packets a second that
docs/PYTHON.md promises.
"""

import sys
import time

import marline

SIZE = 1200


class Quickest:
    """The open path on which a packet arrives first."""

    awaits_room = True

    def plan(self, step: marline.PlanningStep) -> None:
        while step.next_len() is not None:
            best, when = -1, float("inf")
            for index, path in enumerate(step.paths):
                if path.has_room and path.arrival < when:
                    best, when = index, path.arrival
            if best < 0:
                return
            step.send(best)


class Steady:
    """A packet every 120 µs: 80 Mb/s."""

    def start(self, cx: marline.Context) -> None:
        self.due = cx.now
        self.wake(cx)

    def wake(self, cx: marline.Context) -> None:
        while self.due <= cx.now:
            cx.write(SIZE)
            self.due += SIZE * 8 / 80e6
        cx.wake_after(max(0.0, self.due - cx.now))

    def delivered(self, cx: marline.Context, delivery: marline.Delivery) -> None:
        pass


def measure(seconds: int, scheduler: str, **options: object) -> float:
    """Packets that are handled in a second of a core."""
    link = {"rate": "60mbit", "delay": "10ms", "queue": "100ms"}
    load = {"kind": "constant", "name": "live", "rate": "80mbit", "size": SIZE}
    scenario = marline.Scenario(
        {"duration": f"{seconds}s", "links": {"a": link, "b": link}, "workloads": [load]}
    )
    began = time.process_time()
    results = marline.run(scenario, schedulers=scheduler, seeds=1, threads=1, **options)  # type: ignore[arg-type]
    took = time.process_time() - began
    goodput = results.runs()[0]["values"]["live.goodput_mbps"]
    return float(goodput) * 1e6 * seconds / (8 * SIZE) / took


def main() -> int:
    """Prints the figures; the exit code."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    marline.add_scheduler("quickest", Quickest)
    native = measure(seconds, "edpf")
    scheduler = measure(seconds, "quickest")
    both = measure(seconds, "quickest", workloads={"live": Steady})
    print(f"in Rust (edpf)                        {native:10,.0f} packets/s")
    print(f"a scheduler in Python                 {scheduler:10,.0f} packets/s")
    print(f"a scheduler and an application in it  {both:10,.0f} packets/s")
    return 0 if min(scheduler, both) >= 20_000 else 1


if __name__ == "__main__":
    sys.exit(main())
