"""Schedulers and applications written in Python."""

from typing import Any

import pytest
from conftest import SMALL

import marline

ONE_CELL = {**SMALL, "vary": {}, "seeds": 1}


class Quickest:
    """The open path on which a packet arrives first: what `edpf` does without its queues."""

    awaits_room = True

    def plan(self, step: marline.PlanningStep) -> None:
        while step.next_len() is not None:
            open_paths = [(p.arrival, i) for i, p in enumerate(step.paths) if p.has_room]
            if not open_paths:
                return
            step.send(min(open_paths)[1])


class OnlyFirst:
    """The first path alone."""

    def plan(self, step: marline.PlanningStep) -> None:
        while step.next_len() is not None and step.paths and step.paths[0].has_room:
            step.send(0)


def test_a_scheduler_decides() -> None:
    marline.add_scheduler("only-first", OnlyFirst)
    marline.add_scheduler("quickest", Quickest, help="the quickest open path")
    results = marline.run(ONE_CELL, schedulers=["only-first", "quickest"])
    first, quick = (run["values"] for run in results.runs())
    # The other one is the first while it is the only one: at the start.
    assert first["path.b.throughput_mbps"] < 0.5 < 4 < first["path.a.throughput_mbps"]
    # 8 Mb/s do not fit one link of 6 Mb/s, and do fit two.
    assert first["live.goodput_mbps"] < 6.1 < 7.5 < quick["live.goodput_mbps"]
    assert marline.schedulers()["quickest"] == "the quickest open path"
    assert results == marline.run(ONE_CELL, schedulers=["only-first", "quickest"], threads=1)


def test_a_scheduler_may_copy_and_learns_what_became_of_it() -> None:
    reported: list[str] = []

    class Twice:
        def plan(self, step: marline.PlanningStep) -> None:
            while step.next_len() is not None and all(p.has_room for p in step.paths):
                symbol = step.send(0)
                assert symbol.len > 0
                if len(step.paths) == 2:
                    step.copy(1, symbol)

        def on_feedback(
            self, now: float, symbol: marline.Symbol, path: int, outcome: str, sent: float
        ) -> None:
            assert now >= sent and symbol.len > 0 and path in (0, 1)
            reported.append(outcome)

    marline.add_scheduler("twice", Twice)
    scenario = marline.Scenario(
        {**ONE_CELL, "workloads": [{"kind": "constant", "name": "live", "rate": "2mbit"}]}
    )
    values = marline.run(scenario, schedulers="twice").runs()[0]["values"]
    assert values["live.redundancy"] > 0.9
    assert {"sent", "acked"} <= set(reported)


def test_an_exception_ends_the_run_and_is_raised() -> None:
    class Breaks:
        def plan(self, step: marline.PlanningStep) -> None:
            raise ZeroDivisionError("in the scheduler")

    marline.add_scheduler("breaks", Breaks)
    with pytest.raises(ZeroDivisionError, match="in the scheduler"):
        marline.run(ONE_CELL, schedulers="breaks")


def test_a_step_is_of_no_use_afterwards() -> None:
    kept: list[marline.PlanningStep] = []

    class Keeps(OnlyFirst):
        def plan(self, step: marline.PlanningStep) -> None:
            kept.append(step)
            super().plan(step)

    marline.add_scheduler("keeps", Keeps)
    marline.run(ONE_CELL, schedulers="keeps")
    for use in (lambda s: s.paths, lambda s: s.next_len(), lambda s: s.send(0), lambda s: s.now):
        with pytest.raises(RuntimeError, match="during the call"):
            use(kept[0])


def test_wrong_indices_and_names_are_named() -> None:
    class Wrong:
        def plan(self, step: marline.PlanningStep) -> None:
            step.send(9)

    marline.add_scheduler("wrong", Wrong)
    with pytest.raises(IndexError, match="none with index 9"):
        marline.run(ONE_CELL, schedulers="wrong")
    for name in ("", "Big", "auto", "a:b"):
        with pytest.raises(ValueError):
            marline.add_scheduler(name, Wrong)
    with pytest.raises(marline.ScenarioError, match="edpf"):
        marline.add_scheduler("edpf", Wrong)
    with pytest.raises(ValueError, match="no kind of flow"):
        marline.add_scheduler("kinds", Wrong, kinds=["letters"])


def test_a_name_may_be_given_again() -> None:
    marline.add_scheduler("again", OnlyFirst)
    before = marline.run(ONE_CELL, schedulers="again").runs()
    marline.add_scheduler("again", Quickest)
    after = marline.run(ONE_CELL, schedulers="again").runs()
    assert before != after


class AskAndAnswer:
    """Asks for 5 kB every 50 ms; the other end answers with 20 kB."""

    answers = 0

    def start(self, cx: marline.Context) -> None:
        self.wake(cx)

    def wake(self, cx: marline.Context) -> None:
        cx.write(5_000, tag=round(cx.now * 1e6))
        cx.wake_after(0.05)

    def delivered(self, cx: marline.Context, delivery: marline.Delivery) -> None:
        assert delivery.size == 5_000 and delivery.written == pytest.approx(delivery.tag / 1e6)
        cx.reply(20_000, delivery.tag)

    def answered(self, cx: marline.Context, delivery: marline.Delivery) -> None:
        assert delivery.size == 20_000
        AskAndAnswer.answers += 1
        cx.replied(delivery.tag / 1e6)


def test_an_application_asks_and_answers() -> None:
    scenario = {
        **ONE_CELL,
        "schedulers": ["edpf"],
        "links": {"a": {"rate": "20mbit", "delay": "10ms"}},
    }
    AskAndAnswer.answers = 0
    results = marline.run(scenario, workloads={"live": AskAndAnswer})
    values = results.runs()[0]["values"]
    # 5 kB at 20 Mb/s take 2 ms, 20 kB 8 ms, and both travel 10 ms.
    assert 30 < values["live.reply_delay.p50_ms"] < 36
    # In a second: one every 50 ms; the last are on their way.
    assert 17 <= AskAndAnswer.answers <= 20
    with pytest.raises(ValueError, match="there are: live"):
        marline.run(scenario, workloads={"other": AskAndAnswer})


def test_random_numbers_are_the_seeds() -> None:
    class Draws:
        drawn: list[float] = []

        def start(self, cx: marline.Context) -> None:
            Draws.drawn.append(cx.uniform() + cx.exponential(2.0))
            cx.write(1000)

    def draws(seeds: list[int]) -> list[float]:
        Draws.drawn = []
        marline.run(
            {**ONE_CELL, "schedulers": ["edpf"]}, seeds=seeds, threads=1, workloads={"live": Draws}
        )
        return Draws.drawn

    assert draws([1, 2]) == draws([1, 2])
    assert len(set(draws([1, 2]))) == 2


def test_an_application_that_breaks_ends_the_run() -> None:
    class Breaks:
        def start(self, cx: marline.Context) -> None:
            cx.wake_after(0.01)

        def wake(self, cx: marline.Context) -> None:
            raise OverflowError("in the application")

    class NotMade:
        def __init__(self) -> None:
            raise KeyError("not made")

    broken: list[tuple[Any, type[Exception]]] = [(Breaks, OverflowError), (NotMade, KeyError)]
    for application, error in broken:
        with pytest.raises(error):
            marline.run(ONE_CELL, workloads={"live": application})
