"""The `regreen` command: one module a subcommand, loaded only when it is called for."""

from __future__ import annotations

import difflib
import errno
import importlib
import os
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from regreen import __version__
from regreen.cli.terminal import end_progress, strip_control_characters
from regreen.domain.errors import NoSandbox, NotARepository, OutsideError, UserError

COMMANDS = {
    "review": "reads a change and says what it can back up",
    "bisect": "finds the commit that broke a test, flaky or not",
    "fix": "makes a failing command pass, with proof",
    "env": "says how the repository is set up and tested, and tries it",
    "init": "writes .github/regreen.yml from what env says",
    "prove": "says whether a change's tests prove it",
    "why": "says who caused a failure: the change, main, a flake, a package",
    "replay": "repeats what a capsule holds: same, different or missing",
    "gate": "judges a patch: allow, needs_human or deny",
    "plan": "says how a workflow file would be reproduced",
    "ci-log": "reads the failures out of a CI job's log",
    "sandbox": "runs one command in the sandbox",
    "doctor": "checks this machine and attacks its sandbox",
    "clean": "shows and empties what Regreen keeps here",
    "config": "checks .github/regreen.yml, prints its schema",
    "mcp": "serves review, fix, bisect, gate and prove",
    "serve": "runs the App: webhooks, dashboard, workers",
    "worker": "runs one more worker on the same database",
    "setup": "registers the GitHub App",
    "redeliver": "runs one webhook delivery again",
    "demo": "runs an offline demonstration from review to schedule",
    "playground": "serves the local GitHub alone",
    "completion": "prints the completion script of a shell",
}


# Commands that share another one's module, where they are called NAME_command.
_SHARED_MODULES = {
    "worker": "serve",
    "redeliver": "serve",
    "init": "env",
    "ci-log": "plan",
    "playground": "demo",
    "replay": "why",
    "completion": "config",
}


# Commands that use the caches, which `clean` leaves alone while they run.
_CACHE_USERS = frozenset(
    {
        "review",
        "why",
        "replay",
        "prove",
        "bisect",
        "fix",
        "env",
        "init",
        "gate",
        "sandbox",
        "doctor",
        "serve",
        "worker",
        "redeliver",
    }
)


class _LazyGroup(click.Group):
    """Imports a subcommand's module when it is used, so that `--help` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = importlib.import_module(f"regreen.cli.{_SHARED_MODULES.get(cmd_name, name)}")
        command = getattr(module, f"{name}_command" if cmd_name in _SHARED_MODULES else "command")
        assert isinstance(command, click.Command)  # noqa: S101 - narrows importlib's Any
        command.epilog = command.epilog or format_examples(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was meant."""
        if args and args[0] not in COMMANDS:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            meant = f"did you mean `regreen {near[0]}`?" if near else "`regreen --help` lists them"
            ctx.fail(f"there is no command {args[0]!r}; {meant}")
        name, command, rest = super().resolve_command(ctx, args)
        wants_help = bool({"-h", "--help"} & set(rest)) or ctx.resilient_parsing
        if name in _CACHE_USERS and not wants_help:
            from regreen.domain.private_folders import lock_caches

            with suppress(UserError, OSError):  # a command that needs the folder says so itself
                ctx.with_resource(lock_caches())
        if command is not None and name is not None and not wants_help:
            ctx.default_map = {name: _load_defaults(name, command)}
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; its last stage ends with it."""
        try:
            return super().invoke(ctx)
        finally:
            end_progress()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _load_defaults(name: str, command: click.Command) -> dict[str, object]:
    """The user's defaults for a command."""
    from regreen.cli.options import (
        COMMANDS_WITH_DEFAULTS,
        load_defaults,
        select_defaults_of_command,
    )

    if name not in COMMANDS_WITH_DEFAULTS:
        return {}
    try:
        return select_defaults_of_command(command, load_defaults(name))
    except UserError:
        if name == "doctor":  # which shows it
            return {}
        raise


