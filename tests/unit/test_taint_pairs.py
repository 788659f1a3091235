"""Small applications in pairs: the same handler once harmful and once with the check that makes it harmless.

The pairs stand in `tests/data/flows`: `# === name | rule` begins one, `# --- unsafe` and `# --- safe` its two
sides, `# >>> file` another module of that side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from regreen.taint.analysis import analyse_program, flow_confidence
from regreen.taint.program import Program

Files = dict[str, str]
FOLDER = Path(__file__).parents[1] / "data" / "flows"


def pairs() -> Iterator[tuple[str, str, Files, Files]]:
    for path in sorted(FOLDER.glob("*.txt")):
        for pair in re.split(r"^# === ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            head, _, rest = pair.partition("\n")
            name, rule = head.split(" | ")
            sides = dict(
                re.findall(r"^# --- (\w+)\n(.*?)(?=^# --- |\Z)", rest, re.MULTILINE | re.DOTALL)
            )
            yield name, rule, modules(sides["unsafe"]), modules(sides["safe"])


def modules(side: str) -> Files:
    first, *others = re.split(r"^# >>> ", side, flags=re.MULTILINE)
    return {"app.py": first} | {
        other.partition("\n")[0]: other.partition("\n")[2] for other in others
    }


def posted(files: Files) -> set[str]:
    analysis = analyse_program(Program.from_files(files), list(files))
    assert not analysis.unread
    return {
        f.rule
        for f in analysis.flows
        if flow_confidence(f.rule, f.origin, certain=f.certain) >= 0.8
    }


PAIRS = list(pairs())
NAMES = [name for name, *_ in PAIRS]


@pytest.mark.parametrize(("name", "rule", "unsafe", "safe"), PAIRS, ids=NAMES)
def test_the_check_is_what_makes_the_difference(
    name: str, rule: str, unsafe: Files, safe: Files
) -> None:
    assert rule in posted(unsafe), name
    assert posted(safe) == set(), name


def test_what_takes_too_many_steps_is_walked_again_without_its_deep_calls() -> None:
    # Given a handler whose helpers call each other five times over, eight deep
    helpers = "".join(
        f"def h{n}(x, y=0):\n" + f"    x = h{n + 1}(x, y)\n" * 5 + "    return x\n"
        for n in range(8)
    )
    code = (
        "import os\nfrom flask import Flask, request\napp = Flask(__name__)\n"
        f"{helpers}def h8(x, y=0):\n    z = [y, x, y]\n    return ' '.join(str(n) for n in z)\n"
        "@app.get('/')\ndef first():\n    h0(request.args['a'])\n    h0(request.args['b'])\n"
        "    os.system(request.args['c'])\n    return ''\n"
    )
    # When it is followed
    analysis = analyse_program(Program.from_files({"app.py": code}), ["app.py"])
    # Then the harm after the helpers is found, and nothing is left unread
    assert [f.rule for f in analysis.flows if f.certain] == ["command-injection"]
    assert not analysis.unread
