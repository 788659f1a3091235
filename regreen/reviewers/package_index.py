"""Asks the package indexes about a change's packages, in the sandbox's one phase that has a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regreen.codebase.declared import declared
from regreen.codebase.dependency import Declared, Dependency
from regreen.codebase.dependency_concerns import Concern
from regreen.codebase.package_answers import (
    ANSWER,
    MOST_ASKED,
    Answers,
    answered,
    exact,
    held,
    question,
    read_answers,
)
from regreen.errors import OutsideError, SetupFailed
from regreen.models import EnvSpec
from regreen.reviewers.context import ReviewContext

_SECONDS = 180.0
_LARGEST = 2_000_000
# Where a repository names an index of its own: a name that the usual one lacks may well be there.
_OWN_INDEXES = frozenset(
    {".npmrc", ".yarnrc", ".yarnrc.yml", "pip.conf", ".pip/pip.conf", "uv.toml", ".pypirc"}
)
_MANIFESTS = frozenset({"pyproject.toml", "Pipfile", "requirements.txt"})


def ask(context: ReviewContext, packages: Sequence[Dependency]) -> tuple[Answers, str]:
    """What the indexes say of these packages, and why some of them were not asked about."""
    names = {(one.ecosystem, one.name) for one in packages}
    if not names:
        return {}, ""
    if context.sandbox is None or not context.run_tests:
        many = (
            "1 package exists and was"
            if len(names) == 1
            else f"{len(names)} packages exist and were"
        )
        return {}, f"whether {many} not withdrawn is asked in the sandbox, with --run-tests"
    asked = list(packages)[:MOST_ASKED]
    # Asked anew for every head: what an index holds changes, and no digest of the tree would say so.
    spec = EnvSpec(
        setup=question(asked),
        inputs=f"index {context.head}",
        trust="pull_request" if context.tests is None else context.tests.trust,
        scope="local" if context.tests is None else context.tests.scope,
        timeout_s=_SECONDS,
        checked=True,
    )
    try:
        env = context.sandbox.prepare(spec, (), context.cancel)
        with context.sandbox.open(env, ()) as box:
            said = box.read(ANSWER, _LARGEST)
    except (SetupFailed, OutsideError) as error:
        return {}, f"the package index could not be asked: {str(error)[:200]}"
    answers = read_answers((said or b"").decode("utf-8", "replace"))
    silent = sorted({one.name for one in asked if answered(answers, one) is None})
    left = [f"no index answered about {', '.join(silent[:5])}"] if silent else []
    if len(packages) > MOST_ASKED:
        left.append(f"{len(packages) - MOST_ASKED} more were not asked about")
    return answers, "; ".join(left)


def told(one: Dependency, answers: Answers, *, is_lock: bool, is_new: bool, own_index: bool) -> Iterator[Concern]:  # fmt: skip
    """What the answer about one package is worth saying."""
    answer = answered(answers, one)
    if answer is None:
        return
    if not answer.there:
        if is_new and not own_index:
            scoped = one.name.startswith("@")
            yield Concern("unknown", one.name, one.line,
                          f"there is no package `{one.name}`: whoever registers it runs code here",
                          "critical", 0.6 if scoped else 0.95)  # fmt: skip
        return
    version = exact(one)
    if version:
        reason = held(answer, version)
        if reason is None:
            if not own_index:
                yield Concern("no-such-version", one.name, one.line,
                              f"there is no version {version} of `{one.name}`", "high", 0.88)  # fmt: skip
        elif reason:
            yield _withdrawn(one, version, reason, is_lock=is_lock)
    elif answer.versions and all(answer.versions.values()):
        yield _withdrawn(one, one.spec, next(iter(answer.versions.values())), is_lock=is_lock)


def _withdrawn(one: Dependency, version: str, reason: str, *, is_lock: bool) -> Concern:
    said = " ".join(reason.split())[:160].replace("`", "'")
    if one.ecosystem == "pypi":
        return Concern("yanked", one.name, one.line,
                       f"`{one.name}` {version} was withdrawn by its authors ({said}): take another version",
                       "medium", 0.88)  # fmt: skip
    # A lock file names much that nobody here chose.
    return Concern("deprecated", one.name, one.line,
                   f"the authors of `{one.name}` {version} advise against it ({said})",
                   "low", 0.5 if is_lock else 0.82)  # fmt: skip


def has_own_index(context: ReviewContext, *manifests: Declared) -> bool:
    """Whether the repository takes packages from an index that it names itself."""
    if any(one.indexes for one in manifests):
        return True
    paths = {entry.path for entry in context.tree}
    if {path.rpartition("/")[2] for path in paths} & _OWN_INDEXES:
        return True
    texts = [(path, context.after(path)) for path in sorted(paths & _MANIFESTS)]
    return any(declared(path, text).indexes for path, text in texts if text is not None)
