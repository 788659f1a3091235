"""A rename or a move is read from the commit that made it, and followed to the callers that it forgot."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.fixers.ladder import fix_failure
from regreen.languages.python.forgotten_callers import complete_change
from tests.unit.repairs import CALC, GREEN, TESTS, Repository, job, sandbox_or_skip

SHAPE = "class Shape:\n    size: int = 1\n\n    def area(self):\n        return self.size ** 2\n"
DISK = "from pkg.shape import Shape\n\n\nclass Disk(Shape):\n    def area(self):\n        return super().area() * 3\n"
LIST = "import os\n\n\ndef area(shapes, plan):\n    return [os.area, [x.area() for x in shapes], plan.append('area')]\n"
USE = "from pkg.calc import total as add\nimport pkg.calc as c\n\n\ndef use(total):\n    return add(total) + c.total(total)  # total\n"
NO_MODULE = "ModuleNotFoundError: No module named 'pkg.calc'"


@pytest.mark.parametrize(
    ("start", "change", "said", "after"),
    [
        ({"a.py": USE}, {"pkg/calc.py": CALC.replace("total", "sum_of")}, "module 'pkg.calc' has no attribute 'total'", {"a.py": USE.replace("import total", "import sum_of").replace("c.total", "c.sum_of")}),
        ({"a.py": "from pkg.calc import total\n\nx = total\n\n\ndef f(total):\n    return total\n"}, {"pkg/calc.py": CALC.replace("total", "sum_of")}, "cannot import name 'total'", {"a.py": "from pkg.calc import sum_of as total\n\nx = total\n\n\ndef f(total):\n    return total\n"}),
        ({"a.cfg": "run = pkg.calc:mean\n", "b.md": "The mean of `pkg.calc.mean`.\n"}, {"pkg/calc.py": CALC.replace("def mean", "def average")}, "has no attribute 'mean'", {"a.cfg": "run = pkg.calc:average\n", "b.md": "The mean of `pkg.calc.average`.\n"}),
        ({"pkg/shape.py": SHAPE, "pkg/disk.py": DISK}, {"pkg/shape.py": SHAPE.replace("area", "surface")}, "'super' object has no attribute 'area'", {"pkg/disk.py": DISK.replace("area", "surface")}),
        ({"pkg/shape.py": SHAPE, "a.py": "from pkg.shape import Shape\n\nx = Shape(size=2).size\n"}, {"pkg/shape.py": SHAPE.replace("size", "width")}, "got an unexpected keyword argument 'size'", {"a.py": "from pkg.shape import Shape\n\nx = Shape(width=2).width\n"}),
        ({"pkg/grow.py": "def grow(by, times=1, most=9):\n    return by\n", "a.py": "from pkg.grow import grow\n\nx = grow(1, 2, most=3) + grow(1, grow(4,\n    5), 6) + grow(*[1, 2])\n"}, {"pkg/grow.py": "def grow(by, *, times=1, most=9):\n    return by\n"}, "TypeError: grow() takes 1 positional argument but 2 positional arguments (and 1 keyword-only argument) were given", {"a.py": "from pkg.grow import grow\n\nx = grow(1, times=2, most=3) + grow(1, times=grow(4,\n    times=5), most=6) + grow(*[1, 2])\n"}),
        ({"pkg/box.py": "class Box:\n    def __init__(self, size, lid=None):\n        self.size = size\n", "a.py": "from pkg import box\n\nx = box.Box(1, 2)\n"}, {"pkg/box.py": "class Box:\n    def __init__(self, size, *, lid=None):\n        self.size = size\n"}, "TypeError: Box.__init__() takes 2 positional arguments but 3 were given", {"a.py": "from pkg import box\n\nx = box.Box(1, lid=2)\n"}),
        ({"pkg/star.py": "@frozen\nclass Star:\n    name: str\n    height: float = 0.0\n", "a.py": "from pkg.star import Star\n\nx = [Star('Vega', 51.0)]\n"}, {"pkg/star.py": "@frozen(kw_only=True)\nclass Star:\n    name: str\n    height: float = 0.0\n"}, "TypeError: Star.__init__() takes 1 positional argument but 3 were given", {"a.py": "from pkg.star import Star\n\nx = [Star(name='Vega', height=51.0)]\n"}),
        ({"pkg/box.py": "def open_box(lid, key):\n    return lid\n", "a.py": "from pkg.box import open_box\n\nx = open_box(1, 2, 3)\n"}, {"pkg/box.py": "def open_box(lid, *, bolt):\n    return lid\n"}, "open_box() takes 1 positional argument but 3 were given", {}),
        ({"pkg/wire.py": "def send(data, urgent=0):\n    return data\n", "a.py": "from pkg import wire\n\nx = wire.send((1), 2), conn.send(s, 4), wire.send(1, urgent=2), wire.send(1, (2), **y)\n"}, {"pkg/wire.py": "def send(data, *, urgent=0):\n    return data\n"}, "send() takes 1 positional argument but 2 were given", {"a.py": "from pkg import wire\n\nx = wire.send((1), urgent=2), conn.send(s, 4), wire.send(1, urgent=2), wire.send(1, (2), **y)\n"}),
        ({"pkg/wire.py": "def send(data, urgent=0):\n    return data\n", "a.py": "from pkg.wire import send\n\nx = send(  # now\n    (1), (2))\ny = send(z for z in x)\n"}, {"pkg/wire.py": "def send(*, data, urgent=0):\n    return data\n"}, "send() takes 0 positional arguments but 2 were given", {"a.py": "from pkg.wire import send\n\nx = send(  # now\n    (1), urgent=(2))\ny = send(z for z in x)\n"}),
        ({"pkg/box.py": "class Box:\n    def get(self, key, default):\n        return key\n", "a.py": "x = {}.get('a', 1)\n"}, {"pkg/box.py": "class Box:\n    def get(self, key, *, default):\n        return key\n"}, "Box.get() takes 2 positional arguments but 3 were given", {}),
        ({"pkg/box.py": "class Box:\n    @staticmethod\n    def lift(by, times):\n        return by\n", "a.py": "from pkg.box import Box\n\nx = Box().lift\n"}, {"pkg/box.py": "class Box:\n    @staticmethod\n    def lift(by, *, times):\n        return by\n"}, "Box.lift() takes 1 positional argument but 2 were given", {}),
        # the name stands for other things too: only what is known to be the class follows
        ({"pkg/shape.py": SHAPE, "b.py": "class Room:\n    area = 3\n", "a.py": "from pkg.shape import Shape\n\n\ndef f(room):\n    return room.area + Shape().area()\n"}, {"pkg/shape.py": SHAPE.replace("area", "surface")}, "has no attribute 'area'", {"a.py": "from pkg.shape import Shape\n\n\ndef f(room):\n    return room.area + Shape().surface()\n"}),
        ({"pkg/shape.py": SHAPE, "a.py": LIST}, {"pkg/shape.py": SHAPE.replace("area", "surface")}, "has no attribute 'area'", {}),
        ({"pkg/b.py": "from .calc import (\n    mean,\n    total,\n)\n"}, {"pkg/calc.py": None, "pkg/sums.py": CALC}, NO_MODULE, {"pkg/b.py": "from .sums import mean, total\n", "tests/test_calc.py": TESTS.replace("pkg.calc", "pkg.sums")}),
        ({"pkg/b.py": "from .calc import mean, total\n"}, {"pkg/calc.py": "from pkg.sums import total\n\n\ndef mean" + CALC.split("def mean")[1], "pkg/sums.py": CALC.split("\n\n\ndef mean")[0] + "\n"}, "cannot import name 'nothing' from 'pkg.calc'", {}),
        ({"a.py": USE}, {"pkg/calc.py": CALC.split("\n\n\ndef mean")[0] + "\n"}, "cannot import name 'mean'", {}),
    ],
)  # fmt: skip
def test_a_change_is_followed_to_what_is_known_to_mean_it(
    tmp_path: Path,
    start: dict[str, str],
    change: dict[str, str | None],
    said: str,
    after: dict[str, str],
) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("Start", {**GREEN, **start})
    culprit = repository.commit("Change", change)
    rev = repository.commit("Note", {"NOTES.txt": "nothing\n"})
    made = complete_change(repository.open(), rev, None, said)
    texts = dict(made.texts) if made else {}
    assert {path: text for path, text in texts.items() if path in start or path in after} == after
    assert made is None or (made.culprit, made.is_guess) == (culprit, "by name" in made.summary)


def test_a_body_that_changed_with_its_name_is_a_guess(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("Start", GREEN)
    changed = CALC.replace("total", "sum_of").replace("+= value", "+= 2 * value")
    rev = repository.commit("Change", {"pkg/calc.py": changed})
    made = complete_change(repository.open(), rev, None, "cannot import name 'total'")
    assert made is not None
    assert made.is_guess


def test_a_caller_that_no_test_runs_waits_for_a_person(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    use = "def use():\n    from pkg import calc\n\n    return calc.total([1])\n"
    test = "from pkg import a, b\n\n\ndef test_use():\n    assert a.use() == 1 and b\n"
    repository.commit("Start", {**GREEN, "pkg/a.py": use, "pkg/b.py": use, "tests/test_a.py": test})
    tests = TESTS.replace("total", "sum_of")
    changed = {"pkg/calc.py": CALC.replace("total", "sum_of"), "tests/test_calc.py": tests}
    rev = repository.commit("Change", changed)
    found = fix_failure(job(rev, reruns=1), git=repository.open(), sandbox=sandbox_or_skip(), model=None)  # fmt: skip
    assert (found.outcome, found.rung) == ("needs_human", "recipe")
    assert "no test notices what was changed at pkg/b.py:4" in str(found.gate)
    assert "pkg/a.py:4" not in str(found.gate)
