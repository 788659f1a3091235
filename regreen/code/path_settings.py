"""What `.github/regreen.yml` says of one file, or of the files that a change touches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile

from regreen.code.paths import is_document, matches_glob
from regreen.domain.ports import Git
from regreen.domain.repo_config import PathConfig, RepoConfig, ReviewConfig, TestsConfig


def review_settings(config: RepoConfig, path: str) -> ReviewConfig:
    """How a file is reviewed: for each key the last pattern that covers the file and names the key."""
    settings = config.review
    for entry in _covering(config, path):
        named = {key: value for key, value in entry.review if key in entry.review.model_fields_set}
        named.pop("instructions", None)  # these are told beside those of the repository
        settings = settings.model_copy(update={k: v for k, v in named.items() if v is not None})
    return settings


def with_dimensions_of_all_paths(config: RepoConfig) -> RepoConfig:
    """The configuration with the dimensions that are wanted for any file."""
    wanted = dict.fromkeys(config.review.dimensions)
    for entry in config.paths.values():
        wanted |= dict.fromkeys(entry.review.dimensions or ())
    review = config.review.model_copy(update={"dimensions": tuple(wanted)})
    return config.model_copy(update={"review": review})


def without_confidence_by_path(config: RepoConfig) -> RepoConfig:
    """The configuration without a confidence by path: the caller named one for all files."""
    paths = {}
    for glob, entry in config.paths.items():
        review = entry.review.model_copy(update={"min_confidence": None})
        paths[glob] = entry.model_copy(update={"review": review})
    return config.model_copy(update={"paths": paths})


def list_ignored(config: RepoConfig) -> tuple[str, ...]:
    """The patterns of what is not reviewed, those of each path included."""
    below = (
        _prefix_with_folders(glob, pattern)
        for glob, entry in config.paths.items()
        for pattern in entry.review.ignore
    )
    return (*config.review.ignore, *below)


def narrow_limits(config: RepoConfig, paths: Iterable[str]) -> RepoConfig:
    """The configuration with the limits on repairs and cost that hold where these files are touched."""
    protected = list(config.fix.protected_paths)
    for glob, entry in config.paths.items():
        protected += [] if entry.fix.enabled else [glob]
        protected += [_prefix_with_folders(glob, pattern) for pattern in entry.fix.protected_paths]
    entries = [entry for path in paths for entry in _covering(config, path)]
    lines = [x.fix.max_changed_lines for x in entries if x.fix.max_changed_lines is not None]
    dollars = [
        x.budget.usd_per_pull_request for x in entries if x.budget.usd_per_pull_request is not None
    ]
    fix = {
        "protected_paths": tuple(protected),
        "max_changed_lines": min((config.fix.max_changed_lines, *lines)),
    }
    budget = {"usd_per_pull_request": min((config.budget.usd_per_pull_request, *dollars))}
    return config.model_copy(
        update={
            "fix": config.fix.model_copy(update=fix),
            "budget": config.budget.model_copy(update=budget),
        }
    )


def _prefix_with_folders(glob: str, pattern: str) -> str:
    """A pattern of a path's own, from the repository's root."""
    folders = takewhile(lambda part: not set("*?[") & set(part), glob.split("/"))
    return "/".join([*folders, pattern])


def find_changed_paths(git: Git, base: str, head: str) -> list[str]:
    """The files in which `head` differs from where it left `base`."""
    start = git.merge_base(base, head) or base
    before, after = ({e.path: e.sha for e in git.tree(rev)} for rev in (start, head))
    return sorted(path for path in before | after if before.get(path) != after.get(path))


def find_instructions(config: RepoConfig, paths: Iterable[str]) -> str:
    """What reviewers of these files should know."""
    instructions = [config.review.instructions] if config.review.instructions else []
    files = tuple(paths)
    for glob, entry in config.paths.items():
        if entry.review.instructions and any(matches_glob(path, (glob,)) for path in files):
            instructions.append(f"For {glob}: {entry.review.instructions}")
    return "\n\n".join(instructions)


def select_tests(config: RepoConfig, paths: Collection[str]) -> RepoConfig:
    """The configuration with the tests that a change of these files asks for.

    Files that no pattern with a command covers ask for the repository's own command, if it has one. Several commands run
    one after the other, and fail if one does; those of different images cannot: then the repository's own are run.
    """
    chosen = _find_tests_of_paths(config, paths)
    if not chosen or need_several_images(config, paths):
        return config
    joined = chosen[0] if len(chosen) == 1 else _join_tests(chosen)
    return config.model_copy(update={"tests": joined})


def need_several_images(config: RepoConfig, paths: Iterable[str]) -> bool:
    """Whether a change of these files asks for tests of different images, which no single run has."""
    return len({tests.image for tests in _find_tests_of_paths(config, paths)}) > 1


def _find_tests_of_paths(config: RepoConfig, paths: Iterable[str]) -> list[TestsConfig]:
    asked: dict[TestsConfig, None] = {}
    for path in paths:
        named = [entry.tests for entry in _covering(config, path) if entry.tests.command]
        if not named and is_document(path):
            continue
        own = config.tests
        for tests in named[-1:]:
            given = {key: value for key, value in tests if key in tests.model_fields_set}
            # the repository's setup and image belong to its own command
            own = own.model_copy(update={"setup": "", "image": None} | given)
        asked[own] = None
    return [tests for tests in asked if tests.command]


def _join_tests(chosen: list[TestsConfig]) -> TestsConfig:
    setups = dict.fromkeys(tests.setup for tests in chosen if tests.setup)
    commands = [f"( {tests.command}\n) || failed=$?" for tests in chosen]
    return chosen[0].model_copy(
        update={
            "setup": "\n".join(f"( {setup}\n) || exit" for setup in setups)
            if len(setups) > 1
            else "".join(setups),
            "command": "\n".join(["failed=0", *commands, "exit $failed"]),
            "timeout_minutes": sum(tests.timeout_minutes for tests in chosen),
        }
    )


def _covering(config: RepoConfig, path: str) -> Iterator[PathConfig]:
    return (entry for glob, entry in config.paths.items() if matches_glob(path, (glob,)))
