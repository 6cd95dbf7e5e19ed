"""The notebooks run from the first cell to the last, and are as short as is said of them."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")

FOLDER = Path(__file__).parent.parent / "notebooks"


def execute(name: str, folder: Path) -> Any:
    """Runs a copy of the notebook in an empty folder; with its outputs."""
    shutil.copy(FOLDER / name, folder)
    notebook = nbformat.read(folder / name, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": folder}}
    )
    return client.execute()


def test_from_a_scenario_to_a_figure_in_thirty_lines(tmp_path: Path) -> None:
    notebook = execute("figure.ipynb", tmp_path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(map(bool, "\n".join(cell.source for cell in code).splitlines())) <= 30
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert "4 cells" in code[1].outputs[0].text
    assert any("image/png" in output.get("data", {}) for output in code[-1].outputs)


def test_from_a_recording_to_the_scheduler_that_would_have_served_it(tmp_path: Path) -> None:
    if not os.environ.get("MARLINE"):
        pytest.skip("MARLINE names no program, which records and replays")
    notebook = execute("recording.ipynb", tmp_path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    said = code[-2].outputs[0].text
    assert "would have served it best" in said
    assert (tmp_path / "recording.pdf").read_bytes().startswith(b"%PDF")
