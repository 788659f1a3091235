"""What `--help` shows below the options: commands to start from."""

from __future__ import annotations

_EXAMPLES: dict[str, tuple[str, ...]] = {
    "review": (
        "regreen review                          # this branch against the default branch",
        "regreen review --head WORKTREE          # files as they stand",
        "git diff main... | regreen review --diff -",
        "regreen review --format sarif > regreen.sarif",
    ),
    "fix": (
        "regreen fix -- python -m pytest -q",
        'regreen fix --setup "pip install -e .[test]" --apply -- python -m pytest -q',
        "regreen fix --workflow .github/workflows/ci.yml --job test --log job.log",
    ),
    "gate": (
        "regreen gate --base HEAD --patch fix.patch",
        "git diff | regreen gate --base HEAD --patch - --format json",
    ),
    "plan": (
        "regreen plan .github/workflows/ci.yml",
        "regreen plan .github/workflows/ci.yml --job test --format json",
    ),
    "ci-log": ("regreen ci-log job.log", "gh run view --log-failed | regreen ci-log -"),
    "config": (
        "regreen config check",
        "regreen config check --format json .github/regreen.yml",
        "regreen config schema > regreen.schema.json",
    ),
    "sandbox": (
        "regreen sandbox -- python -c 'print(1)'",
        'regreen sandbox --tree . --setup "pip install -r requirements.txt" -- make test',
    ),
    "doctor": ("regreen doctor", "regreen doctor --format json"),
    "worker": ("regreen worker", "regreen worker --id second"),
    "playground": ("regreen playground", "regreen playground --port 9000 --empty"),
    "serve": ("regreen serve --host 0.0.0.0 --port 8080",),
    "setup": ("regreen setup --public-url https://regreen.example.org",),
    "replay": (
        "regreen replay 72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "regreen replay payload.json --event pull_request",
    ),
    "demo": ("regreen demo --keep",),
    "completion": (
        'eval "$(regreen completion bash)"',
        "regreen completion fish > ~/.config/fish/completions/regreen.fish",
    ),
}


def examples(name: str) -> str | None:
    """The examples of a command, as click takes them; None where it has none."""
    found = _EXAMPLES.get(name)
    return None if found is None else "\b\nExamples:\n" + "\n".join(f"  {line}" for line in found)
