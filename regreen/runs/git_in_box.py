"""A repository of one commit around a tree in a box, for commands that ask git what there is or what changed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from regreen.runs.trial import Trial

_GIT_USING_COMMAND = re.compile(
    r"(?:^|[\s;&|(`'\"/])(?:git|pre[-_]commit|prek|lefthook|lint-staged|check-manifest|make|just|tox|nox|npm|pnpm|yarn|darker|task|invoke|poe|hatch|[\w./-]{1,200}\.sh)(?:\s|$|['\"`])"
)
# Real history never enters a box: one commit of the tree as it was brought, like a checkout of depth one. What the setup
# changed in it since is no part of that commit, or a check for generated files that are out of date would always pass.
INIT_REPOSITORY_SCRIPT = """
if [ ! -e .git ] && command -v git >/dev/null 2>&1; then
  (
    export GIT_AUTHOR_NAME=regreen GIT_AUTHOR_EMAIL=regreen@localhost
    export GIT_COMMITTER_NAME=regreen GIT_COMMITTER_EMAIL=regreen@localhost
    rg_laid="$HOME/.regreen-laid"
    if [ -f "$rg_laid/list" ]; then
      : > "$rg_laid/back"
      while read -r number name; do
        cmp -s "$name" "/env/.regreen/changed/$number" || continue
        if [ -f "$rg_laid/$number" ]; then cp -p "$rg_laid/$number" "$name"; else rm -f "$name"; fi
        echo "$number $name" >> "$rg_laid/back"
      done < "$rg_laid/list"
    fi
    git init -q . && printf '%s\\n' '.regreen*' node_modules .venv .tox .nox __pycache__ '*.egg-info' >> .git/info/exclude
    git add -A . && git commit -q -m tree --no-verify && git tag -a -m tree v999.0.0
    if [ -f "$rg_laid/back" ]; then
      while read -r number name; do cp -p "/env/.regreen/changed/$number" "$name"; done < "$rg_laid/back"
    fi
  ) >/dev/null 2>&1
fi
"""


def asks_git(command: str) -> bool:
    """Whether a command line is likely to need a repository around it."""
    return bool(_GIT_USING_COMMAND.search(command))


def wrap_in_repository(command: Sequence[str]) -> tuple[str, ...]:
    """The same command, with a repository made around the tree first."""
    return ("sh", "-c", f'{INIT_REPOSITORY_SCRIPT}\nexec "$@"', "sh", *command)


def trial_argv(trial: Trial) -> tuple[str, ...]:
    """What to run in a box for a trial: its command, with a repository around the tree if it asks git."""
    return wrap_in_repository(trial.command) if asks_git(" ".join(trial.command)) else trial.command
