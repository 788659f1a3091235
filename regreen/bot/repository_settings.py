"""Loads a repository's configuration: its own file, else its organisation's, else the defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel

from regreen.code.repo_config_file import parse_repo_config
from regreen.domain.errors import ConfigError, ConfigProblem
from regreen.domain.github import (
    READ_SCOPE,
    App,
    GitHub,
    NotAllowed,
    NotFound,
    Repository,
    ValidationFailed,
)
from regreen.domain.records import Store
from regreen.domain.repo_config import CONFIG_PATH, Mode, RepoConfig
from regreen.domain.settings import Settings
from regreen.domain.state_records import LastValidConfig, MissingOrganisationConfig

ConfigSource = Literal["repository", "organisation", "defaults", "last valid"]
_ASKS_TO_OBSERVE = re.compile(r"^mode[ \t]*:[ \t]*[\"']?observe\b", re.MULTILINE)
_MISSING_CACHE_TIME = timedelta(minutes=5)
"""How long an organisation that has no configuration is not asked for one again."""


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The configuration in force, its origin, and the faults of a file that is not in force."""

    config: RepoConfig
    source: ConfigSource
    problems: tuple[ConfigProblem, ...] = ()


def load(
    github: GitHub,
    repository: Repository,
    *,
    app: App,
    installation: int,
    store: Store,
    now: datetime,
) -> LoadedConfig:
    """Read the configuration from the default branch. If the file is broken, the last valid one stays in force."""
    if repository.full_name.endswith("/.github"):
        store.remove(
            MissingOrganisationConfig, installation=installation, owner=_owner_of(repository)
        )
    text = github.file(CONFIG_PATH, repository.default_branch)
    source: ConfigSource = "repository"
    if text is None:
        text = _read_organisation_config(repository, app, installation, store, now)
        source = "organisation"
    if text is None:
        return LoadedConfig(RepoConfig(), "defaults")
    decoded = text.decode("utf-8", "replace")
    try:
        config = parse_repo_config(decoded)
    except ConfigError as error:
        known = store.find(LastValidConfig, repo=repository.full_name)
        valid = known.text if known else ""
        config = parse_repo_config(valid)
        # a fault elsewhere in the file does not let Regreen write
        is_observed = bool(_ASKS_TO_OBSERVE.search(decoded))
        if is_observed:
            config = config.model_copy(update={"mode": "observe"})
        elif "mode" not in config.model_fields_set:
            mode = _read_organisation_mode(repository, app, installation, store, now)
            config = config.model_copy(update={"mode": mode})
        if known or is_observed:
            _keep_config(store, LastValidConfig(repository.full_name, valid, is_observed))
        return LoadedConfig(config, "last valid" if valid else "defaults", error.problems)
    _keep_config(store, LastValidConfig(repository.full_name, decoded))
    if source == "repository" and "mode" not in config.model_fields_set:
        mode = _read_organisation_mode(repository, app, installation, store, now)
        config = config.model_copy(update={"mode": mode})
    return LoadedConfig(config, source)


def _read_organisation_mode(
    repository: Repository, app: App, installation: int, store: Store, now: datetime
) -> Mode:
    """The mode that the organisation's file sets; where that file is broken, as it was last read."""
    text = _read_organisation_config(repository, app, installation, store, now)
    if text is None:
        return RepoConfig().mode
    own = f"{_owner_of(repository)}/.github"
    try:
        config = parse_repo_config(text.decode("utf-8", "replace"))
        store.save(LastValidConfig(own, text.decode("utf-8", "replace")))
    except ConfigError:
        return _find_last_mode(store, own)
    return config.mode


def _keep_config(store: Store, config: LastValidConfig) -> None:
    """Store what was last valid, only where it differs: every job reads the configuration."""
    if store.find(LastValidConfig, repo=config.repo) != config:
        store.save(config)


def was_observed(store: Store, settings: Settings, repo: str) -> bool:
    """Whether the operator, the repository's file or else its organisation's, as last read, lets nothing be written."""
    return settings.is_observed(repo) or _find_last_mode(store, repo) == "observe"


def _find_last_mode(store: Store, repo: str) -> Mode:
    for name in (repo, f"{repo.partition('/')[0]}/.github"):
        last = store.find(LastValidConfig, repo=name)
        if last and last.observed:
            return "observe"
        try:
            config = parse_repo_config(last.text) if last else RepoConfig()
        except ConfigError:  # it was valid for an earlier version
            continue
        if "mode" in config.model_fields_set:
            return config.mode
    return RepoConfig().mode


def config_to_yaml(config: RepoConfig) -> str:
    """A configuration as YAML; values that the file does not set are marked."""
    from io import StringIO

    from ruamel.yaml import YAML

    out, yaml = StringIO(), YAML()
    yaml.width = 100
    yaml.dump(_mark_defaults(config), out)
    return out.getvalue()


def _mark_defaults(model: BaseModel) -> Any:
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    marked = CommentedMap()
    for name, value in model:
        if isinstance(value, BaseModel):
            marked[name] = _mark_defaults(value)
            continue
        # of the patterns only what the file says
        is_dict = isinstance(value, dict)
        plain = model.model_dump(mode="json", include={name}, exclude_unset=is_dict).get(name, {})
        if isinstance(plain, list | dict) and name not in model.model_fields_set:
            plain = CommentedSeq(plain) if isinstance(plain, list) else CommentedMap(plain)
            plain.fa.set_flow_style()  # a comment needs a line of its own
        marked[name] = plain
        if name not in model.model_fields_set:
            marked.yaml_add_eol_comment("default", name)
    return marked


def _read_organisation_config(
    repository: Repository, app: App, installation: int, store: Store, now: datetime
) -> bytes | None:
    owner, _, name = repository.full_name.partition("/")
    if name == ".github":
        return None
    missing = store.find(MissingOrganisationConfig, installation=installation, owner=owner)
    if missing is not None and now < datetime.fromisoformat(missing.until):
        return None
    try:
        # HEAD: the default branch of that repository, whatever its name
        text = app.github(f"{owner}/.github", installation, READ_SCOPE).file(CONFIG_PATH, "HEAD")
    except (NotFound, NotAllowed, ValidationFailed):
        # most organisations have no such repository or do not share it; a failing GitHub is no answer
        text = None
    if text is None:
        until = (now + _MISSING_CACHE_TIME).isoformat()
        store.save(MissingOrganisationConfig(installation, owner, until))
    return text


def _owner_of(repository: Repository) -> str:
    return repository.full_name.partition("/")[0]
