"""Infers how a repository is set up and tested: from its workflow, manifests, task runners, devcontainer or Dockerfile.

Pure functions over a read-only view of a commit's tree. The files are untrusted, so `infer_environments` reads them in
a child with limits. Nothing is run here: `environment.preparation` tries what was inferred, in order.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta

from regreen import isolation
from regreen.actions.phases import runs_tests
from regreen.actions.step_trial import make_plain_step
from regreen.actions.workflow import plan_workflow
from regreen.code.paths import is_document, is_example, is_test, is_vendored
from regreen.code.workflow_document import WorkflowError
from regreen.domain.environments import (
    Environment,
    Inferred,
    IsTestCall,
    ProjectCommit,
    RankVersion,
    RepositoryFiles,
    TestingJob,
    open_files,
)
from regreen.domain.errors import UserError
from regreen.domain.languages import ProjectTools
from regreen.domain.ports import Git
from regreen.languages.registry import LANGUAGES, PROJECTS
from regreen.packages.dependency import find_first_line_with, parse_json_object
from regreen.shell.parse import find_commands
from regreen.shell.tools import load_tools, resolve_module_program, split_runner

# From this age on, requirements without a bound mean the versions of the commit's day.
_OLD = timedelta(days=120)
_WORKFLOW = re.compile(r"\.github/workflows/[^/]+\.ya?ml")
_MAX_WORKFLOWS = 20


def infer_environments(
    git: Git,
    rev: str,
    *,
    pythons: Sequence[str],
    today: date,
    command: str = "",
    committed: date | None = None,
    touched: Collection[str] = (),
) -> tuple[Environment, ...]:
    """The environments to try at `rev`, the likeliest first; none where nothing says how anything is set up.

    Args:
        git: the repository.
        rev: the commit.
        pythons: the interpreters that boxes have ("3.11").
        today: decides whether the commit is old.
        command: the command to be run, where it is known; "" where it is to be inferred, too.
        committed: the day that counts as the commit's; by default its own.
        touched: the files that a change touches: of several projects in a tree, theirs.

    Raises:
        AnalysisFailed: the files could not be read within the limits.
    """
    with isolation.name_failed_input("the repository's manifests"):
        committed = committed or git.commit(rev).date.date()
        day = committed if today - committed > _OLD else None
        return isolation.run_in_child(
            _infer_environments_now, git, rev, tuple(pythons), day, (command, tuple(touched))
        )


def _infer_environments_now(
    git: Git,
    rev: str,
    pythons: tuple[str, ...],
    day: date | None,
    asked: tuple[str, tuple[str, ...]],
) -> tuple[Environment, ...]:
    command, touched = asked
    if _only_reads_files(command):
        return ()
    files = open_files(git, rev)
    places = _find_project_places(files, command, touched)

    def infer_ways(places: Sequence[str]) -> list[tuple[str, list[Environment]]]:
        ways: list[tuple[str, list[Environment]]] = []
        for place in places:
            inside = _open_folder(files, place)
            own = _projects_of_command(command) or _projects_of_tree(inside)
            commit = ProjectCommit(git, rev, inside, pythons, day, command, lambda *_: None)
            environments = list(own.infer_environments(commit)) if own else []
            ways += [(place, environments)] if environments else []
        return ways

    if places != [""] and (ways := infer_ways(places)):
        # what the root alone needs is tried last
        alone = ways[0][1] if len(ways) > 1 and ways[0][0] == "" else []
        rest = [replace(x, is_fallback=True) for x in alone]
        return tuple(dict.fromkeys([*_join_environments_of_places(ways), *rest]))
    projects = _projects_of_command(command) or _projects_of_tree(files)

    def find_job(is_test_call: IsTestCall, rank: RankVersion) -> TestingJob | None:
        return _find_workflow_job(files, is_test_call, rank)

    found: list[Environment] = []
    if projects is not None:
        commit = ProjectCommit(git, rev, files, pythons, day, command, find_job)
        found += projects.infer_environments(commit)
        if found and (below := _find_manifest_folders(files, projects)):
            # tests beside the projects that they test: what is in the folders, and then what the root alone says
            *jobs, alone_at_root = found
            joined = _join_environments_of_places([("", [alone_at_root]), *infer_ways(below)])
            found = [*jobs, *joined, replace(alone_at_root, is_fallback=True)]
    if not found:
        found += [*_from_devcontainer(files), *_from_dockerfile(files)]
    return tuple(dict.fromkeys(found))


def _only_reads_files(command: str) -> bool:
    """Whether a command only looks at files, as `grep` and `test` do."""
    names = [
        resolve_module_program(split_runner(one.arguments)[1])[0] for one in find_commands(command)
    ]
    return bool(names) and load_tools().programs["quiet"].issuperset(names)


def _projects_of_command(command: str) -> ProjectTools | None:
    names = (
        resolve_module_program(split_runner(one.arguments)[1])[0] for one in find_commands(command)
    )
    return next((x for name in names for x in PROJECTS if name in x.test_programs), None)


def _projects_of_tree(files: RepositoryFiles) -> ProjectTools | None:
    best = max(PROJECTS, key=lambda projects: projects.rate_tree(files))
    return best if best.rate_tree(files) else None


# -- several projects in one tree ------------------------------------------------------------------------------------

_MAX_PLACES = 6
_MAX_PLACE_DEPTH = 4
_HIDDEN_FOLDER = re.compile(r"(?:^|/)\.")
_NAMED_FOLDER = re.compile(
    r"(?:^|[\s;&|(])(?:(?:cd|pushd)\s+|(?:-C|--prefix|--cwd|--dir)[ =])(?P<folder>[\w][\w./-]{0,200})"
)


def _find_project_places(files: RepositoryFiles, command: str, touched: Sequence[str]) -> list[str]:
    """The folders of the projects that a command names, or that a change touches; "" is the root.

    Without either all of them, where the root holds no project. A folder whose language is the root's is a part of it.
    """
    root = _projects_of_tree(files) if _is_project(files) else None
    manifests = {name for language in LANGUAGES for name in language.manifests}
    found = set(_list_folders(files, manifests))
    found = {x for x in found if _is_project(_open_folder(files, x))}
    found = {x for x in found if _projects_of_tree(_open_folder(files, x)) != root}
    named = [m["folder"].rstrip("/") for m in _NAMED_FOLDER.finditer(command)]
    if command:
        return sorted(found.intersection(named))[:_MAX_PLACES] or [""]
    if touched:
        above = {_find_nearest_place(path, found) for path in touched if not is_document(path)}
        return sorted(above if root else above - {""})[:_MAX_PLACES] or [""]
    outer = sorted(x for x in found if not _find_nearest_place(posixpath.dirname(x), found))
    beside = any(is_test(path) and not _find_nearest_place(path, found) for path in files.paths)
    return [""] if root or beside or len(outer) > _MAX_PLACES else outer or [""]


def _is_project(files: RepositoryFiles) -> bool:
    """Whether there is a manifest at the root, and where code alone makes a project, a test."""
    return any(projects.rate_tree(files) > 1 for projects in PROJECTS)


def _find_manifest_folders(files: RepositoryFiles, projects: ProjectTools) -> list[str]:
    """The folders with manifests of these projects where the root has none; none of them where they are many."""
    manifests = {name for x in LANGUAGES if x.projects is projects for name in x.manifests}
    found = set() if manifests & files.paths else set(_list_folders(files, manifests))
    outer = sorted(x for x in found if not _find_nearest_place(posixpath.dirname(x), found))
    return outer if len(outer) < _MAX_PLACES else []


def _list_folders(files: RepositoryFiles, manifests: Collection[str]) -> Iterator[str]:
    """The folders below the root that hold one of these manifests of the product's."""
    for path in files.paths:
        folder, _, name = path.rpartition("/")
        if folder and name in manifests and folder.count("/") < _MAX_PLACE_DEPTH:
            apart = is_test(path) or is_example(path) or is_vendored(path)
            if not apart and not _HIDDEN_FOLDER.search(path):
                yield folder