@click.group(
    cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(__version__, prog_name="regreen")
def cli() -> None:
    """Regreen turns red back to green."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 the answer is no, 2 wrong usage, 3 the environment failed.

    Without `argv` the process is the command's own: a limit of time counts from its start, and ends it. A process that
    calls this with `argv` lives on.
    """
    try:
        code = cli.main(
            args=list(argv) if argv is not None else None,
            prog_name="regreen",
            standalone_mode=False,
            obj=_find_process_start() if argv is None else None,
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        _exit_with_message(2, _describe_usage_error(error))
    except (NoSandbox, NotARepository, OutsideError) as error:
        _exit_with_message(3, str(error))
    except UserError as error:
        _exit_with_message(2, str(error))
    except (KeyboardInterrupt, click.Abort):
        _exit_with_message(130, "stopped")
    except Exception as error:
        if (refusal := describe_refusal(error)) is None:
            raise
        # what could not be printed is not tried again at the end, which has a code of its own
        if argv is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _exit_with_message(3, refusal)
    sys.exit(code if isinstance(code, int) else 0)


def _find_process_start() -> float:
    """When this process began, on the monotonic clock: a limit of time holds for its start, too."""
    now = time.monotonic()
    with suppress(OSError, ValueError, IndexError, AttributeError):  # where there is no /proc
        stat = Path("/proc/self/stat").read_text("utf-8", "replace")
        ticks = int(stat.rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return now - max(0.0, age)
    return now - time.process_time()


# What a machine without room or rights answers, whatever is being written, and what helps.
_NO_ROOM = "free some space, or set REGREEN_HOME and TMPDIR to folders on a disk that has it"
_NO_RIGHTS = "get access to it, or set REGREEN_HOME and TMPDIR to folders of your own"
_SYSTEM_REFUSALS = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EROFS: _NO_RIGHTS,
    errno.EACCES: _NO_RIGHTS,
    errno.EPERM: _NO_RIGHTS,
}
_DATABASE_REFUSALS = {
    "SQLITE_FULL": _NO_ROOM,
    "SQLITE_IOERR": _NO_ROOM,
    "SQLITE_READONLY": _NO_RIGHTS,
    "SQLITE_CANTOPEN": _NO_RIGHTS,
    "SQLITE_CORRUPT": "`regreen clean runs answers index` removes what is stored",
    "SQLITE_NOTADB": "`regreen clean runs answers index` removes what is stored",
}


def describe_refusal(error: Exception) -> str | None:
    """What this machine refused, with what helps; None for any other error, which is a bug."""
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        remedy = _SYSTEM_REFUSALS.get(error.errno or 0)
        return f"{place}{error.strerror}; {remedy}" if remedy else None
    kind = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
    remedy = _DATABASE_REFUSALS.get(kind)
    return f"the database of stored runs: {error}; {remedy}" if remedy else None


def _describe_usage_error(error: click.ClickException) -> str:
    """What was wrong with the words that were typed, and where the right ones stand."""
    message = re.sub(
        r"is not a valid integer( range)?\b", "is not a whole number", error.format_message()
    )
    message = re.sub(r"is not a valid float( range)?\b", "is not a number", message).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or context.parent is None:
        return message
    joint = " " if message.endswith("?") else "; "
    return f"{message}{joint}`{context.command_path} --help` shows how it is called"


def _exit_with_message(code: int, message: str) -> NoReturn:
    one_line = strip_control_characters(" ".join(message.split()))
    click.echo(f"regreen: {one_line}", err=True)
    sys.exit(code)


# What `--help` shows below the options: commands to start from.

_EXAMPLES: dict[str, tuple[str, ...]] = {
    "why": (
        "regreen why --base main -- pytest -q",
        "regreen why --log red.log --green-log green.log -- pytest -q",
    ),
    "replay": (
        "regreen replay capsule.json",
        "regreen replay capsule.json --repo ../clone --offline",
    ),
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
    "prove": (
        "regreen prove                           # this branch against the default branch",
        'regreen prove --base main --title "Fix #7" --format json',
    ),
    "env": ("regreen env", "regreen env --rev WORKTREE --format json", "regreen env --no-try"),
    "init": ("regreen init",),
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
    "clean": ("regreen clean", "regreen clean environments mirrors", "regreen clean --all --yes"),
    "mcp": ("regreen mcp --repo .",),
    "worker": ("regreen worker", "regreen worker --id second"),
    "playground": ("regreen playground", "regreen playground --port 9000 --empty"),
    "serve": ("regreen serve --host 0.0.0.0 --port 8080",),
    "setup": ("regreen setup --public-url https://regreen.example.org",),
    "redeliver": (
        "regreen redeliver 72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "regreen redeliver payload.json --event pull_request",
    ),
    "demo": ("regreen demo --keep",),
    "completion": (
        'eval "$(regreen completion bash)"',
        "regreen completion fish > ~/.config/fish/completions/regreen.fish",
    ),
}


def format_examples(name: str) -> str | None:
    """The examples of a command, as click takes them; None where it has none."""
    found = _EXAMPLES.get(name)
    return None if found is None else "\b\nExamples:\n" + "\n".join(f"  {line}" for line in found)
