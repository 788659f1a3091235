"""Which upgrade broke it."""

from __future__ import annotations

import re

from regreen.bisect.dependencies import Upgrade, blame, is_requirements, partly, upgrades
from regreen.bisect.memory import Run
from regreen.bisect.runner import Judge
from regreen.bisect.signature import Signature
from regreen.codebase.trial import Trial

OLD = "# pinned\na==1.0\nB.c==2.0 \\\n    --hash=sha256:aa\nd[x]==3.0 ; python_version > '3'\ngone==1\n"
NEW = "# pinned\na==1.1\nB.c==2.1 \\\n    --hash=sha256:bb\nd[x]==3.1 ; python_version > '3'\ncome==1\n"


def test_upgrades_are_read_from_two_files() -> None:
    assert upgrades(OLD, NEW) == (
        Upgrade("a", "1.0", "1.1"),
        Upgrade("b-c", "2.0", "2.1"),
        Upgrade("d", "3.0", "3.1"),
        Upgrade("come", None, "1"),
        Upgrade("gone", "1", None),
    )
    assert str(Upgrade("gone", "1", None)) == "gone 1 -> removed"


def test_a_file_can_be_upgraded_in_part() -> None:
    assert partly(OLD, NEW, 5) == NEW
    half = partly(OLD, NEW, 2)
    assert upgrades(OLD, half) == upgrades(OLD, NEW)[:2]
    assert "--hash=sha256:bb" in half
    assert upgrades(OLD, partly(OLD, NEW, 0)) == ()


def test_the_upgrade_that_breaks_it_is_found() -> None:
    old = "".join(f"p{at}==1\n" for at in range(20))
    new = "".join(f"p{at}==2\n" for at in range(20))

    def run(trial: Trial) -> Run:
        broken = re.search(r"^p13==2$", trial.overlay["requirements.txt"].decode(), re.MULTILINE)
        seen = Signature("exit", 1) if broken else None
        return Run("s", "fail" if broken else "pass", seen, 0.1, "exit 1")

    found = blame(Trial(("x",)), "requirements.txt", old, new, run=run, judge=Judge("exit"))
    assert found.upgrade == Upgrade("p13", "1", "2")
    assert found.tests < 16


def test_requirement_files_are_told_from_others() -> None:
    assert is_requirements("requirements/dev-requirements.txt")
    assert is_requirements("constraints.txt")
    assert not is_requirements("src/requirements.py")
