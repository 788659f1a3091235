"""Finds in a tool's own help how a call that checks becomes one that writes, for tools that no table knows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from regreen.domain.text_limits import strip_terminal_codes
from regreen.shell.fixing_tools import Remedy

_WRITING_NAME = re.compile(
    r"-{1,2}(?:auto-?)?(?:fix(?:-all|-only)?|write(?:-changes)?|in-?place|reformat|format|autocorrect|correct|apply(?:-fixes)?|overwrite|autofix|rewrite|save)"
)
_WRITES = re.compile(
    r"\b(?:fix(?:es)?|write|writes|in[ -]?place|rewrite|overwrite|correct|reformat|apply|save)\b",
    re.IGNORECASE,
)
RECORDING_OPTION = re.compile(
    r"--(?:[a-z]+-)?(?:update|accept|record|regenerate|regen|bless|refresh)(?:-[a-z]+)?"
)
_CHECKING_NAME = re.compile(
    r"--?(?:no-(?:write|fix|modify|changes?|overwrite|in-?place|apply)|set-exit-\w+|\w*-?(?:check|diff|dry-?run|verify|validate|list-different|lint|test))(?:-(?:only|diff|changed|files))?"
    r"|--?(?:fail|exit|error)(?:-(?:on|non|code|with|if)[\w-]*)?|--list-different|--exit-code"
)
_SETS_EXIT_CODE = re.compile(
    r"(?i)\b(?:exits?|terminates?|fails?|returns?|ends?)\b[^.]{0,60}\b(?:non-?zero|(?:status|code) \d)"
)
_ONLY_CHECKS = re.compile(
    r"(?i)\b(?:do(?:es)? not|don't|without|instead of) (?:actually )?(?:writ|modif|chang|fix|rewrit|format)|\bonly (?:check|report|print|list)"
    r"|\bdry[ -]run|\bcheck (?:if|that|whether)|\b(?:show|print|output)s? (?:a |the )?diff"
)
_UPDATES_ITSELF = re.compile(r"(?i)\bautomatically (?:update|written|regenerate|cop(?:y|ie))")
_UNATTENDED = re.compile(
    r"--(?:yes|automatic|assume-yes|no-input|non-?interactive|no-prompt|no-confirm|force-yes)"
)
_WRITING_VERBS = ("fix", "format", "fmt", "write", "apply", "reformat", "autofix", "update")
_SNAPSHOTS_ANEW = re.compile(
    r"(?i)\b(?:re-?)?(?:generates?|writes?|updates?|creates?|records?)\b[^.]{0,40}\bsnapshots?\b"
)
_CHECKING_VERBS = frozenset(
    {"check", "lint", "verify", "validate", "diff", "test", "scan", "ci", "list"}
)
_OPTION = re.compile(
    r"^[ \t]{0,16}(?P<names>--?[a-zA-Z][\w-]*(?:(?:,|\||[ ]/|/|[ ]or)?[ \t]{1,4}--?[a-zA-Z][\w-]*){0,5}|--?[a-zA-Z][\w-]*[,|]--?[a-zA-Z][\w-]*)"
    r"(?P<value>[= ](?:[A-Z<{\[][^\s]*|\w+\b(?=[ \t]{2})))?(?P<text>.*)$"
)
_MERGES = re.compile(r"(?i)\b(?:merge|accept|update|record)")
_CHOICES = re.compile(
    r"(?:^[\[{]|\[possible values: )([\w-]{1,40}(?:(?:, ?|\|)[\w-]{1,40}){1,40})[\]}]"
)
_WRITING_VALUES = ("update", "fix", "write", "accept", "record", "overwrite", "apply")
_APPROVAL = "the tool's option {option} writes what it found: look whether that is wanted"
SECTION = "==regreen-help=="


@dataclass(frozen=True, slots=True)
class HelpOption:
    """An option as the help lists it."""

    names: tuple[str, ...]
    takes_value: bool
    text: str
    choices: tuple[str, ...] = ()


def make_help_script(call: str) -> str:
    """A script that prints the help of a call's tool, of its subcommand, and of those that may write."""
    place, words = _split_call(call)
    tool, sub = _split_subcommand(words)
    asked = [[*tool, "--help"]]
    if sub:
        asked += [[*tool, verb, "--help"] for verb in (sub, *_WRITING_VERBS[:5])]
    lines = [
        f"echo {SECTION}\ntimeout 40 {shlex.join(one)} 2>&1 </dev/null | head -c 60000"
        for one in asked
    ]
    return "\n".join([*place, *lines])


