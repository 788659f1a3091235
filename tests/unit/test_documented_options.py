"""How a call that checks becomes one that writes, as the tool's own help says."""

from __future__ import annotations

import pytest

from regreen.shell.documented_options import (
    SECTION,
    asks_to_check,
    derive_remedies,
    make_help_script,
)

ARGPARSE = """usage: tidy [-h] [-c] [-i] [--indent N] [FILE ...]

options:
  -h, --help            show this help message and exit
  -c, --check           don't modify files, just exit with 1 if changes
                        would be made
  -i, --in-place        edit the files
  --indent N            how far
"""
CLICK = """Usage: lines [OPTIONS] COMMAND [ARGS]...

Commands:
  lint    Check files.
  fix     Rewrite them.
"""
CLICK_FIX = """Usage: lines fix [OPTIONS] [PATHS]...

Options:
  -i, --interactive / -a, --automatic
                        how to apply fixes
  --width N             how wide
"""
GO = """usage: gotidy [flags] [path ...]
  -d    display diffs instead of rewriting files
  -e    report all errors
  -w    write result to (source) file instead of stdout
"""
CLAP = """Options:
      --check            Only check if formatted and return error otherwise
      --config <FILE>    The configuration file
"""
RECORDS = """options:
  --update-baseline     record what is there
  --fail-on-changed     exit with 1
"""
ASKS = """Options:
  -i, --interactive   interactively merge changed test output
  -y, --yes           answer yes to all questions
"""
LOCAL = """Optional arguments:
  -l, --local           Runs as part of a local build. For example, the report
                        is automatically copied in a local build.
  -v, --verbose         say more
"""
ONLY_REPORTS = """options:
  --quiet, -q           say nothing
  --fix-version VERSION the release that is mended
"""
PROMPTS = """Available options:
  --yes                 Reply 'yes' to all automated prompts.
  --validate            Check if files are laid out without changing them.
"""
VERBS = """Commands:
  check             Check files.
  format            Format standard input.
  format-in-place   Format files.
"""
CAMEL = """Options:
  -l, --listDifferent   List any files that are different than those
                        that would be made.
  -p, --pattern         which files
"""
EXIT_CODES = """Options:
  -l, --list            do not change the lock, just output the diagnosis
  -f, --fail            if there are duplicates, terminate with exit status 1
"""
LEVELS = """Options:
      --fix[=<MODE>]
          Fix findings automatically, when available

          Possible values:
          - safe:        Apply only safe fixes (the default)
          - all:         Apply all fixes

      --color <WHEN>
          [possible values: auto, all, fix-never]
"""
STRATEGIES = """snapshot options:
  --store={auto,update,update-none,review}
                        what becomes of snapshots
  -q, --quiet           say less
"""
SNAPSHOTS = """Options:
  -S --snapshot         Set to generate snapshot files for 'matchSnapshot()'
  --no-snapshot         switch off the --snapshot flag
"""


@pytest.mark.parametrize(
    ("call", "helps", "lines"),
    [
        ("tidy --check --indent 2 a.x", [ARGPARSE], ["tidy --in-place --indent 2 a.x", "tidy --indent 2 a.x"]),
        ("tidy -c a.x", [ARGPARSE], ["tidy --in-place a.x", "tidy a.x"]),
        ("tidy a.x", [ARGPARSE], ["tidy --in-place a.x"]),
        ("cd web\nlines lint --width 3 src", [CLICK, "", CLICK_FIX], ["lines fix --automatic --width 3 src"]),
        ("gotidy -d cmd", [GO], ["gotidy -w cmd", "gotidy cmd"]),
        ("clapped --check --config a.toml src", [CLAP], ["clapped --config a.toml src"]),
        ("python -m mod.base --fail-on-changed", [RECORDS], ["python -m mod.base", "python -m mod.base --update-baseline"]),
        ("asks a.t", [ASKS], ["asks --interactive --yes a.t"]),
        ("reports run", [LOCAL, LOCAL], ["reports run --local"]),
        ("prompter --validate src/", [PROMPTS], ["prompter --yes src/"]),
        ("verbs check a.x", [VERBS, ""], ["verbs format-in-place a.x", "verbs format a.x"]),
        ("camel --listDifferent -p css", [CAMEL], ["camel -p css"]),
        ("twice --list --fail", [EXIT_CODES], ["twice"]),
        ("taps test", [SNAPSHOTS], ["taps test --snapshot"]),
        ("reporter -q a.x", [ONLY_REPORTS], []),
        ("auditor --color all a.x", [LEVELS], ["auditor --fix --color all a.x", "auditor --fix=all --color all a.x"]),
        ("auditor --fix=safe a.x", [LEVELS], ["auditor --fix=all a.x"]),
        ("keeper -q --store update-none a.x", [STRATEGIES], ["keeper -q --store=update a.x"]),
        ("keeper --store=auto", [STRATEGIES], ["keeper --store=update"]),
        ("keeper --store=update", [STRATEGIES], []),
        ("auditor --fix safe a.x", [LEVELS], ["auditor --fix=all a.x"]),
        ("auditor --fix=all a.x", [LEVELS], []),
        ("keeper -q", [STRATEGIES], ["keeper --store=update -q"]),
    ],
)  # fmt: skip
def test_the_help_names_the_way_to_write(call: str, helps: list[str], lines: list[str]) -> None:
    found = list(derive_remedies(call, "".join(f"{SECTION}\n{text}" for text in helps)))
    assert [one.title for one in found] == lines
    assert all(one.script.startswith("cd web\n") == call.startswith("cd web\n") for one in found)
    assert [bool(one.approval) for one in found] == [
        any(
            word in line
            for word in ("update", "--interactive --yes", "--local", "--snapshot", "=all")
        )
        for line in lines
    ]


def test_the_help_of_a_subcommand_and_of_those_that_may_write_is_asked_for() -> None:
    script = make_help_script("cd web\nlines lint src")
    assert script.startswith("cd web\n")
    assert [line.split()[2:4] for line in script.splitlines() if "timeout" in line][:3] == [
        ["lines", "--help"],
        ["lines", "lint"],
        ["lines", "fix"],
    ]


@pytest.mark.parametrize(
    ("call", "is_checking"),
    [("cd web\ntidy --check src", True), ("gotidy -d cmd", True), ("tidy --in-place src", False)],
)
def test_a_call_that_only_looks_is_known_by_its_options(call: str, *, is_checking: bool) -> None:
    assert asks_to_check(call) is is_checking
