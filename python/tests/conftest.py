"""What tests share."""

from typing import Any

import pytest

import marline

SMALL: dict[str, Any] = {
    "title": "Small",
    "duration": "1s",
    "seeds": 3,
    "schedulers": ["min-rtt", "edpf"],
    "links": {
        "a": {"rate": "6mbit", "delay": "10ms", "loss": "1%"},
        "b": {"rate": "6mbit", "delay": "10ms"},
    },
    "workloads": [{"kind": "constant", "name": "live", "rate": "8mbit"}],
    "vary": {"links.b.delay": ["10ms", "30ms"]},
}


@pytest.fixture
def small() -> marline.Scenario:
    """Two cells, two schedulers, three seeds: twelve runs."""
    return marline.Scenario(SMALL)
