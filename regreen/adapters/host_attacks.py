"""Traps that foreign code sets inside a box for whoever looks at its files from outside."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from regreen.errors import OutsideError, UserError
from regreen.ports import Box

_SOON_S = 15.0
_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class HostAttack:
    """A trap, and the host's step into it. `spring` returns "" when nothing came of it."""

    name: str
    holds: str
    program: str
    spring: Callable[[Box], str]


def _reads(path: str, expected: bytes | None) -> Callable[[Box], str]:
    """Reading `path` gives exactly `expected`, soon."""

    def spring(box: Box) -> str:
        begun = time.monotonic()
        content = box.read(path, _LIMIT)
        if time.monotonic() - begun > _SOON_S:
            return f"reading {path!r} hung"
        return (
            "" if content == expected else f"reading {path!r} gave {(content or b'nothing')[:80]!r}"
        )

    return spring


def _writes(path: str, *, lands: str) -> Callable[[Box], str]:
    """Writing `path` stays inside: it lands at `lands` or is refused."""

    def spring(box: Box) -> str:
        try:
            box.write({path: b"written by the host"})
        except (OutsideError, UserError):
            return ""
        return (
            ""
            if box.read(lands, _LIMIT) == b"written by the host"
            else f"{path!r} landed elsewhere"
        )

    return spring


def _refused(path: str) -> Callable[[Box], str]:
    def spring(box: Box) -> str:
        try:
            box.write({path: b"x"})
        except UserError:
            return ""
        return f"{path!r} was taken"

    return spring


def _runs_git(box: Box) -> str:
    """A diff is taken inside; whatever git runs for it runs there."""
    done = box.run(["git", "diff"], timeout=30.0)
    return "" if done.ended in {"exit", "timeout"} else f"git ended as {done.ended}"


_IN = "held inside: only bounded bytes come out"
HOST_ATTACKS: tuple[HostAttack, ...] = (
    HostAttack(
        "a report that is a link",
        _IN,
        "import os\nos.symlink('/etc/passwd', 'report.xml')",
        _reads("report.xml", None),
    ),
    HostAttack(
        "a folder that is a link",
        _IN,
        "import os\nos.symlink('/etc', 'reports')",
        _reads("reports/passwd", None),
    ),
    HostAttack(
        "a report that is a fifo",
        _IN,
        "import os\nos.mkfifo('report.xml')",
        _reads("report.xml", None),
    ),
    HostAttack(
        "a report of one tebibyte",
        "read to a limit",
        "open('report.xml', 'wb').truncate(2 ** 40)",
        _reads("report.xml", bytes(_LIMIT)),
    ),
    HostAttack(
        "a report that is a folder",
        _IN,
        "import os\nos.mkdir('report.xml')",
        _reads("report.xml", None),
    ),
    HostAttack(
        "a report that may not be read",
        _IN,
        "import os\nopen('report.xml', 'w').write('x')\nos.chmod('report.xml', 0)",
        _reads("report.xml", None),
    ),
    HostAttack(
        "a link that points at itself",
        _IN,
        "import os\nos.symlink('report.xml', 'report.xml')",
        _reads("report.xml", None),
    ),
    HostAttack(
        "a path that leads out",
        "the box's own root",
        "pass",
        _reads("../../../../etc/shadow", None),
    ),
    HostAttack("a device for a report", "only regular files", "pass", _reads("/dev/zero", None)),
    HostAttack(
        "names with line ends, of full length, and options",
        "names are never parsed",
        "import os\nopen('-n\\nreport', 'w').write('x')\nopen('a' * 255, 'w').write('y')",
        _reads("-n\nreport", b"x"),
    ),
    HostAttack(
        "folders a thousand deep",
        "removed with the box, never walked",
        "import os\nfor _ in range(1000):\n    os.mkdir('d')\n    os.chdir('d')\nopen('/work/x', 'w').write('x')",
        _reads("x", b"x"),
    ),
    HostAttack(
        "a setuid program",
        "nosuid, and not on the host's disk",
        "import shutil, os\nshutil.copy('/bin/true', 'tool')\nos.chmod('tool', 0o6755)\nopen('x', 'w').write('x')",
        _reads("x", b"x"),
    ),
    HostAttack(
        "a link where the host writes",
        "written inside the box",
        "import os\nos.symlink('/etc/passwd', 'fixed.py')",
        _writes("fixed.py", lands="fixed.py"),
    ),
    HostAttack(
        "a linked folder where the host writes",
        "written inside the box",
        "import os\nos.symlink('/etc', 'src')",
        _writes("src/owned", lands="src/owned"),
    ),
    HostAttack("writing above the tree", "refused", "pass", _refused("../owned")),
    HostAttack(
        "a git configuration that runs programs",
        "git runs inside, where the tree is",
        "import subprocess as s\ns.run(['git', 'init', '-q'])\n"
        "s.run(['git', 'config', 'core.fsmonitor', 'touch /work/ran; false'])\n"
        "s.run(['git', 'config', 'diff.external', 'touch /work/ran'])",
        _runs_git,
    ),
    HostAttack(
        "a repository planted in the tree",
        "git runs inside, where the tree is",
        "import subprocess as s\ns.run(['git', 'init', '-q', 'sub'])\n"
        "s.run(['git', '-C', 'sub', 'config', 'core.fsmonitor', 'touch /work/ran; false'])",
        _runs_git,
    ),
    HostAttack(
        "a .git file that points elsewhere",
        "git runs inside, where the tree is",
        "open('.git', 'w').write('gitdir: /tmp/evil')\nimport subprocess as s\n"
        "s.run(['git', 'init', '-q', '--bare', '/tmp/evil'])",
        _runs_git,
    ),
    HostAttack(
        "a bare repository for a tree",
        "git runs inside, where the tree is",
        "import subprocess as s\ns.run(['git', 'init', '-q', '--bare', '.'])\n"
        "s.run(['git', 'config', 'core.bare', 'false'])",
        _runs_git,
    ),
)
