"""Plots in the papers' form, by matplotlib: single-column figures, one line style a scheduler.

Each function draws into `axes`, or into a new figure, and answers with the axes.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ._marline import Results

try:
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.axes import Axes
except ImportError as error:
    raise ImportError("matplotlib is not installed: pip install 'marline[plot]'") from error

COLUMN_INCHES = 3.5
"""Width of a column of an IEEE paper."""

LINES = ("-", "--", "-.", ":")
MARKERS = "os^Dv<>p*"
# Okabe and Ito's colours, which people who see few colours can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

STYLE: dict[str, Any] = {
    "figure.figsize": (COLUMN_INCHES, COLUMN_INCHES * 0.66),
    "figure.dpi": 150,
    "font.family": "serif",
    "font.size": 8,
    "axes.grid": True,
    "grid.linewidth": 0.3,
    "grid.alpha": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.fontsize": 7,
    "legend.framealpha": 0.9,
    "savefig.bbox": "tight",
    "pdf.fonttype": 42,
}


@contextmanager
def paper() -> Iterator[None]:
    """Figures that are made inside have a paper's size and letters."""
    with matplotlib.rc_context(STYLE):
        yield


def _axes(axes: Axes | None) -> Axes:
    if axes is not None:
        return axes
    with matplotlib.rc_context(STYLE):
        made: Axes = pyplot.subplots()[1]
    return made


def _look(number: int) -> dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": LINES[number % len(LINES)],
    }


def _label(measure: str, unit: str = "") -> str:
    return f"{measure} ({unit})" if unit else measure


def _number(text: str) -> float | None:
    """The number that an axis' value begins with, such as that of 20ms."""
    digits = text
    while digits:
        try:
            return float(digits)
        except ValueError:
            digits = digits[:-1]
    return None


def _rows(table: dict[str, list[Any]], **wanted: str) -> Iterable[int]:
    count = len(next(iter(table.values()), []))
    return (n for n in range(count) if all(table[key][n] == v for key, v in wanted.items()))


def against(
    results: Results,
    axis: str,
    measure: str,
    *,
    schedulers: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """A measure over the values of an axis: a line a scheduler, with the 95 % interval of the mean
    over seeds."""
    axes = _axes(axes)
    table = results.summary([measure]).to_dict()
    for number, scheduler in enumerate(schedulers or results.schedulers):
        rows = list(_rows(table, scheduler=scheduler, measure=measure))
        names = [table[axis][n] for n in rows]
        places = [_number(name) for name in names]
        at = [n if p is None else p for n, p in enumerate(places)]
        mean = [table["mean"][n] for n in rows]
        low = [
            m - (table["low"][n] if table["low"][n] is not None else m)
            for n, m in zip(rows, mean, strict=True)
        ]
        high = [
            (table["high"][n] if table["high"][n] is not None else m) - m
            for n, m in zip(rows, mean, strict=True)
        ]
        marker = MARKERS[number % len(MARKERS)]
        axes.errorbar(
            at, mean, yerr=[low, high], label=scheduler, marker=marker, capsize=2, **_look(number)
        )
        if None in places:
            axes.set_xticks(at, names)
    axes.set(xlabel=axis, ylabel=measure)
    axes.legend()
    return axes


def bars(
    results: Results,
    measure: str,
    *,
    schedulers: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """A measure by scheduler: bars, with the 95 % interval of the mean over seeds."""
    axes = _axes(axes)
    table = results.summary([measure]).to_dict()
    for number, scheduler in enumerate(schedulers or results.schedulers):
        for row in _rows(table, scheduler=scheduler, measure=measure):
            mean, low, high = (table[key][row] for key in ("mean", "low", "high"))
            error = None if low is None else [[mean - low], [high - mean]]
            axes.bar(number, mean, 0.6, yerr=error, capsize=3, color=_look(number)["color"])
    names = list(schedulers or results.schedulers)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylabel(measure)
    return axes


def distribution(
    results: Results,
    measure: str,
    *,
    schedulers: Sequence[str] | None = None,
    tail: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """The distribution function of a measure, such as `live.in_order_delay`: a line a scheduler,
    the mean of the seeds' quantiles. With `tail` what exceeds a value, on a logarithmic axis."""
    axes = _axes(axes)
    table = results.distributions().to_dict()
    unit = ""
    for number, scheduler in enumerate(schedulers or results.schedulers):
        found: dict[float, list[float]] = {}
        for row in _rows(table, scheduler=scheduler, measure=measure):
            found.setdefault(table["probability"][row], []).append(table["value"][row])
            unit = table["unit"][row]
        if not found:
            known = ", ".join(sorted(set(table["measure"])))
            raise ValueError(f"no distribution {measure!r} of {scheduler}; there are {known}")
        at = sorted(found)
        values = [sum(found[p]) / len(found[p]) for p in at]
        shown = [1 - p for p in at] if tail else at
        axes.plot(values, shown, label=scheduler, **_look(number))
    if tail:
        axes.set_yscale("log")
    axes.set(xlabel=_label(measure, unit), ylabel="P(longer)" if tail else "P(at most)")
    axes.legend()
    return axes


def over_time(
    results: Results,
    measure: str,
    *,
    seed: int | None = None,
    schedulers: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """A quantity over the time of one run, by scheduler."""
    axes = _axes(axes)
    table = results.series().to_dict()
    seed = min(table["seed"]) if seed is None else seed
    unit = ""
    for number, scheduler in enumerate(schedulers or results.schedulers):
        rows = [
            n
            for n in _rows(table, scheduler=scheduler, measure=measure)
            if table["seed"][n] == seed
        ]
        if not rows:
            known = ", ".join(sorted(set(table["measure"])))
            raise ValueError(f"no quantity {measure!r} over time; there are {known}")
        unit = table["unit"][rows[0]]
        times = [table["time_s"][n] for n in rows]
        axes.plot(times, [table["value"][n] for n in rows], label=scheduler, **_look(number))
    axes.set(xlabel="time (s)", ylabel=_label(measure, unit))
    axes.legend()
    return axes
