"""Packages that a change adds or changes: deceptive names, other indexes, lost hashes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from posixpath import dirname, join

from regreen.code.diff import FileChange
from regreen.domain.errors import OutsideError, SetupFailed
from regreen.domain.models import EnvSpec, SkippedReviewer, UnreadFile
from regreen.packages.concerns import Concern, find_concerns, find_lock_mismatch
from regreen.packages.dependency import DeclaredPackages, Dependency
from regreen.packages.manifests_and_locks import is_manifest, read_declared
from regreen.packages.popular_names import Ecosystem, is_valid_package_name, normalise_name
from regreen.reviewers.analyzers.baseline import make_analyzer_claim
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun

ANSWER_FILE = "package-index-answer.json"
MAX_ASKED_PACKAGES = 25
_EXACT_VERSION = re.compile(r"(?:==?=?)?\s*v?(\d[\w.+!-]{0,60})\Z")
_VERSION_RANGE = re.compile(r"[\w.^~<>=|*+ -]{1,60}\Z")


@dataclass(frozen=True, slots=True)
class IndexAnswer:
    """The versions of one name in an index, each with the reason for its withdrawal ("" if it was not withdrawn)."""

    there: bool
    versions: Mapping[str, str]


IndexAnswers = Mapping[tuple[Ecosystem, str], IndexAnswer]


def select_new_index_packages(
    before: DeclaredPackages, after: DeclaredPackages
) -> tuple[Dependency, ...]:
    """The packages of an index that are new or have a new version."""
    known = {
        (package.ecosystem, normalise_name(package.ecosystem, package.name), package.spec)
        for package in before.dependencies
    }
    return tuple(
        package
        for package in after.dependencies
        if package.source == "index"
        and package.ecosystem in {"pypi", "npm"}
        and is_valid_package_name(package.ecosystem, package.name)
        and (package.ecosystem, normalise_name(package.ecosystem, package.name), package.spec)
        not in known
    )


def exact_version(package: Dependency) -> str:
    """The exact version that is required; empty for a range."""
    match = _EXACT_VERSION.match(package.spec.strip())
    return match[1] if match is not None else ""


def make_index_query(packages: Iterable[Dependency]) -> str:
    """The shell command that asks, in a tree of its own, and writes the answer to the file `ANSWER_FILE`."""
    names = {name.name for name in packages if name.ecosystem == "pypi"}
    wanted = {
        (name.name, name.spec.strip() if _VERSION_RANGE.match(name.spec.strip()) else "")
        for name in packages
        if name.ecosystem == "npm"
    }
    question = json.dumps(
        {"pypi": sorted(normalise_name("pypi", n) for n in names), "npm": sorted(wanted)}
    )
    program = (files("regreen.packages") / "box_programs/index_query.py").read_text()
    return f"python -c {shlex.quote(program)} {shlex.quote(question)} {ANSWER_FILE}"


def read_answers(text: str) -> IndexAnswers:
    """The answers by ecosystem and name, without those that failed."""
    answers: dict[tuple[Ecosystem, str], IndexAnswer] = {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return answers
    for ecosystem in ("pypi", "npm"):
        rows = data.get(ecosystem) if isinstance(data, dict) else None
        for name, row in rows.items() if isinstance(rows, dict) else ():
            if isinstance(row, dict) and isinstance(row.get("there"), bool):
                releases = row.get("versions")
                versions = releases if isinstance(releases, dict) else {}
                answers[ecosystem, normalise_name(ecosystem, name)] = IndexAnswer(
                    row["there"], {str(k)[:80]: str(v)[:300] for k, v in versions.items()}
                )
    return answers


def find_answer(answers: IndexAnswers, package: Dependency) -> IndexAnswer | None:
    """The answer about this package."""
    return answers.get((package.ecosystem, normalise_name(package.ecosystem, package.name)))


def withdrawal_reason(answer: IndexAnswer, version: str) -> str | None:
    """Why this version was withdrawn, "" if it was not; None if there is no such version."""
    wanted = _normalise_version(version)
    for known, reason in answer.versions.items():
        if _normalise_version(known) == wanted:
            return reason
    return None


def _normalise_version(version: str) -> str:
    """A normalised version: `1.0` and `1.0.0`, `1.0-rc.1` and `1.0rc1` are equal, local parts are dropped."""
    public = version.lower().partition("+")[0].removeprefix("v")
    joined = re.sub(
        r"(?<=\d)[._-]*(rc|c|alpha|a|beta|b|pre|preview|post|rev|r|dev)[._-]*", r"\1", public
    )
    for long, short in (("alpha", "a"), ("beta", "b"), ("preview", "rc"), ("pre", "rc")):
        joined = joined.replace(long, short)
    return re.sub(r"(?<!\.0)(?>(?:\.0)+)(?=$|[a-z])", "", joined)


_LOCK_FILES_BY_MANIFEST = {
    "pyproject.toml": ("uv.lock", "poetry.lock", "pdm.lock"),
    "package.json": ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"),
    "go.mod": ("go.sum",),
    "cargo.toml": ("Cargo.lock",),
}
_CONCERN_TITLES = {
    "look-alike": "The package's name deceives",
    "unknown": "An unknown package",
    "invalid-name": "No package name",
    "index-changed": "Packages come from another index",
    "not-from-an-index": "The package does not come from an index",
    "hash-lost": "The package is no longer checked",
    "install-hook": "Code runs on installation",
    "lock-mismatch": "The lock file is behind",
    "not-locked": "The lock file is behind",
    "unreadable": "The manifest cannot be read",
    "no-such-version": "There is no such version",
    "yanked": "A withdrawn version",
    "deprecated": "Its authors advise against it",
    "hash-changed": "The same version with another content",
    "other-archive": "The archive is another package's",
}


@dataclass(frozen=True, slots=True)
class DependencyChanges:
    """Compares manifests and lock files before and after, and asks the indexes about what is new in them."""

    name: str = "dependencies"

    def calls_out(self, context: ReviewContext) -> bool:
        """Where the indexes can be asked, from the sandbox."""
        return context.run_tests and context.sandbox is not None

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report what the changed manifests bring."""
        changed, unread = context.run_isolated(_read_manifests)
        answers, unasked = ask_indexes(context, _list_packages_to_query(changed))
        claims = context.run_isolated(_make_claims, changed, answers)
        files = len(changed) + len(unread)
        return ReviewerReport(
            claims,
            read=f"dependencies in {count_noun(files, 'manifest')}" if files else "",
            unread=unread,
            skipped=(SkippedReviewer("package index", unasked, not self.calls_out(context)),)
            if unasked
            else (),
        )