def derive_remedies(call: str, printed: str) -> Iterator[Remedy]:
    """The calls that should write what this call complains about, the likeliest first.

    Args:
        call: a script of one call, as it was recorded.
        printed: what `make_help_script` of the call printed.
    """
    place, words = _split_call(call)
    tool, sub = _split_subcommand(words)
    helps = printed.split(f"{SECTION}\n")[1:]
    if not helps or not words:
        return
    options = [option for text in helps[:2] for option in read_options(text)]
    kept = _drop_checking(words[len(tool) :], options)
    is_checking = len(kept) < len(words) - len(tool)
    at = len(tool) + (1 if sub else 0)
    seen: set[str] = set()

    def make(words: Sequence[str], option: str, *, records: bool = False) -> Iterator[Remedy]:
        line = shlex.join(words)
        if line not in seen:
            seen.add(line)
            name = tool[-1].rsplit("/", 1)[-1]
            cause = f"the files are not as {name} wants them; its help names {option}"
            approval = _APPROVAL.format(option=option) if records else None
            yield Remedy(
                name, "\n".join([*place, line]), cause, approval=approval, title=line, unknown=True
            )

    given = {word.partition("=")[0] for word in kept}
    for option in _find_writing(options):
        if option in given:
            continue
        yield from make([*tool, *kept[: at - len(tool)], option, *kept[at - len(tool) :]], option)
    verbs = _find_writing_verbs(sub, helps)
    for verb, text in verbs:
        own = read_options(text)
        rest = kept[at - len(tool) :]
        known = {name for option in own for name in option.names}
        rest = [
            word
            for word in rest
            if not own or not word.startswith("-") or word.partition("=")[0] in known
        ]
        silent = [name for option in own for name in option.names if _UNATTENDED.fullmatch(name)]
        yield from make([*tool, verb, *silent[:1], *rest], verb)
    silent = [name for option in options for name in option.names if _UNATTENDED.fullmatch(name)]
    if is_checking:
        without = [*tool, *kept[: at - len(tool)], *silent[:1], *kept[at - len(tool) :]]
        yield from make(without, "no option for it, so without the one that only checks")
    for chosen, line in _choose_values(options, kept[at - len(tool) :]):
        yield from make([*tool, *kept[: at - len(tool)], *line], chosen, records=True)
    merging = [
        name
        for option in options
        for name in option.names
        if name == "--interactive" and _MERGES.search(option.text)
    ]
    unasked = [option for option in options if not given.intersection(option.names)]
    recording = [[one] for one in find_recording_options(unasked)]
    recording += [[*merging[:1], *silent[:1]]] if merging and silent else []
    for more in recording:
        line = [*tool, *kept[: at - len(tool)], *more, *kept[at - len(tool) :]]
        yield from make(line, " ".join(more), records=True)


def asks_to_check(call: str) -> bool:
    """Whether a call has an option that seems to keep its tool from writing."""
    _, words = _split_call(call)
    return any(
        _CHECKING_NAME.fullmatch(_split_camel_case(word)) or word in {"-d", "-l", "-n"}
        for word in words[1:]
    )


def _split_call(call: str) -> tuple[list[str], list[str]]:
    """The lines that go to a folder and set a path, and the words of the call."""
    *place, line = call.splitlines() or [""]
    return place, shlex.split(line)


def _split_subcommand(words: Sequence[str]) -> tuple[list[str], str]:
    tool = list(words[:1])
    if len(words) > 2 and words[1] == "-m":
        tool = list(words[:3])
    sub = next(iter(words[len(tool) :]), "")
    return tool, sub if re.fullmatch(r"[a-z][a-z-]{1,20}", sub) else ""


def read_options(text: str) -> list[HelpOption]:
    """The options that a help text lists, with what it says of each."""
    found: list[HelpOption] = []
    values: list[str] = []
    for raw in strip_terminal_codes(text).splitlines()[:2000]:
        line = raw[:400].strip("│ ").rstrip()
        match = _OPTION.match(line)
        if match:
            names = tuple(re.findall(r"--?[a-zA-Z][\w-]*", match["names"]))
            found.append(HelpOption(names, bool(match["value"]), match["text"].strip()))
            values.append(match["value"] or "")
        elif found and line.strip() and raw.startswith("      "):
            last = found[-1]
            found[-1] = HelpOption(
                last.names, last.takes_value, f"{last.text} {line.strip()}"[:600]
            )
    return [
        replace(option, choices=_read_choices(f"{value.strip('= ')} {option.text}"))
        for option, value in zip(found, values, strict=True)
    ]


