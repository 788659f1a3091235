from __future__ import annotations

import pytest

from regreen.code.python_calls import parse_python
from regreen.languages.python.edits import make_edits, make_mutants

GCD = "def gcd(a, b):\n    if b == 0:\n        return a\n    else:\n        return gcd(a % b, b)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (GCD, GCD.replace("gcd(a % b, b)", "gcd(b, a % b)")),
        ("def f(n):\n    n ^= n - 1\n", "def f(n):\n    n &= n - 1\n"),
        ("def f(x):\n    while True:\n        x.pop()\n", "def f(x):\n    while x:\n        x.pop()\n"),
        ("def f(n, p):\n    return any(n % q for q in p)\n", "def f(n, p):\n    return all(n % q for q in p)\n"),
        ("def f(a, b):\n    if a < b:\n        return 1\n", "def f(a, b):\n    if a <= b:\n        return 1\n"),
        ("def f(xs):\n    s = set()\n    for x in xs:\n        g(x)\n", "def f(xs):\n    s = set()\n    for x in xs:\n        s.add(x)\n        g(x)\n"),
        ("def f(a, d):\n    return get(a, d) + 1\n", "def f(a, d):\n    return d + 1\n"),
        ("def f(a):\n    é = 'ü'; return a + 1\n", "def f(a):\n    é = 'ü'; return a - 1\n"),
    ],
)  # fmt: skip
def test_the_repair_is_among_the_edits(before: str, after: str) -> None:
    assert after in {edit.apply_to(before) for edit in make_edits(before)}


def test_most_edits_parse_and_all_change_something() -> None:
    made = [edit.apply_to(GCD) for edit in make_edits(GCD)]
    assert all(text != GCD for text in made)
    assert sum(parse_python(text) is not None for text in made) > 0.95 * len(made)


def test_mutants_stay_on_their_lines() -> None:
    found = make_mutants(GCD, [2])
    assert found
    assert {edit.line for edit in found} == {2}
    assert make_mutants("not python (", [1]) == []


def test_functions_inside_others_are_edited_with_their_own_names_alone() -> None:
    text = "def f(xs, start):\n    seen = set()\n\n    def g(node):\n        return any(g(x) for x in xs)\n\n    return g(start)\n"
    made = {edit.new.strip() for edit in make_edits(text, [5]) if edit.name == "insertion"}
    assert "seen.add(node)" in made
    near = [edit.prior for edit in make_edits(text, [5]) if edit.new.strip() == "seen.add(node)"]
    far = [edit.prior for edit in make_edits(text, [5]) if edit.new.strip() == "seen.add(start)"]
    assert min(near) > max(far)


def test_the_first_line_behind_a_byte_order_mark_is_edited_at_its_place() -> None:
    text = "\ufefflimit = 1 < 2\n"
    assert [edit.apply_to(text) for edit in make_mutants(text, [1])] == ["\ufefflimit = 2 < 2\n"]


def test_the_annotation_of_a_variable_gets_no_mutant() -> None:
    code = "def f(a):\n    sums: dict[str, list[1]] = make(a)\n    return sums\n"
    changed = [edit.apply_to(code).splitlines()[1] for edit in make_mutants(code, [2])]
    assert changed
    assert all(line.startswith("    sums: dict[str, list[1]] = ") for line in changed)