def _find_nearest_place(path: str, places: Collection[str]) -> str:
    """The nearest of these folders that a path is in, or is; "" where it is in none."""
    while path and path not in places:
        path = posixpath.dirname(path)
    return path


def _open_folder(files: RepositoryFiles, folder: str) -> RepositoryFiles:
    if not folder:
        return files
    start = f"{folder}/"
    paths = (path.removeprefix(start) for path in files.paths if path.startswith(start))
    return RepositoryFiles(frozenset(paths), lambda path: files.read(start + path))


def _join_environments_of_places(
    ways: Sequence[tuple[str, Sequence[Environment]]],
) -> Iterator[Environment]:
    """Environments that set up each project in its folder, and whose test is all of theirs."""
    for number in range(max(len(found) for _, found in ways)):
        parts = [(place, found[min(number, len(found) - 1)]) for place, found in ways]
        python = next((one.python for _, one in parts if one.python), None)
        languages = dict.fromkeys(one.language for _, one in parts)
        interpreters = (one.interpreter for _, one in parts if len(languages) == 1 or one.python)
        setups = [(place, one.setup) for place, one in parts if one.setup]
        tests = [(place, one.test) for place, one in parts if one.test]
        yield Environment(
            ", ".join(languages),
            next(interpreters, None),
            _join_inferred(setups, "cd {}\n{}"),
            _join_inferred(tests, "cd {} && {}")
            if len(tests) == 1
            else _join_inferred(tests, "( cd {} && {}\n) || failed=$?", "failed=0", "exit $failed"),
            python=python,
            is_fallback=any(one.is_fallback for _, one in parts),
        )


