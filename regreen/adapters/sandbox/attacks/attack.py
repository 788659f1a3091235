"""Attacks a live sandbox, and reports line by line what holds."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

from regreen.adapters.sandbox.attacks.box_programs import ATTACKS, PROGRAMS, SMALL_LIMITS, Attack
from regreen.domain.errors import Cancelled, OutsideError, UserError
from regreen.domain.models import DoctorCheck, EnvSpec, PreparedEnv, RunResult
from regreen.domain.ports import Box, Sandbox

CANARY = "REGREEN_CANARY"


@dataclass(frozen=True, slots=True)
class AttackTargets:
    """What an attacker on this machine could find: a secret, a listening port, an abstract socket."""

    token: str
    port: int
    name: str

    def render_program(self, attack: Attack) -> str:
        """The attack's source with the bait filled in. The secret is split, so that the source does not find itself."""
        half = len(self.token) // 2
        return (
            f"TOKEN = {self.token[:half]!r} + {self.token[half:]!r}\n"
            f"PORT = {self.port}\nNAME = {self.name!r}\n{attack.program}"
        )


@contextmanager
def prepare_targets() -> Iterator[AttackTargets]:
    """Provide the bait while the block runs."""
    token = secrets.token_hex(16)
    name = f"regreen-{secrets.token_hex(8)}"
    before = os.environ.get(CANARY)
    os.environ[CANARY] = token
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.socket(socket.AF_UNIX) as abstract,
        ):
            abstract.bind(f"\0{name}")
            abstract.listen()
            yield AttackTargets(token, listener.getsockname()[1], name)
    finally:
        os.environ.pop(CANARY)
        if before is not None:
            os.environ[CANARY] = before


def run_attacks(sandbox: Sandbox) -> list[DoctorCheck]:
    """Run every attack, each in a fresh box; one check each."""
    try:
        env = sandbox.prepare(EnvSpec(), ())
    except (UserError, OutsideError) as error:
        return [_make_check("a box can be made", str(error), holds="", remedy=_REMEDY)]
    with prepare_targets() as out:
        checks = [
            _make_check(attack.name, find_breach(sandbox, env, attack, out), attack.holds)
            for attack in ATTACKS
        ]
    return checks + [
        _make_check(attack.name, find_host_breach(sandbox, env, attack), attack.holds)
        for attack in HOST_ATTACKS
    ]


def self_test(sandbox: Sandbox) -> str:
    """Run the quick attacks, in one box if possible; return "" if all hold, else the first that does not."""
    try:
        env = sandbox.prepare(EnvSpec(), ())
        with prepare_targets() as out:
            for has_network in (True, False):
                with sandbox.open(env, (), replace(SMALL_LIMITS, network=has_network)) as box:
                    if through := _run_quick_attacks(box, out, has_network) or _find_memory_breach(
                        box, approximate=is_approximate(sandbox)
                    ):
                        return through
    except (OutsideError, UserError) as error:
        return f"a box can be made: {error}"
    return ""


def _run_quick_attacks(box: Box, out: AttackTargets, has_network: bool) -> str:
    for attack in ATTACKS:
        if attack.quick and attack.ends == ("exit",) and attack.limits.network == has_network:
            ended = box.run(["python3", "-c", out.render_program(attack)], timeout=attack.timeout)
            if through := _judge_result(attack, ended):
                return f"{attack.name}: {through}"
    return ""


def _find_memory_breach(box: Box, *, approximate: bool) -> str:
    hog = next(attack for attack in ATTACKS if attack.ends == ("oom",))
    ended = box.run(["python3", "-c", hog.program], timeout=hog.timeout)
    through = _judge_result(hog, ended, approximate=approximate)
    return f"{hog.name}: {through}" if through else ""


def find_breach(sandbox: Sandbox, env: PreparedEnv, attack: Attack, out: AttackTargets) -> str:
    """Run one attack; return "" if the box held, else what got through."""
    marker = f"regreen-marker-{secrets.token_hex(8)}"
    try:
        with sandbox.open(env, (), attack.limits) as box:
            ended = box.run(
                ["python3", "-c", out.render_program(attack), marker], timeout=attack.timeout
            )
            through = _judge_result(
                attack, ended, approximate=is_approximate(sandbox)
            ) or _describe_unusable_box(box, ended)
    except (OutsideError, UserError, Cancelled) as error:
        return f"the box broke: {error}"
    return through or _find_survivor(marker)


