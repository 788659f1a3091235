"""A matrix that another job computed, read off the name that GitHub shows."""

from __future__ import annotations

import pytest

from regreen.actions.workflow import plan_workflow

WORKFLOW = """\
on: push
jobs:
  list:
    runs-on: ubuntu-latest
    outputs: {all: "${{ steps.x.outputs.all }}"}
    steps: [{id: x, run: ./list.sh}]
  test:
    needs: list
    NAME
    runs-on: ubuntu-latest
    strategy: {matrix: MATRIX}
    steps:
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python }}"}
      - run: tox -e ${{ matrix.env }}
"""


def planned(shown: str, matrix: str, name: str = "") -> tuple[bool, str, str | None]:
    text = WORKFLOW.replace("    NAME\n", f"    name: {name}\n" if name else "")
    job = plan_workflow(text.replace("MATRIX", matrix), job="test", shown=shown)[0]
    return job.supported, job.steps[-1].run, job.python


WHOLE = '"${{ fromJSON(needs.list.outputs.all) }}"'
AXES = '{python: "${{ fromJSON(needs.list.outputs.all) }}", env: [unit, docs]}'


@pytest.mark.parametrize(
    ("shown", "matrix", "name", "run", "python"),
    [
        ("test (3.12, unit)", AXES, "", "tox -e unit", "3.12"),
        ("test (3.12, unit)", WHOLE, "", "tox -e unit", "3.12"),
        (
            "Py 3.11 / lint",
            WHOLE,
            "Py ${{ matrix.python }} / ${{ matrix.env }}",
            "tox -e lint",
            "3.11",
        ),
        ("CI 3.13 (x)", AXES, "CI ${{ matrix.python }} (${{ matrix.env }})", "tox -e x", "3.13"),
    ],
)
def test_the_name_tells_the_cell(shown: str, matrix: str, name: str, run: str, python: str) -> None:
    assert planned(shown, matrix, name) == (True, run, python)


@pytest.mark.parametrize(
    "shown", ["", "test", "test (3.12)", "test (3.12, a, b)", "lint (3.12, a)"]
)
def test_a_name_that_does_not_tell_leaves_it_unsupported(shown: str) -> None:
    assert not planned(shown, WHOLE)[0]
