"""Which packages a manifest or lock file names, and from where: one reader for each kind of file."""

from __future__ import annotations

import re
from collections.abc import Callable
from configparser import Error as ConfigError

from regreen.codebase.declared_elsewhere import (
    cargo_lock,
    cargo_toml,
    gemfile,
    go_mod,
    package_json,
    package_lock,
)
from regreen.codebase.declared_indexes import cargo_config, npmrc, pip_conf, uv_toml, yarnrc
from regreen.codebase.declared_locks import go_sum, pnpm_lock, yarn_lock
from regreen.codebase.declared_python import (
    pipfile,
    pyproject,
    python_lock,
    requirements,
    setup_cfg,
    setup_py,
)
from regreen.codebase.dependency import Declared
from regreen.codebase.fstrings import Unparsable

_LARGEST = 5_000_000
_REQUIREMENTS = re.compile(
    r"(?i)(?:^|/)(?:[\w.-]*requirements[\w.-]*\.(?:txt|in)|requirements/[\w.-]+\.(?:txt|in)|constraints[\w.-]*\.txt|(?:[\w.-]*[-_.])?(?:reqs|deps)(?:[-_.][\w.-]*)?\.(?:txt|in))$"
)


def is_manifest(path: str) -> bool:
    """Whether `declared` can read packages from such a file."""
    return _reader(path) is not None


def declared(path: str, text: str) -> Declared:
    """What the file declares; `problem` says why where it cannot be read."""
    reader = _reader(path)
    if reader is None:
        return Declared()
    if len(text) > _LARGEST:
        return Declared(problem="too large")
    try:
        return reader(text)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        ConfigError,
        Unparsable,
    ) as error:
        return Declared(problem=f"not readable: {str(error)[:120]}")


def _reader(path: str) -> Callable[[str], Declared] | None:
    name = path.rpartition("/")[2].lower()
    if _REQUIREMENTS.search(path):
        return requirements
    if name.endswith((".lock",)) and name in {"poetry.lock", "uv.lock", "pdm.lock", "cargo.lock"}:
        return cargo_lock if name == "cargo.lock" else python_lock
    if path.endswith((".cargo/config.toml", ".cargo/config")):
        return cargo_config
    return _BY_NAME.get(name)


_BY_NAME: dict[str, Callable[[str], Declared]] = {
    "pyproject.toml": pyproject,
    "setup.cfg": setup_cfg,
    "setup.py": setup_py,
    "pipfile": pipfile,
    "package.json": package_json,
    "package-lock.json": package_lock,
    "npm-shrinkwrap.json": package_lock,
    "yarn.lock": yarn_lock,
    "pnpm-lock.yaml": pnpm_lock,
    "go.mod": go_mod,
    "go.sum": go_sum,
    "cargo.toml": cargo_toml,
    "gemfile": gemfile,
    "pip.conf": pip_conf,
    "pip.ini": pip_conf,
    "uv.toml": uv_toml,
    ".npmrc": npmrc,
    ".yarnrc": yarnrc,
    ".yarnrc.yml": yarnrc,
}
