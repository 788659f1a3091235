"""Attacks a live sandbox, and says line by line what holds."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from regreen.adapters.attack_programs import ATTACKS, SMALL, Attack
from regreen.adapters.host_attacks import HOST_ATTACKS, HostAttack
from regreen.errors import Cancelled, OutsideError, UserError
from regreen.models import Check, Env, EnvSpec, RunResult
from regreen.ports import Box, Sandbox

CANARY = "REGREEN_CANARY"


@dataclass(frozen=True, slots=True)
class Bait:
    """What an attacker on this machine could find: a secret, a listening port, an abstract socket."""

    token: str
    port: int
    name: str

    def program(self, attack: Attack) -> str:
        """The attack's source, told where the bait is. The secret comes in pieces, so as not to find itself."""
        half = len(self.token) // 2
        return (
            f"TOKEN = {self.token[:half]!r} + {self.token[half:]!r}\n"
            f"PORT = {self.port}\nNAME = {self.name!r}\n{attack.program}"
        )


@contextmanager
def bait() -> Iterator[Bait]:
    """Put the bait out for as long as the block runs."""
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
            yield Bait(token, listener.getsockname()[1], name)
    finally:
        os.environ.pop(CANARY)
        if before is not None:
            os.environ[CANARY] = before


def attack(sandbox: Sandbox) -> list[Check]:
    """Make every attack, each on a fresh box; one check each."""
    try:
        env = sandbox.prepare(EnvSpec(), ())
    except (UserError, OutsideError) as error:
        return [_check("a box can be made", str(error), holds="", remedy=_REMEDY)]
    with bait() as out:
        checks = [_check(one.name, breach(sandbox, env, one, out), one.holds) for one in ATTACKS]
    return checks + [
        _check(one.name, host_breach(sandbox, env, one), one.holds) for one in HOST_ATTACKS
    ]


def self_test(sandbox: Sandbox) -> str:
    """Make the quick attacks, in one box where that is possible; "" when all hold, else the first that does not."""
    try:
        env = sandbox.prepare(EnvSpec(), ())
        with bait() as out, sandbox.open(env, (), SMALL) as box:
            for one in (one for one in ATTACKS if one.quick and one.ends == ("exit",)):
                ended = box.run(["python3", "-c", out.program(one)], timeout=one.timeout)
                if through := _judged(one, ended):
                    return f"{one.name}: {through}"
            return _bounds_memory(box)
    except (OutsideError, UserError) as error:
        return f"a box can be made: {error}"


def _bounds_memory(box: Box) -> str:
    hog = next(one for one in ATTACKS if one.ends == ("oom",))
    through = _judged(hog, box.run(["python3", "-c", hog.program], timeout=hog.timeout))
    return f"{hog.name}: {through}" if through else ""


def breach(sandbox: Sandbox, env: Env, one: Attack, out: Bait) -> str:
    """Make one attack; "" when the box held, else what got through."""
    marker = f"regreen-marker-{secrets.token_hex(8)}"
    try:
        with sandbox.open(env, (), one.limits) as box:
            ended = box.run(["python3", "-c", out.program(one), marker], timeout=one.timeout)
            through = _judged(one, ended) or _still_usable(box, ended)
    except (OutsideError, UserError, Cancelled) as error:
        return f"the box broke: {error}"
    return through or _survivor(marker)


def host_breach(sandbox: Sandbox, env: Env, one: HostAttack) -> str:
    """Set one trap in a box and walk the host's side into it; "" when nothing happened."""
    try:
        with sandbox.open(env, (), SMALL) as box:
            set_up = box.run(["python3", "-c", one.program], timeout=30.0)
            if set_up.ended not in {"exit", "oom"}:
                return f"the trap could not be set: {set_up.ended}"
            return one.spring(box)
    except (OutsideError, UserError, Cancelled) as error:
        return f"the box broke: {error}"


def _judged(one: Attack, ended: RunResult) -> str:
    got = [line for line in ended.stdout.splitlines() if line.startswith("GOT")]
    if got:
        return "; ".join(got)[:300]
    if ended.ended not in one.ends:
        said = " ".join(ended.stderr.split())[-200:]
        return (
            f"ended as {ended.ended} ({ended.exit_code}), expected {' or '.join(one.ends)}: {said}"
        )
    return ""


def _still_usable(box: Box, ended: RunResult) -> str:
    """A box that was not killed goes on working, whatever the attack did in it."""
    if ended.ended != "exit":
        return ""
    after = box.run(["true"], timeout=20.0)
    return "" if after.passed else f"the box was unusable afterwards: {after.ended} {after.detail}"


def _survivor(marker: str) -> str:
    """A process of the attack that is still there after its box was closed."""
    waiting = Event()
    for _ in range(20):
        alive = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _mentions(path, marker)]
        if not alive:
            return ""
        waiting.wait(0.1)
    return "a process survived its box"


def _mentions(path: Path, marker: str) -> bool:
    try:
        return marker.encode() in path.read_bytes()
    except OSError:
        return False


_REMEDY = "see docs/sandbox.md; run `regreen sandbox -- true` to see the error alone"


def _check(name: str, through: str, holds: str, remedy: str = "") -> Check:
    return Check(
        name=name,
        group="sandbox",
        ok=not through,
        required=True,
        detail=through or f"held: {holds}",
        remedy=(remedy or "do not run foreign code here; use another backend or a newer engine")
        if through
        else "",
    )
