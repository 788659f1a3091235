"""What preparing an environment means on every backend: its key, its Python, and how its setup may end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable

from regreen.adapters import host
from regreen.codebase.setup_guard import Tree, explained, refusals
from regreen.errors import Cancelled, OutsideError, SetupFailed, UserError
from regreen.models import EnvSpec, RunResult

RECIPE = "2"  # raised whenever what an environment is made of changes


def environment_key(base: str, spec: EnvSpec) -> str:
    """What a prepared environment is known by: everything that it depends on, and whom it may serve."""
    parts = (RECIPE, base, spec.setup, spec.inputs, spec.trust, spec.scope, sorted(spec.env))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


Guard = Callable[[EnvSpec], str]
"""Says why a setup may not run; "" where it may. Asked before anything is downloaded."""


def unknown_names(spec: EnvSpec) -> str:
    """The guard that is always there: a pull request's command, where nobody has judged it with its tree."""
    if spec.trust != "pull_request" or spec.checked or not spec.setup:
        return ""
    found = refusals(spec.setup, spec.env, Tree({}, lambda _: None), None)
    return explained(found) if found else ""


def refuse_if_guarded(spec: EnvSpec, guards: Iterable[Guard]) -> None:
    """Ask the guards.

    Raises:
        SetupFailed: one of them says no.
    """
    for guard in guards:
        if reason := guard(spec):
            message = f"the setup was not run: {reason}"
            raise SetupFailed(message, reason)


def choose_python(version: str | None) -> host.HostPython:
    """An interpreter of this machine.

    Raises:
        UserError: it is not installed here.
    """
    found = host.pythons()
    wanted = version or host.own_version()
    if wanted in found:
        return found[wanted]
    if version is None and found:
        return list(found.values())[-1]
    have = ", ".join(found) or "none with pip and venv"
    message = f"Python {wanted} is not on this machine (it has {have}); install it, or set an image"
    raise UserError(message)


def short_version(wanted: str | None) -> str | None:
    """3.11 for "3.11.7": patch releases are not told apart."""
    return ".".join(wanted.strip().split(".")[:2]) if wanted else None


def raise_if_failed(done: RunResult, *, overflowed: bool = False) -> None:
    """Turn the end of a setup into what `prepare` promises.

    Raises:
        SetupFailed: it exited with an error, took too long, or used too much.
        Cancelled: somebody stopped it.
        OutsideError: the engine failed.
    """
    if done.passed:
        return
    tail = (done.stdout + done.stderr)[-4000:]
    if overflowed:
        msg = "the setup wrote more than an environment may hold"
        raise SetupFailed(msg, tail)
    if done.ended == "cancelled":
        msg = "the setup was cancelled"
        raise Cancelled(msg)
    if done.ended == "infra":
        message = f"the engine failed while the setup ran: {done.detail}"
        raise OutsideError(message)
    if done.exit_code in _OWN_FAILURES:
        message = (
            f"the environment could not be {_OWN_FAILURES[done.exit_code]}: {_last_line(tail)}"
        )
        raise SetupFailed(message, tail)
    took = f"took too long ({done.seconds:.0f} seconds)"
    how = {"timeout": took, "oom": "ran out of memory", "flood": "printed without end"}
    message = (
        f"the setup {how.get(done.ended, f'exited with {done.exit_code}')}: {_last_line(tail)}"
    )
    raise SetupFailed(message, tail)


# The exit codes that the setup script keeps for itself.
_OWN_FAILURES = {
    70: "begun",
    71: "given the tree (is there room for it?)",
    72: "kept (is there room for it?)",
    73: "given a Python",
    74: "copied",
}


_SMALL_TALK = ("npm notice", "npm error A complete log", "npm ERR! A complete log", "[notice]")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(_SMALL_TALK)]
    return (telling or lines or ["it printed nothing"])[-1][:200]
