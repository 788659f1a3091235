"""What a setup command asks to be installed: names, addresses, and the files of the tree that ask for more."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from regreen.codebase.declared_runners import RUNNERS
from regreen.codebase.packages import Ecosystem
from regreen.codebase.requirement_file import included, lines_of, text_of
from regreen.codebase.setup_needs import Read, inside
from regreen.codebase.setup_pip import FILES, WITH_VALUE, split_options
from regreen.codebase.setup_shell import rough_commands, simple_commands, tool_of, without_prefix

ADDRESS = re.compile(r"(?:[a-z]+\+)?[a-z]{2,5}://[^\s'\"`|;)>\]]+")
_DEEPEST = 4
_KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "("})
_PYTHON_TOOLS = frozenset(
    {"pip", "uv", "pipx", "uvx", "poetry", "pdm", "pipenv", "hatch", "easy_install"}
)
_NODE_TOOLS = frozenset({"npm", "yarn", "pnpm", "bun"})
_NODE_RUNNERS = frozenset({"npx", "pnpx", "bunx"})
_ADDING = frozenset({"install", "i", "add", "download", "wheel", "inject", "dlx", "exec", "x", "upgrade", "update"})  # fmt: skip
_VALUE_OPTIONS = WITH_VALUE | frozenset({
    "--prefix", "--workspace", "-w", "-C", "--dir", "--cwd", "--registry", "--group", "-G", "--extra", "-E",
    "--call", "--lockfile-version", "--source", "--directory", "--project", "--otp", "--tag", "--omit", "--include", "--package-name",
    "--only", "--without",
})  # fmt: skip
_NAMING_OPTIONS = frozenset(
    {"--with", "--with-editable", "--from", "--spec", "--package", "--with-requirements"}
)


@dataclass(frozen=True, slots=True)
class Word:
    """A package asked for by name in a command. `where` is "the setup", or the script that holds the command."""

    ecosystem: Ecosystem
    name: str
    where: str


@dataclass(slots=True)
class Wishes:
    """Everything that a setup asks for by itself: the files are still to be read.

    `variables` are those that it sets; `folder` is where it stands while it is read.
    """

    words: list[Word] = field(default_factory=list)
    addresses: list[tuple[str, str]] = field(default_factory=list)
    requirement_files: set[str] = field(default_factory=set)
    scripts: set[str] = field(default_factory=set)
    variables: list[tuple[str, str]] = field(default_factory=list)
    runners: set[str] = field(default_factory=set)
    clones_submodules: bool = False
    folder: str = ""

    def places(self, path: str) -> set[str]:
        """The files of the tree that a path may mean, from the root and from the folder of the command."""
        found = (inside(folder, path) for folder in {"", self.folder})
        return {place for place in found if place}


def wishes(setup: str, read: Read) -> Wishes:
    """What a shell command asks for, with the scripts of the tree that it runs and the files that these include."""
    found = Wishes()
    _of_script(setup, "the setup command", read, found, _DEEPEST)
    return found


def follow(paths: set[str], read: Read) -> set[str]:
    """Requirement files with all that they include."""
    seen: set[str] = set()
    queue = sorted(paths)
    while queue:
        path = queue.pop()
        if path not in seen and (content := read(path)) is not None:
            seen.add(path)
            queue += [more for line in lines_of(text_of(content)) for more in included(line, path)]
    return seen


def _of_script(text: str, where: str, read: Read, found: Wishes, depth: int) -> None:
    for words in _commands(text):
        argv = [
            piece
            for word in words
            for piece in (
                [word] if _NAMES_A_HOST.search(word) else _filled_in(word, found.variables)
            )
        ] or ["true"]
        for word in argv:
            if assigned := _ASSIGNED.fullmatch(word):
                found.variables.append((assigned[1], assigned[2]))
            elif argv[0] not in {"echo", "printf"} or _SETS_AN_INDEX.search(word):
                found.addresses += [(address, where) for address in ADDRESS.findall(word)]
        _of_command(argv, where, read, found, depth)


def _filled_in(word: str, variables: Sequence[tuple[str, str]]) -> list[str]:
    """A word with the variables that were set before in it; an unknown one stays."""
    if "$" not in word:
        return [word]
    known = dict(variables)
    filled = _VARIABLE.sub(lambda one: known.get(one[1] or one[2], one[0]), word)[:_LONGEST]
    return [word] if filled == word else filled.split()


# Such an address is compared with the base's as it is written: what is filled in comes behind the host.
_NAMES_A_HOST = re.compile(r"://[\w.-]+(?:/|$)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_LONGEST = 10_000
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
# What an installer's settings are called, printed into its file or into GITHUB_ENV.
_SETS_AN_INDEX = re.compile(
    r"(?i)(?:index|registry|find[-_]?links|proxy|source)[\w\" '-]{0,20}[=:]"
)


def _commands(text: str) -> Iterator[list[str]]:
    """Every command of the text; those that mean more than their words say, as well as we can."""
    for line in text.replace("\\\n", " ").splitlines():
        for argv in simple_commands(line):
            yield from rough_commands(line) if argv is None else (argv,)


def _of_command(argv: Sequence[str], where: str, read: Read, found: Wishes, depth: int) -> None:
    argv = without_prefix(list(itertools.dropwhile(_KEYWORDS.__contains__, argv)))
    if not argv:
        return
    name, arguments = tool_of(
        [posixpath.basename(argv[0]) if "/bin/" in argv[0] else argv[0], *argv[1:]]
    )
    found.runners |= RUNNERS & {
        posixpath.basename(re.split(r"[<>=!~@\[]", word)[0]) for word in argv
    }
    found.clones_submodules = found.clones_submodules or (
        "submodule" in argv or "--recurse-submodules" in argv or ".gitmodules" in argv
    )
    if name in {"cd", "pushd"}:
        found.folder = inside(found.folder, arguments[0]) or "" if arguments else ""
    elif name in _PYTHON_TOOLS:
        _of_python_tool(name, arguments, where, found)
    elif name in _NODE_TOOLS or name in _NODE_RUNNERS:
        found.words += [Word("npm", one, where) for one in _node_names(name, arguments)]
    elif name in {"bash", "sh", "dash", "zsh"} and "-c" in arguments[:-1]:
        if depth:
            script = arguments[arguments.index("-c") + 1]
            _of_script(script, where, read, found, depth - 1)
    else:
        _of_file(name, arguments, read, found, depth)


def _of_file(name: str, arguments: Sequence[str], read: Read, found: Wishes, depth: int) -> None:
    """`sh x.sh`, `. x.sh`, `./x.sh`, `make`: the commands in that file of the tree."""
    if name == "make":
        paths = ["GNUmakefile", "makefile", "Makefile"]
    elif name in {"bash", "sh", "dash", "zsh", "source", "."}:
        paths = [next((word for word in arguments if not word.startswith("-")), "")]
    else:
        paths = [name] if "/" in name else []
    for path in (place for named in paths if named for place in sorted(found.places(named))):
        if depth and path not in found.scripts and (content := read(path)) is not None:
            found.scripts.add(path)
            text = text_of(content)
            if name == "make":
                text = "\n".join(re.findall(r"(?m)^\t[@+-]*(.*(?:\\\n.*)*)$", text))
            elif content.startswith(b"#!") and not re.match(r"#!.*\b(?:ba|da|z)?sh\b", text):
                continue
            _of_script(text, path, read, found, depth - 1)


# -- Python ---------------------------------------------------------------------------------------------------------


def _of_python_tool(tool: str, arguments: Sequence[str], where: str, found: Wishes) -> None:
    words = iter(split_options(arguments))
    verbs: list[str] = []
    taking, of_another = tool in {"uvx", "easy_install"}, False
    for word in words:
        if word in FILES or word == "--with-requirements":
            value = next(words, "")
            if "://" not in value:
                found.requirement_files |= found.places(value)
        elif word in _NAMING_OPTIONS:
            named = next(words, "")
            of_another = of_another or word in {"--from", "--spec"}
            if tool in {"uv", "uvx", "pipx"}:  # Poetry's --with names a group
                found.words += [Word("pypi", name, where) for name in _python_names(named)]
        elif word in {"-e", "--editable"} or word in _VALUE_OPTIONS:
            next(words, "")
        elif word.startswith("-"):
            continue
        elif taking and of_another:
            return  # a program of the package named before
        elif taking:
            found.words += [Word("pypi", name, where) for name in _python_names(word)]
            if tool == "uvx" or (verbs and verbs[-1] == "run"):
                return  # the rest is the program's own
        elif tool == "pip" and word == "sync":
            found.requirement_files |= {place for name in words for place in found.places(name)}
        else:
            verbs.append(word)
            taking = _names_follow(tool, verbs)


def _names_follow(tool: str, verbs: Sequence[str]) -> bool:
    """Whether what comes after these verbs are packages."""
    if verbs[-1] == "run":
        return tool == "pipx" or verbs[-2:-1] == ["tool"]
    return verbs[-1] in _ADDING


_DISTRIBUTION = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]/]*\])?\s*(?:[(<>=!~;@].*)?", re.DOTALL
)
_ARCHIVE = re.compile(r".*\.(?:whl|zip|tar\.gz|tgz|tar\.bz2|tar\.xz)", re.IGNORECASE)


def _python_names(word: str) -> Iterator[str]:
    """The names in an argument; paths, archives and addresses have none."""
    for one in [word] if re.search(r"[\[<>=!~]", word) else word.split(","):
        plain = one.strip()
        if (
            not plain
            or "://" in plain
            or plain.startswith(".")
            or "/" in plain
            or _ARCHIVE.fullmatch(plain)
        ):
            continue
        match = _DISTRIBUTION.fullmatch(plain)
        yield match[1] if match else plain


# -- node -----------------------------------------------------------------------------------------------------------


def _node_names(tool: str, arguments: Sequence[str]) -> Iterator[str]:
    words = iter(split_options(arguments))
    taking = tool in _NODE_RUNNERS
    for word in words:
        if word in {"-p", "--package"}:
            yield from _npm_name(next(words, ""))
            if taking:
                return
        elif word in _VALUE_OPTIONS:
            next(words, "")
        elif word == "--" or word.startswith("-"):
            continue
        elif taking:
            yield from _npm_name(word)
            if tool in _NODE_RUNNERS:
                return
        elif word in _ADDING:
            taking = True
            if word in {"dlx", "exec", "x"}:
                tool = "npx"
        elif word != "global":
            return


def _npm_name(word: str) -> Iterator[str]:
    """`name@1`, `@scope/name@1`, `alias@npm:name@1`; `owner/repository` and addresses are kept as they are."""
    if not word or word.startswith((".", "/")) or "://" in word or _ARCHIVE.fullmatch(word):
        return
    plain = word.partition("@npm:")[2] or word.removeprefix("npm:")
    scope, at, rest = plain.partition("/") if plain.startswith("@") else ("", "", plain)
    yield scope + at + rest.partition("@")[0]