@dataclass(frozen=True, slots=True)
class _ManifestChange:
    """A manifest on both sides."""

    file: FileChange
    before: DeclaredPackages
    after: DeclaredPackages


def _read_manifests(context: ReviewContext) -> tuple[list[_ManifestChange], tuple[UnreadFile, ...]]:
    """The manifests of a change, and the unreadable ones."""
    changed: list[_ManifestChange] = []
    unread: list[UnreadFile] = []
    for file in context.change.files:
        if file.status == "deleted" or not is_manifest(file.path):
            continue
        after = context.head_text(file.path)
        if after is None:
            unread.append(UnreadFile(file.path, "manifest not readable"))
            continue
        before = context.base_text(file.old_path) if file.status != "added" else None
        changed.append(
            _ManifestChange(
                file, read_declared(file.old_path, before or ""), read_declared(file.path, after)
            )
        )
    return changed, tuple(unread)


def _make_claims(
    context: ReviewContext, changed: Sequence[_ManifestChange], answers: IndexAnswers
) -> tuple[Claim, ...]:
    """The claims about the manifests, given the answers of the package indexes."""
    claims: list[Claim] = []
    is_published = partial(_is_published, answers)
    for change in changed:
        file = change.file
        before = context.base_text(file.old_path) if file.status != "added" else None
        after = context.head_text(file.path) or ""
        found = list(find_concerns(file.path, before, after, is_published))
        found += _find_stale_locks(context, file, before, after)
        found += _concerns_of_manifest(context, change, answers)
        claims += [_make_claim(file, concern) for concern in found]
    return tuple(claims)


