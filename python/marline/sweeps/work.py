"""What a worker does, on whatever machine it is."""

import hashlib
import importlib
from collections.abc import Callable

from .._marline import Plan

_plans: dict[str, Plan] = {}


def opened(text: str) -> Plan:
    """The plan of a text; the last one is kept, since a worker makes many tasks of it."""
    key = hashlib.sha256(text.encode()).hexdigest()
    plan = _plans.get(key)
    if plan is None:
        plan = Plan.from_json(text)
        _plans.clear()
        _plans[key] = plan
    return plan


def prepare(setup: str | None) -> None:
    """Imports the module that makes schedulers known, or calls `module:function`."""
    if setup is None:
        return
    module, _, function = setup.partition(":")
    imported = importlib.import_module(module)
    if function:
        getattr(imported, function)()


def make(
    text: str,
    runs: tuple[int, ...],
    setup: str | None = None,
    check: Callable[[], object] | None = None,
) -> bytes:
    """The lines of these runs of the plan; what `check` raises ends it."""
    prepare(setup)
    return opened(text).make(list(runs), check=check)
