"""`regreen sandbox`: one command in a fresh box, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from regreen.cli.options import env_option, format_option, parse_variables, sandbox_option
from regreen.cli.terminal import strip_control_characters
from regreen.domain.errors import Cancelled, OutsideError, SetupFailed
from regreen.domain.models import BoxLimits, EnvSpec, RunResult, Trust
from regreen.packages.python_version import digest_setup_inputs
from regreen.packages.setup_guard import SourceTree, explain_refusals, find_refusals


@click.command("sandbox")
@click.option(
    "--tree",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="What /work holds.",
)
@click.option("--setup", metavar="CMD", help="A shell command for the network phase, run first.")
@click.option("--python", metavar="X.Y", help="The Python of the sandbox.")
@click.option("--image", metavar="NAME", help="The image of the sandbox (Docker only).")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.01),
    default=300.0,
    metavar="S",
    help="After so long the command is ended.",
)
@click.option(
    "--memory",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="What all of it may take together.",
)
@click.option("--disk", type=click.IntRange(min=1), metavar="BYTES", help="What /work may hold.")
@click.option(
    "--pids", type=click.IntRange(min=1), metavar="N", help="How many processes and threads."
)
@click.option(
    "--output-limit", type=click.IntRange(min=0), metavar="BYTES", help="Kept, head and tail."
)
@env_option()
@click.option("--read", "paths", multiple=True, metavar="PATH", help="A file to bring back.")
@click.option(
    "--trust",
    type=click.Choice(["local", "default_branch", "pull_request"]),
    default="local",
    help="Whose tree it is: a pull request's may not have just anything installed.",
)
@click.option(
    "--base-tree",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A trusted tree: what it has installed, a pull request's may too.",
)
@sandbox_option("kind")
@format_option("form", "text", "json")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- COMMAND...")
def command(  # noqa: PLR0917 - click passes one argument an option
    tree: Path | None,
    setup: str | None,
    python: str | None,
    image: str | None,
    timeout: float,
    memory: int | None,
    disk: int | None,
    pids: int | None,
    output_limit: int | None,
    env: tuple[str, ...],
    paths: tuple[str, ...],
    trust: Trust,
    base_tree: Path | None,
    kind: str,
    form: str,
    argv: tuple[str, ...],
) -> int:
    """Run one command in the sandbox: no network, no credential, bounded in everything."""
    from regreen.adapters.git import tar_stream as directory
    from regreen.adapters.sandbox import selection as sandboxes

    variables = dict(parse_variables(env))
    sandbox = sandboxes.choose_sandbox(kind)
    limits = _make_limits(memory, disk, pids, output_limit)
    pack = partial(directory.pack_directory, tree, limits.disk) if tree else tuple
    spec = EnvSpec(
        image=image,
        python=python,
        setup=setup,
        inputs=_read_setup_inputs(setup, tree) if setup and tree else "",
        trust=trust,
        env=tuple(sorted(variables.items())),
        checked=True,
    )
    if trust == "pull_request":
        _refuse_unknown(spec, tree, base_tree)
    environment = sandbox.prepare(spec, pack())
    with sandbox.open(environment, pack(), limits) as box:
        result = box.run(argv, timeout=timeout, env=variables)
        files = {path: _read_text(box.read, path) for path in paths}
    if form == "json":
        click.echo(json.dumps(_result_document(sandbox.name, result, files)))
    else:
        _print_result(result, files)
    return 0 if result.passed else 1


def _read_setup_inputs(setup: str, tree: Path) -> str:
    from regreen.adapters.git import tar_stream as directory

    return digest_setup_inputs(
        setup, directory.list_entries(tree), partial(directory.read_regular_file, tree)
    )


def _refuse_unknown(spec: EnvSpec, tree: Path | None, base: Path | None) -> None:
    found = find_refusals(
        spec.setup or "", spec.env, _open_tree(tree), _open_tree(base) if base else None
    )
    if found:
        message = f"the setup was not run: {explain_refusals(found)}"
        raise SetupFailed(message, message)


def _open_tree(folder: Path | None) -> SourceTree:
    from regreen.adapters.git import tar_stream as directory

    if folder is None:
        return SourceTree({}, lambda _: None)
    files = {entry.path: entry.sha for entry in directory.list_entries(folder)}
    return SourceTree(files, partial(directory.read_regular_file, folder))


def _make_limits(
    memory: int | None, disk: int | None, pids: int | None, output: int | None
) -> BoxLimits:
    usual = BoxLimits()
    return replace(
        usual,
        memory=usual.memory if memory is None else memory,
        disk=usual.disk if disk is None else disk,
        pids=usual.pids if pids is None else pids,
        output=usual.output if output is None else output,
    )


def _read_text(read: Callable[[str], bytes | None], path: str) -> str | None:
    """A file of the box as text; None where there is none or the box is gone."""
    try:
        content = read(path)
    except (OutsideError, Cancelled):
        return None
    return None if content is None else content.decode("utf-8", errors="replace")


def _result_document(
    backend: str, result: RunResult, files: Mapping[str, str | None]
) -> dict[str, object]:
    return {
        "version": 1,
        "backend": backend,
        "exit_code": result.exit_code,
        "ended": result.ended,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "truncated": result.truncated,
        "seconds": result.seconds,
        "detail": result.detail,
        "files": dict(files),
    }


def _print_result(result: RunResult, files: Mapping[str, str | None]) -> None:
    """For a person's terminal, which foreign output must not steer."""
    click.echo(strip_control_characters(result.stdout), nl=False)
    click.echo(strip_control_characters(result.stderr), nl=False, err=True)
    for path, text in files.items():
        click.echo(f"--- {path}" + (" (no such file)" if text is None else ""))
        click.echo(strip_control_characters(text or ""), nl=False)
    how = (
        f"exit {result.exit_code}" if result.ended == "exit" else f"{result.ended}: {result.detail}"
    )
    click.echo(f"{how}, {result.seconds:.2f} s", err=True)