def find_host_breach(sandbox: Sandbox, env: PreparedEnv, attack: HostAttack) -> str:
    """Set one trap in a box and trigger it from the host; return "" if nothing happened."""
    try:
        with sandbox.open(env, (), SMALL_LIMITS) as box:
            set_up = box.run(["python3", "-c", attack.program], timeout=30.0)
            if set_up.ended not in {"exit", "oom"}:
                return f"the trap could not be set: {set_up.ended}"
            return attack.spring(box)
    except (OutsideError, UserError, Cancelled) as error:
        return f"the box broke: {error}"


def is_approximate(sandbox: Sandbox) -> bool:
    """Whether the sandbox says that it bounds memory without a control group."""
    return bool(getattr(sandbox, "why_approximate", ""))


def _judge_result(attack: Attack, ended: RunResult, *, approximate: bool = False) -> str:
    """Compare with the end in a box that holds; without a control group memory may be refused instead of fatal."""
    ends = (*attack.ends, "exit") if approximate and "oom" in attack.ends else attack.ends
    got = [line for line in ended.stdout.splitlines() if line.startswith("GOT")]
    if got:
        return "; ".join(got)[:300]
    if ended.ended not in ends:
        output = " ".join(ended.stderr.split())[-200:]
        return f"ended as {ended.ended} ({ended.exit_code}), expected {' or '.join(ends)}: {output}"
    return ""


def _describe_unusable_box(box: Box, ended: RunResult) -> str:
    """Check that a box that was not killed still works after the attack."""
    if ended.ended != "exit":
        return ""
    after = box.run(["true"], timeout=20.0)
    return "" if after.passed else f"the box was unusable afterwards: {after.ended} {after.detail}"


def _find_survivor(marker: str) -> str:
    """A process of the attack that survived the closing of its box."""
    waiting = Event()
    for _ in range(20):
        alive = [
            path for path in Path("/proc").glob("[0-9]*/cmdline") if _mentions_marker(path, marker)
        ]
        if not alive:
            return ""
        waiting.wait(0.1)
    return "a process survived its box"


def _mentions_marker(path: Path, marker: str) -> bool:
    try:
        return marker.encode() in path.read_bytes()
    except OSError:
        return False


_REMEDY = "see docs/sandbox.md; run `regreen sandbox -- true` to see the error alone"


def _make_check(name: str, through: str, holds: str, remedy: str = "") -> DoctorCheck:
    return DoctorCheck(
        name=name,
        group="sandbox",
        ok=not through,
        required=True,
        detail=through or f"held: {holds}",
        remedy=(remedy or "do not run foreign code here; use another backend or a newer engine")
        if through
        else "",
    )


# Traps that untrusted code sets inside a box for a host that looks at its files.

_SOON_S = 15.0
_READ_LIMIT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class HostAttack:
    """A trap, and the host's action that triggers it. `spring` returns "" if nothing happened."""

    name: str
    holds: str
    program: str
    spring: Callable[[Box], str]


def _expect_read(path: str, expected: bytes | None) -> Callable[[Box], str]:
    """Check that reading `path` gives exactly `expected`, soon."""

    def spring(box: Box) -> str:
        begun = time.monotonic()
        content = box.read(path, _READ_LIMIT_BYTES)
        if time.monotonic() - begun > _SOON_S:
            return f"reading {path!r} hung"
        return (
            "" if content == expected else f"reading {path!r} gave {(content or b'nothing')[:80]!r}"
        )

    return spring


def _expect_write(path: str, *, lands: str) -> Callable[[Box], str]:
    """Check that writing `path` stays inside: it lands at `lands` or is refused."""

    def spring(box: Box) -> str:
        try:
            box.write({path: b"written by the host"})
        except (OutsideError, UserError):
            return ""
        return (
            ""
            if box.read(lands, _READ_LIMIT_BYTES) == b"written by the host"
            else f"{path!r} landed elsewhere"
        )

    return spring


def _expect_refusal(path: str) -> Callable[[Box], str]:
    def spring(box: Box) -> str:
        try:
            box.write({path: b"x"})
        except UserError:
            return ""
        return f"{path!r} was taken"

    return spring