def _read_choices(text: str) -> tuple[str, ...]:
    """The values that an option may have, where its help lists them."""
    if match := _CHOICES.search(text):
        return tuple(re.findall(r"[\w-]+", match[1]))
    return tuple(re.findall(r" - ([\w-]{1,40}):", text.partition("Possible values:")[2]))


def _choose_values(
    options: Sequence[HelpOption], words: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """An option with a value that writes, and the words with it: in place of the given value, or of none."""
    for option in options:
        fixes = [x for x in option.names if "fix" in x and _WRITING_NAME.fullmatch(x)]
        values = [*_WRITING_VALUES, *(["all"] if fixes else [])]
        given = next((at for at, x in enumerate(words) if x.partition("=")[0] in option.names), -1)
        word = words[given] if given >= 0 else "".join(fixes[:1])
        name, equals, old = word.partition("=")
        rest = [*words[given + 1 :]]
        if not equals and given >= 0 and rest and rest[0] in option.choices:
            old = rest.pop(0)
        for value in values:
            if name and value in option.choices and value != old:
                chosen = [f"{name}={value}"] if name.startswith("--") else [name, value]
                yield " ".join(chosen), [*words[: max(given, 0)], *chosen, *rest]


def _find_writing(options: Sequence[HelpOption]) -> Iterator[str]:
    """Options without a value that fix or write, by their name; a short one by what the help says of it."""
    for option in options:
        name = option.names[-1]
        long = [one for one in option.names if _WRITING_NAME.fullmatch(one)]
        is_short = (
            len(name) == 2
            and name in {"-w", "-i", "-f", "-r"}
            and _WRITES.search(option.text[:120])
        )
        if option.takes_value or _ONLY_CHECKS.search(option.text[:120]):
            continue
        if long or (is_short and len(option.names) == 1):
            yield (long or [name])[0]


def find_recording_options(options: Sequence[HelpOption]) -> Iterator[str]:
    """Options that write expected results anew, with the value that does where they have one."""
    for option in options:
        named = [one for one in option.names if RECORDING_OPTION.fullmatch(one)]
        is_snapshot = "snapshot" in option.names[-1] and _SNAPSHOTS_ANEW.search(option.text)
        writes = is_snapshot or _UPDATES_ITSELF.search(option.text)
        long = named or [option.names[-1]] * bool(writes)
        if long and not option.takes_value:
            yield long[0]
        elif "snapshot" in option.text and "update" in option.choices:
            yield from (f"{name}=update" for name in option.names if name.startswith("--"))


def _find_writing_verbs(sub: str, helps: Sequence[str]) -> list[tuple[str, str]]:
    """Subcommands beside the one that checks, with their own help."""
    if sub not in _CHECKING_VERBS:
        return []
    found = re.findall(
        rf"(?m)(?:^[ \t│]{{0,8}}|[{{,])((?:{'|'.join(_WRITING_VERBS[:5])})(?:-[a-z]{{1,20}}){{0,3}})(?=[ \t,}}:]|$)",
        helps[0],
    )
    texts = dict(zip(_WRITING_VERBS[:5], helps[2:], strict=False))
    order = {verb: at for at, verb in enumerate(_WRITING_VERBS)}
    known = sorted(
        dict.fromkeys(found), key=lambda verb: ("place" not in verb, order[verb.partition("-")[0]])
    )
    return [(verb, texts.get(verb, "")) for verb in known]


def _drop_checking(words: Sequence[str], options: Sequence[HelpOption]) -> list[str]:
    """The words without the options that keep the tool from writing."""
    by_name = {name: option for option in options for name in option.names}
    kept: list[str] = []
    for word in words:
        option = by_name.get(word.partition("=")[0])
        long = _split_camel_case(max(option.names, key=len) if option else word)
        about = option.text[:160] if option else ""
        only_checks = bool(
            _ONLY_CHECKS.search(about[:120])
            or (_SETS_EXIT_CODE.search(about) and not _WRITING_NAME.fullmatch(long))
        )
        takes_value = option is not None and option.takes_value
        if (
            word.startswith("-")
            and not takes_value
            and (only_checks or _CHECKING_NAME.fullmatch(long))
        ):
            continue
        kept.append(word)
    return kept


def _split_camel_case(name: str) -> str:
    """`--listDifferent` as `--list-different`."""
    return re.sub(r"(?<=[a-z])[A-Z]", lambda match: f"-{match[0].lower()}", name)
