"""Plots have what the results have."""

import pytest

pytest.importorskip("matplotlib")

import matplotlib  # noqa: E402

matplotlib.use("agg")

import marline  # noqa: E402
from marline import plot  # noqa: E402


@pytest.fixture(scope="module")
def results() -> marline.Results:
    from conftest import SMALL

    return marline.run(SMALL)


def test_lines_against_an_axis(results: marline.Results) -> None:
    axes = plot.against(results, "links.b.delay", "live.in_order_delay.p99_ms")
    summary = results.summary(["live.in_order_delay.p99_ms"]).to_dict()
    lines = [container.lines[0] for container in axes.containers]
    assert [line.get_xdata().tolist() for line in lines] == [[10.0, 30.0]] * 2
    drawn = [y for line in lines for y in line.get_ydata()]
    wanted = [
        mean
        for scheduler in results.schedulers
        for mean, name in zip(summary["mean"], summary["scheduler"], strict=True)
        if name == scheduler
    ]
    assert drawn == wanted
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == results.schedulers


def test_distributions_rise_and_tails_fall(results: marline.Results) -> None:
    axes = plot.distribution(results, "live.in_order_delay")
    for line in axes.get_lines():
        assert list(line.get_ydata()) == sorted(line.get_ydata())
        assert list(line.get_xdata()) == sorted(line.get_xdata())
    tail = plot.distribution(results, "live.in_order_delay", tail=True)
    assert tail.get_yscale() == "log"
    with pytest.raises(ValueError, match=r"there are .*live\.in_order_delay"):
        plot.distribution(results, "live.no_such")


def test_bars_and_times(results: marline.Results) -> None:
    axes = plot.bars(results, "live.goodput_mbps", schedulers=["edpf"])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["edpf"]
    axes = plot.over_time(results, "live.goodput_mbps", seed=2)
    assert len(axes.get_lines()) == 2
    with pytest.raises(ValueError, match="over time"):
        plot.over_time(results, "live.no_such")


def test_figures_have_a_papers_width(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from matplotlib import pyplot

    with plot.paper():
        figure, _ = pyplot.subplots()
    assert figure.get_size_inches()[0] == plot.COLUMN_INCHES
    figure.savefig(tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