def _describe_failed_git(box: Box) -> str:
    """Check that a diff is computed inside; git's helpers run there."""
    done = box.run(["git", "diff"], timeout=30.0)
    return "" if done.ended in {"exit", "timeout"} else f"git ended as {done.ended}"


_TRAPS_SOURCE = PROGRAMS.joinpath("host_traps.py").read_text("utf-8")


def _call_trap(name: str) -> str:
    return f"{_TRAPS_SOURCE}\n\n{name}()\n"


_BOUNDED_READ_TEXT = "held inside: only bounded bytes come out"
HOST_ATTACKS: tuple[HostAttack, ...] = (
    HostAttack(
        "a report that is a link",
        _BOUNDED_READ_TEXT,
        _call_trap("a_report_that_is_a_link"),
        _expect_read("report.xml", None),
    ),
    HostAttack(
        "a folder that is a link",
        _BOUNDED_READ_TEXT,
        _call_trap("a_folder_that_is_a_link"),
        _expect_read("reports/passwd", None),
    ),
    HostAttack(
        "a report that is a fifo",
        _BOUNDED_READ_TEXT,
        _call_trap("a_report_that_is_a_fifo"),
        _expect_read("report.xml", None),
    ),
    HostAttack(
        "a report of one tebibyte",
        "read to a limit",
        _call_trap("a_report_of_one_tebibyte"),
        _expect_read("report.xml", bytes(_READ_LIMIT_BYTES)),
    ),
    HostAttack(
        "a report that is a folder",
        _BOUNDED_READ_TEXT,
        _call_trap("a_report_that_is_a_folder"),
        _expect_read("report.xml", None),
    ),
    HostAttack(
        "a report that may not be read",
        _BOUNDED_READ_TEXT,
        _call_trap("a_report_that_may_not_be_read"),
        _expect_read("report.xml", None),
    ),
    HostAttack(
        "a link that points at itself",
        _BOUNDED_READ_TEXT,
        _call_trap("a_link_that_points_at_itself"),
        _expect_read("report.xml", None),
    ),
    HostAttack(
        "a path that leads out",
        "the box's own root",
        "pass",
        _expect_read("../../../../etc/shadow", None),
    ),
    HostAttack(
        "a device for a report", "only regular files", "pass", _expect_read("/dev/zero", None)
    ),
    HostAttack(
        "names with line ends, of full length, and options",
        "names are never parsed",
        _call_trap("names_with_line_ends_of_full_length_and_options"),
        _expect_read("-n\nreport", b"x"),
    ),
    HostAttack(
        "folders a thousand deep",
        "removed with the box, never walked",
        _call_trap("folders_a_thousand_deep"),
        _expect_read("x", b"x"),
    ),
    HostAttack(
        "a setuid program",
        "nosuid, and not on the host's disk",
        _call_trap("a_setuid_program"),
        _expect_read("x", b"x"),
    ),
    HostAttack(
        "a link where the host writes",
        "written inside the box",
        _call_trap("a_link_where_the_host_writes"),
        _expect_write("fixed.py", lands="fixed.py"),
    ),
    HostAttack(
        "a linked folder where the host writes",
        "written inside the box",
        _call_trap("a_linked_folder_where_the_host_writes"),
        _expect_write("src/owned", lands="src/owned"),
    ),
    HostAttack("writing above the tree", "refused", "pass", _expect_refusal("../owned")),
    HostAttack(
        "a git configuration that runs programs",
        "git runs inside, where the tree is",
        _call_trap("a_git_configuration_that_runs_programs"),
        _describe_failed_git,
    ),
    HostAttack(
        "a repository planted in the tree",
        "git runs inside, where the tree is",
        _call_trap("a_repository_planted_in_the_tree"),
        _describe_failed_git,
    ),
    HostAttack(
        "a .git file that points elsewhere",
        "git runs inside, where the tree is",
        _call_trap("a_git_file_that_points_elsewhere"),
        _describe_failed_git,
    ),
    HostAttack(
        "a bare repository for a tree",
        "git runs inside, where the tree is",
        _call_trap("a_bare_repository_for_a_tree"),
        _describe_failed_git,
    ),
)