def _list_packages_to_query(changed: Sequence[_ManifestChange]) -> list[Dependency]:
    """The packages to query: chosen ones first, then those of lock files."""
    ordered = sorted(changed, key=lambda package: package.after.is_lock)
    return [
        package for one in ordered for package in select_new_index_packages(one.before, one.after)
    ]


def _is_published(answers: IndexAnswers, ecosystem: Ecosystem, name: str) -> bool:
    """Whether an index confirmed the package; a missing package is a concern of its own (`concerns_of_index_answer`)."""
    answer = answers.get((ecosystem, normalise_name(ecosystem, name)))
    return answer is not None and bool(answer.there)


def _concerns_of_manifest(
    context: ReviewContext, manifest: _ManifestChange, answers: IndexAnswers
) -> list[Concern]:
    if not answers:
        return []
    known = {
        (d.ecosystem, normalise_name(d.ecosystem, d.name)) for d in manifest.before.dependencies
    }
    own = has_own_index(context, manifest.before, manifest.after)
    return [
        concern
        for package in select_new_index_packages(manifest.before, manifest.after)
        for concern in concerns_of_index_answer(
            package,
            answers,
            is_lock=manifest.after.is_lock,
            is_new=(package.ecosystem, normalise_name(package.ecosystem, package.name))
            not in known,
            own_index=own,
        )
    ]


def _find_stale_locks(
    context: ReviewContext, file: FileChange, before: str | None, after: str
) -> Sequence[Concern]:
    """Packages that this change adds to a manifest and that its lock file lacks."""
    name = file.path.rpartition("/")[2].lower()
    known = (
        {
            (dependency.ecosystem, dependency.name)
            for dependency in read_declared(file.path, before or "").dependencies
        }
        if before
        else set()
    )
    for lock in _LOCK_FILES_BY_MANIFEST.get(name, ()):
        path = join(dirname(file.path), lock)
        text = context.head_text(path) if context.git is not None else None
        if text is None:
            continue
        missing = find_lock_mismatch(
            read_declared(file.path, after), read_declared(path, text), path
        )
        fresh = {
            dependency.name
            for dependency in read_declared(file.path, after).dependencies
            if (dependency.ecosystem, dependency.name) not in known
        }
        return [concern for concern in missing if concern.name in fresh]
    return ()


def _make_claim(file: FileChange, concern: Concern) -> Claim:
    line = (
        concern.line
        if file.touches_lines(concern.line, concern.line)
        else _nearest_added_line(file, concern.line)
    )
    return make_analyzer_claim(
        f"dependencies/{concern.kind}",
        concern.severity,
        file.path,
        (line, line),
        dimension="security",
        title=f"{_CONCERN_TITLES[concern.kind]}: `{concern.name[:80]}`",
        body=concern.detail[0].upper() + concern.detail[1:] + ".",
        confidence=concern.confidence,
        excerpt=concern.detail,
        source="regreen dependencies",
        head=concern.detail,
        code=f"{concern.kind} {concern.name}",
        anywhere=not file.added_lines,  # a sum that is only removed
    )


def _nearest_added_line(file: FileChange, line: int) -> int:
    """The added line closest to the package's line, which is only known from the manifest's text."""
    return min(file.added_lines, key=lambda package: abs(package - line), default=line)


# Asks the package indexes about a change's packages, in the sandbox's one phase that has a network.

_INDEX_SECONDS = 180.0
_MAX_ANSWER_BYTES = 2_000_000
# Files that name an index of the repository's own, which may have packages that the public one lacks.
_OWN_INDEXES = frozenset(
    {".npmrc", ".yarnrc", ".yarnrc.yml", "pip.conf", ".pip/pip.conf", "uv.toml", ".pypirc"}
)
_PYTHON_MANIFESTS = frozenset({"pyproject.toml", "Pipfile", "requirements.txt"})


