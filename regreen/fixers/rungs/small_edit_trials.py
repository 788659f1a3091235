"""Tries the small edits that a failure suggests, each in a fresh sandbox, until the command passes or the time is over."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from regreen.domain.environments import ReadText
from regreen.domain.job_control import ContextThreadPool
from regreen.fixers.case import RepairCase
from regreen.fixers.recipes.named_edits import write_failures
from regreen.fixers.recipes.small_edits import propose_small_edits
from regreen.isolation import run_in_child
from regreen.runs.test_runs import CommandRun, run_in_box

_MOST_EDITS = 16  # of one error
_MOST_ROUNDS = 6  # errors, one after the other
_BOXES = 2  # at a time
_TIME_SHARE = 0.25  # of the time that is left
_MOST_SECONDS = 150.0
_ASSERTION = re.compile(
    r"(?m)^E {3,20}(?:assert\b|AssertionError)|^[ \t]{0,40}AssertionError\b|\bexpect\(received\)"
)


@dataclass(frozen=True, slots=True)
class WorkingEdits:
    """Edits with which the command passes, as files (None: the path goes), and how each is told."""

    texts: Mapping[str, str | None]
    words: tuple[str, ...]
    drops: bool


def find_working_edits(case: RepairCase, read: ReadText) -> Iterator[WorkingEdits]:
    """Edits with which the failing command passes once, those first that assume least.

    An edit that does away with an error and brings no other is kept, and the search goes on from what is said then.

    Raises:
        AnalysisFailed: the output could not be read within the limits.
    """
    if case.setup_failed or _ASSERTION.search(case.output):
        return  # a test that asks for another value names no edit
    ends = case.stop.now() + min(_MOST_SECONDS, case.stop.left * _TIME_SHARE)
    modes = {entry.path: entry.mode for entry in case.git.tree(case.rev)}
    paths = {path for path, mode in modes.items() if mode in {"100644", "100755"}}
    made = WorkingEdits({}, (), drops=False)
    output = case.output + write_failures(case.before.failures)
    for _ in range(_MOST_ROUNDS):
        reader = partial(_read_edited, made.texts, read)
        command = case.trial.command_line
        edits = run_in_child(propose_small_edits, output, paths, reader, _MOST_EDITS, command)
        more = [
            WorkingEdits(
                {**made.texts, **one.texts}, (*made.words, one.words), made.drops or one.drops
            )
            for one in edits
            if not case.trial.overlay.keys() & one.texts.keys()
        ]
        step: tuple[WorkingEdits, str] | None = None
        for now, run in _run_each(case, more, modes, ends):
            if run.is_green:
                yield now
            elif step is None and _is_a_step(output, run.output):
                step = now, run.output + write_failures(run.failures)
                if len(_list_errors(run.output)) < len(_list_errors(output)):
                    break
        if step is None or case.stop.now() > ends:
            return
        made, output = step


def _run_each(
    case: RepairCase, every: Sequence[WorkingEdits], modes: Mapping[str, str], ends: float
) -> Iterator[tuple[WorkingEdits, CommandRun]]:
    """Each with its run, in their order, several at a time, until the time is over."""
    for at in range(0, len(every), _BOXES):
        if case.stop.now() > ends:
            return
        some = every[at : at + _BOXES]
        with ContextThreadPool(_BOXES) as pool:
            runs = [pool.submit(_run_with_edits, case, one.texts, modes) for one in some]
        yield from ((one, run.result()) for one, run in zip(some, runs, strict=True))


def _read_edited(edited: Mapping[str, str | None], read: ReadText, path: str) -> str | None:
    return edited[path] if path in edited else read(path)


def _run_with_edits(
    case: RepairCase, texts: Mapping[str, str | None], modes: Mapping[str, str]
) -> CommandRun:
    """Run the command once in a fresh sandbox of the environment that there is; nothing is set up for the edits."""
    with case.open_box() as box:
        box.write({path: text.encode() for path, text in texts.items() if text is not None})
        gone = [path for path, text in texts.items() if text is None]
        started = [path for path in texts if modes.get(path) == "100755" and path not in gone]
        script = f"rm -f -- {shlex.join(gone)}; chmod +x -- {shlex.join(started)}"
        if gone or started:
            box.run(("sh", "-c", script), timeout=30, env={}, cancel=case.stop.cancel)
        return run_in_box(box, case.trial, cancel=case.stop.cancel)


_WITH_PLACE = re.compile(r"\.\w{1,8}\W{1,4}(?:line |on line |at )?\d")
_WITH_WORD = re.compile(r"(?i)\w{0,40}error\b|\b(?:fatal|invalid|unknown)\b")
_FRAME = re.compile(r'\s{0,8}(?:File "|at )')


def _list_errors(output: str) -> Counter[str]:
    """The lines that tell of errors, without their numbers."""
    lines = [line[:400] for line in output[-100_000:].splitlines()]
    told = [
        line
        for line in lines
        if _WITH_WORD.search(line) or (_WITH_PLACE.search(line) and not _FRAME.match(line))
    ]
    told = told or lines[-8:]
    return Counter(re.sub(r"\d+", "#", line) for line in told)


def _is_a_step(before: str, after: str) -> bool:
    """Whether the first error is gone and no other came; a tool that tells of one error only may tell of the next."""
    old, new = _list_errors(before), _list_errors(after)
    if not old or not new:
        return False
    first = next(iter(old))
    if old.total() == new.total() == 1:
        return new != old or _list_places(before) != _list_places(after)
    return new[first] < old[first] and not new - old


def _list_places(output: str) -> list[str]:
    return re.findall(r"\.\w{1,8}\W{1,4}(?:line |on line |at )?\d{1,6}", output[-100_000:])