def _join_inferred(
    parts: Sequence[tuple[str, Inferred]], line: str, start: str = "", end: str = ""
) -> Inferred | None:
    if not parts:
        return None
    lines = [
        line.format(shlex.quote(posixpath.join("/work", place)), one.value) for place, one in parts
    ]
    place, first = parts[0]
    return Inferred(
        "\n".join(x for x in (start, *lines, end) if x), posixpath.join(place, first.source)
    )


# -- workflows -------------------------------------------------------------------------------------------------------


def _find_workflow_job(
    files: RepositoryFiles, is_test_call: IsTestCall, rank: RankVersion
) -> TestingJob | None:
    """The job that runs the tests, where its steps are plain commands: of a matrix the cell that ranks lowest."""

    def read(path: str) -> bytes | None:
        return files.read(path).encode() if path in files.paths else None

    def finds_test(script: str) -> bool:
        return any(is_test_call(one.arguments) for one in find_commands(script))

    for path in sorted(filter(_WORKFLOW.fullmatch, files.paths))[:_MAX_WORKFLOWS]:
        try:
            jobs = plan_workflow(files.read(path), files=read)
        except (WorkflowError, UserError):
            continue
        usable = [job for job in jobs if job.supported and not job.services]
        usable.sort(key=lambda job: rank(job.python))
        for job in usable:
            step = next((one for one in job.steps if runs_tests(one) and finds_test(one.run)), None)
            found = make_plain_step(job, step) if step is not None else None
            if step is not None and found is not None:
                line = find_first_line_with(files.read(path), step.run.strip().splitlines()[0])
                return TestingJob(*found, job.python, f"{path}:{line}")
    return None


# -- containers  -------------------------------------------------------------------------------------


_JSON_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|,(?=\s*[}\]])')


def _from_devcontainer(files: RepositoryFiles) -> Iterator[Environment]:
    for path in (".devcontainer/devcontainer.json", ".devcontainer.json"):
        text = files.read(path)
        document = parse_json_object(_JSON_COMMENT.sub(lambda found: found[1] or "", text))
        image, setup = document.get("image"), document.get("postCreateCommand")
        if isinstance(setup, list):
            setup = shlex.join(map(str, setup))
        if isinstance(image, str) or isinstance(setup, str):
            yield Environment(
                "",
                setup=Inferred(setup, f"{path}:{find_first_line_with(text, 'postCreateCommand')}")
                if isinstance(setup, str)
                else None,
                image=Inferred(image, f"{path}:{find_first_line_with(text, 'image')}")
                if isinstance(image, str)
                else None,
            )
            return


_DOCKERFILE_STAGE = re.compile(r"(?im)^FROM[ \t]+(?:--\S+[ \t]+)?(\S+)(?:[ \t]+AS[ \t]+(\S+))?")


def _from_dockerfile(files: RepositoryFiles) -> Iterator[Environment]:
    text = files.read("Dockerfile").replace("\\\n", " ")
    stages: dict[str, str] = {}
    images: list[str] = []
    for written, name in _DOCKERFILE_STAGE.findall(text):
        image = stages.get(written.lower(), written)
        stages[name.lower()] = image
        if image != "scratch" and "$" not in image:
            images.append(image)
    steps = re.findall(r"(?im)^RUN[ \t]+(?!\[|--)(.+)$", text)
    if images:
        line = find_first_line_with(text, images[-1])
        setup = Inferred("\n".join(steps), "Dockerfile:1") if steps else None
        yield Environment("", setup=setup, image=Inferred(images[-1], f"Dockerfile:{line}"))
