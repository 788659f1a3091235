"""A repository's configuration: its own file, else its organisation's, else the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from regreen.errors import ConfigError, Problem
from regreen.forge import READ, App, GitHub, Gone, NotAllowed, Refused, Repository
from regreen.records import Store
from regreen.repo_config import CONFIG_PATH, RepoConfig, parse_repo_config

Source = Literal["repository", "organisation", "defaults", "last valid"]
_SPACE = "config"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The configuration in force, where it comes from, and what is wrong with the file if it is not in force."""

    config: RepoConfig
    source: Source
    problems: tuple[Problem, ...] = ()


def load(
    github: GitHub, repository: Repository, *, app: App, installation: int, store: Store
) -> Loaded:
    """Read the configuration from the default branch. A broken file leaves the last valid one in force."""
    text = github.file(CONFIG_PATH, repository.default_branch)
    source: Source = "repository"
    if text is None:
        text, source = _of_organisation(repository, app, installation), "organisation"
    if text is None:
        return Loaded(RepoConfig(), "defaults")
    decoded = text.decode("utf-8", "replace")
    try:
        config = parse_repo_config(decoded)
    except ConfigError as error:
        last = store.get(_SPACE, repository.full_name)
        if last is None:
            return Loaded(RepoConfig(), "defaults", error.problems)
        return Loaded(parse_repo_config(last), "last valid", error.problems)
    if store.get(_SPACE, repository.full_name) != decoded:
        store.put(_SPACE, repository.full_name, decoded)
    return Loaded(config, source)


def as_yaml(config: RepoConfig) -> str:
    """A configuration as the file would have it; what the file does not say is marked."""
    from io import StringIO

    from ruamel.yaml import YAML

    out, yaml = StringIO(), YAML()
    yaml.width = 100
    yaml.dump(_marked(config), out)
    return out.getvalue()


def _marked(model: BaseModel) -> Any:
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    found = CommentedMap()
    for name, value in model:
        if isinstance(value, BaseModel):
            found[name] = _marked(value)
            continue
        plain = model.model_dump(mode="json", include={name})[name]
        if isinstance(plain, list | dict) and name not in model.model_fields_set:
            plain = CommentedSeq(plain) if isinstance(plain, list) else CommentedMap(plain)
            plain.fa.set_flow_style()  # a comment needs a line to stand on
        found[name] = plain
        if name not in model.model_fields_set:
            found.yaml_add_eol_comment("default", name)
    return found


def _of_organisation(repository: Repository, app: App, installation: int) -> bytes | None:
    owner, _, name = repository.full_name.partition("/")
    if name == ".github":
        return None
    try:
        # HEAD: whatever the default branch of that repository is called
        return app.github(f"{owner}/.github", installation, READ).file(CONFIG_PATH, "HEAD")
    except (Gone, NotAllowed, Refused):
        # most organisations have none, or have not given us that repository; a GitHub that fails says neither
        return None