def ask_indexes(context: ReviewContext, packages: Sequence[Dependency]) -> tuple[IndexAnswers, str]:
    """The indexes' answers about these packages, and why some were not queried."""
    names = {(package.ecosystem, package.name) for package in packages}
    if not names:
        return {}, ""
    if context.sandbox is None or not context.run_tests:
        many = (
            "1 package exists and was"
            if len(names) == 1
            else f"{len(names)} packages exist and were"
        )
        return {}, f"whether {many} not withdrawn is asked in the sandbox, with --run-tests"
    asked = list(packages)[:MAX_ASKED_PACKAGES]
    # One query for each head: the content of an index changes, and no digest of the tree shows that.
    spec = EnvSpec(
        setup=make_index_query(asked),
        inputs=f"index {context.head}",
        trust="pull_request" if context.tests is None else context.tests.trust,
        scope="local" if context.tests is None else context.tests.scope,
        timeout_s=_INDEX_SECONDS,
        checked=True,
    )
    try:
        env = context.sandbox.prepare(spec, (), context.cancel)
        with context.sandbox.open(env, ()) as box:
            answer = box.read(ANSWER_FILE, _MAX_ANSWER_BYTES)
    except (SetupFailed, OutsideError) as error:
        return {}, f"the package index could not be asked: {str(error)[:200]}"
    answers = read_answers((answer or b"").decode("utf-8", "replace"))
    silent = sorted({package.name for package in asked if find_answer(answers, package) is None})
    left = [f"no index answered about {', '.join(silent[:5])}"] if silent else []
    if len(packages) > MAX_ASKED_PACKAGES:
        left.append(f"{len(packages) - MAX_ASKED_PACKAGES} more were not asked about")
    return answers, "; ".join(left)


def concerns_of_index_answer(
    dependency: Dependency, answers: IndexAnswers, *, is_lock: bool, is_new: bool, own_index: bool
) -> Iterator[Concern]:
    """The concerns that the answer about one package raises."""
    answer = find_answer(answers, dependency)
    if answer is None:
        return
    if not answer.there:
        if is_new and not own_index:
            scoped = dependency.name.startswith("@")
            yield Concern(
                "unknown",
                dependency.name,
                dependency.line,
                f"there is no package `{dependency.name}`: whoever registers it runs code here",
                "critical",
                0.6 if scoped else 0.95,
            )
        return
    version = exact_version(dependency)
    if version:
        reason = withdrawal_reason(answer, version)
        if reason is None:
            if not own_index:
                yield Concern(
                    "no-such-version",
                    dependency.name,
                    dependency.line,
                    f"there is no version {version} of `{dependency.name}`",
                    "high",
                    0.88,
                )
        elif reason:
            yield _withdrawn_concern(dependency, version, reason, is_lock=is_lock)
    elif answer.versions and all(answer.versions.values()):
        yield _withdrawn_concern(
            dependency, dependency.spec, next(iter(answer.versions.values())), is_lock=is_lock
        )


def _withdrawn_concern(
    dependency: Dependency, version: str, reason: str, *, is_lock: bool
) -> Concern:
    text = " ".join(reason.split())[:160].replace("`", "'")
    if dependency.ecosystem == "pypi":
        return Concern(
            "yanked",
            dependency.name,
            dependency.line,
            f"`{dependency.name}` {version} was withdrawn by its authors ({text}): take another version",
            "medium",
            0.88,
        )
    # Most packages of a lock file were not chosen by the repository.
    return Concern(
        "deprecated",
        dependency.name,
        dependency.line,
        f"the authors of `{dependency.name}` {version} advise against it ({text})",
        "low",
        0.5 if is_lock else 0.82,
    )


def has_own_index(context: ReviewContext, *manifests: DeclaredPackages) -> bool:
    """Whether the repository names a package index of its own."""
    if any(manifest.indexes for manifest in manifests):
        return True
    paths = {entry.path for entry in context.head_tree}
    if {path.rpartition("/")[2] for path in paths} & _OWN_INDEXES:
        return True
    texts = [(path, context.head_text(path)) for path in sorted(paths & _PYTHON_MANIFESTS)]
    return any(read_declared(path, text).indexes for path, text in texts if text is not None)
