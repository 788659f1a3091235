"""The common part of preparing an environment: its key, its Python, and the end of its setup."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable

from regreen.adapters.sandbox import host
from regreen.domain.errors import Cancelled, OutsideError, SetupFailed, UserError
from regreen.domain.models import EnvSpec, RunResult
from regreen.packages.setup_guard import SourceTree, explain_refusals, find_refusals

RECIPE_VERSION = "3"  # raised whenever the content of environments changes


def environment_key(base: str, spec: EnvSpec) -> str:
    """The key of a prepared environment: everything that it depends on, and whom it may serve."""
    parts = (
        RECIPE_VERSION,
        base,
        spec.setup,
        spec.inputs,
        spec.trust,
        spec.scope,
        sorted(spec.env),
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


SetupGuard = Callable[[EnvSpec], str]
"""Says why a setup may not run; "" where it may. Asked before anything is downloaded."""


def refuse_unknown_names(spec: EnvSpec) -> str:
    """The guard of last resort: judges a pull request's command that nobody has judged with its tree."""
    if spec.trust != "pull_request" or spec.checked or not spec.setup:
        return ""
    refusals = find_refusals(spec.setup, spec.env, SourceTree({}, lambda _: None), None)
    return explain_refusals(refusals) if refusals else ""


def refuse_guarded_setup(spec: EnvSpec, guards: Iterable[SetupGuard]) -> None:
    """Run the guards.

    Raises:
        SetupFailed: one of them refuses.
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
    pythons = host.find_pythons()
    wanted = version or host.own_version()
    if wanted in pythons:
        return pythons[wanted]
    if version is None and pythons:
        return list(pythons.values())[-1]
    have = ", ".join(pythons) or "none with pip and venv"
    message = f"Python {wanted} is not on this machine (it has {have}); install it, or set an image"
    raise UserError(message)


def short_version(wanted: str | None) -> str | None:
    """3.11 for "3.11.7": patch releases are equal."""
    return ".".join(wanted.strip().split(".")[:2]) if wanted else None


def raise_if_setup_failed(done: RunResult, *, overflowed: bool = False) -> None:
    """Turn the end of a setup into the exceptions of `prepare`.

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


# The exit codes reserved by the setup script.
_OWN_FAILURES = {
    70: "begun",
    71: "given the tree (is there room for it?)",
    72: "kept (is there room for it?)",
    73: "given a Python",
    74: "copied",
}


_NOISE_PREFIXES = (
    "npm notice",
    "npm error A complete log",
    "npm ERR! A complete log",
    "[notice]",
    "note: This ",
    "hint: See above",
    "╰─> See above",
)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(_NOISE_PREFIXES)]
    return (telling or lines or ["it printed nothing"])[-1][:200]
