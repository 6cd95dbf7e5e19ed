"""The examples in docstrings, those of Rust included."""

import doctest
import types

import pytest

import marline
import marline.codes
import marline.protocols
import marline.sweeps.driver


def documented() -> dict[str, str]:
    """Docstrings by name."""
    found: dict[str, str] = {}
    for module in (marline, marline.codes, marline.protocols, marline.sweeps.driver):
        found[module.__name__] = module.__doc__ or ""
        for name in getattr(module, "__all__", []):
            one = getattr(module, name)
            if not isinstance(one, str | types.ModuleType):
                found[f"{module.__name__}.{name}"] = one.__doc__ or ""
    return found


@pytest.mark.parametrize("name", sorted(documented()))
def test_examples(name: str) -> None:
    text = documented()[name]
    assert text.strip(), f"{name} has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    result = doctest.DocTestRunner(optionflags=flags).run(test)
    assert result.failed == 0


def test_there_are_examples() -> None:
    with_examples = [name for name, text in documented().items() if ">>>" in text]
    assert len(with_examples) >= 9
