"""Reads a setup command: which files of the tree its result depends on. In doubt, all of them.

The answer keys cached environments. Too much only costs time; too little would run a commit in the environment
of another, so every command that is not known here counts as depending on everything.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Needs:
    """Files a setup depends on: all, or those at `paths` and those that a pattern matches in full."""

    everything: bool = False
    paths: frozenset[str] = frozenset()
    patterns: frozenset[re.Pattern[str]] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.everything or other.everything,
            self.paths | other.paths,
            self.patterns | other.patterns,
        )


NOTHING = Needs()
EVERYTHING = Needs(everything=True)


def needs(setup: str, paths: Collection[str], read: Read | None = None) -> Needs:
    """What a shell command depends on, in a tree that holds `paths`."""
    found = NOTHING
    for argv in _simple_commands(setup):
        if argv is None:
            return EVERYTHING
        found |= _of_command(argv, paths, read)
        if found.everything:
            return EVERYTHING
    return found


def named_packages(setup: str) -> tuple[str, ...]:
    """The Python packages that a setup command asks for by name."""
    found: list[str] = []
    for argv in _simple_commands(setup):
        name, arguments = _tool(_without_prefix(argv or ()))
        if name == "pip" and "install" in arguments:
            for word in arguments[arguments.index("install") + 1 :]:
                match = _NAME.fullmatch(word)
                if match and _of_target(word) == NOTHING:
                    found.append(re.split(r"[\[\s(<>=!~;]", word, maxsplit=1)[0])
    return tuple(found)


# -- shell --------------------------------------------------------------------------------------------------------

_SEPARATORS = frozenset({"&&", "||", ";", "|", "&", ";;", "(", ")", "{", "}", "\n"})
_THROWN_AWAY = re.compile(r"(?:[12&]?>>?\s*/dev/null|2>&1)")
_QUOTED = re.compile(r"'[^']*'|\"[^\"`$]*\"")
# What makes a line mean something else than its words: expansions, redirections, globs, compound commands.
_OPAQUE = re.compile(r"[`$<>*?]|\[\[")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


def _simple_commands(setup: str) -> list[list[str] | None]:
    """The commands of a shell line, each as its words; None for one that we do not understand."""
    joined = setup.replace("\\\n", " ")
    found: list[list[str] | None] = []
    for line in joined.splitlines():
        found.extend(_of_line(line))
    return found


def _of_line(line: str) -> list[list[str] | None]:
    line = _THROWN_AWAY.sub(" ", line)
    if _OPAQUE.search(_QUOTED.sub("''", line)):
        return [None]
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();|&")
    lexer.whitespace_split = True
    lexer.commenters = ""  # it would cut `git+https://x#egg=y`
    try:
        words = list(lexer)
    except ValueError:  # a quote that is not closed
        return [None]
    commands: list[list[str] | None] = []
    current: list[str] = []
    for word in [*words, ";"]:
        if word in _SEPARATORS or set(word) <= set("();|&"):
            if current:
                commands.append(current)
            current = []
        elif word.startswith("#"):
            break
        else:
            current.append(word)
    if current:
        commands.append(current)
    return commands


# -- commands -----------------------------------------------------------------------------------------------------


def _of_command(words: Sequence[str], paths: Collection[str], read: Read | None) -> Needs:
    name, arguments = _tool(_without_prefix(words))
    match name:
        case "pip":
            found = _of_pip(arguments, read)
        case "python":
            found = _of_python(arguments, read)
        case "npm" | "yarn" | "pnpm":
            found = _of_node(arguments, paths, read)
        case "uv" | "poetry" | "pdm" | "pipenv":
            found = _of_project_tool(arguments, read)
        case "bundle" | "cargo" | "go":
            found = _of_fetcher(name, arguments)
        case "cd":
            found = NOTHING if list(arguments) in ([], ["."], ["/work"]) else EVERYTHING
        case _ if name in _HARMLESS and not any("./" in word for word in arguments):
            found = NOTHING
        case _:
            found = EVERYTHING
    return found


def _tool(argv: Sequence[str]) -> tuple[str, list[str]]:
    """The program's plain name and its arguments: `python3 -m pip x` is pip's x."""
    if not argv:
        return ":", []
    name = posixpath.basename(argv[0]) if argv[0].startswith("/") else argv[0]
    name, arguments = _without_version(name), list(argv[1:])
    if name == "python" and arguments[:1] == ["-m"] and len(arguments) > 1:
        name, arguments = _without_version(arguments[1]), arguments[2:]
    if name == "uv" and arguments[:1] == ["pip"]:
        name, arguments = "pip", arguments[1:]
    return name, arguments


def _without_version(name: str) -> str:
    return re.sub(r"^(pip|python)3(\.\d+)?$", r"\1", name)


def _of_project_tool(arguments: Sequence[str], read: Read | None) -> Needs:
    verb = arguments[0] if arguments else ""
    if verb not in {"install", "sync"} or "--no-editable" in arguments:
        return EVERYTHING
    return editable("", read)


def _of_fetcher(name: str, arguments: Sequence[str]) -> Needs:
    """Tools that download what a manifest names, and build nothing of the tree."""
    verbs, patterns = _FETCHERS[name]
    return Needs(patterns=patterns) if tuple(arguments) in verbs else EVERYTHING


def _without_prefix(words: Sequence[str]) -> list[str]:
    """The command itself, without `A=1`, `sudo`, `env A=1`, `time` before it."""
    argv = list(words)
    while argv and (
        _ASSIGNMENT.fullmatch(argv[0]) or argv[0] in {"sudo", "env", "time", "command", "exec"}
    ):
        del argv[0]
    return argv


def _of_python(arguments: Sequence[str], read: Read | None) -> Needs:
    if list(arguments[:2]) == ["setup.py", "develop"]:
        return editable("", read)
    return NOTHING if list(arguments) in (["-V"], ["--version"]) else EVERYTHING


_HARMLESS = frozenset({
    "true", ":", "echo", "printf", "set", "export", "unset", "umask", "ulimit", "mkdir", "apt-get", "apt", "apk",
    "dnf", "yum", "pipx", "rustup", "ensurepip", "venv", "virtualenv", "date", "pwd", "uname", "which", "type",
    "sleep", "exit",
})  # fmt: skip


def _patterns(*expressions: str) -> frozenset[re.Pattern[str]]:
    return frozenset(re.compile(expression) for expression in expressions)


_ANYWHERE = r"(?:.*/)?"
_FETCHERS: dict[str, tuple[frozenset[tuple[str, ...]], frozenset[re.Pattern[str]]]] = {
    "bundle": (
        frozenset({(), ("install",)}),
        _patterns(
            _ANYWHERE + r"Gemfile(\.lock)?",
            _ANYWHERE + r"[^/]*\.gemspec",
            _ANYWHERE + r"version\.rb",
        ),
    ),
    "cargo": (
        frozenset({("fetch",), ("fetch", "--locked")}),
        _patterns(
            _ANYWHERE + r"Cargo\.(toml|lock)",
            r"\.cargo/.*",
            _ANYWHERE + r"(src/)?(lib|main)\.rs",
        ),
    ),
    "go": (
        frozenset({("mod", "download")}),
        _patterns(_ANYWHERE + r"go\.(mod|sum|work|work\.sum)"),
    ),
}


# -- pip ----------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[^\]/]*\])?\s*([(<>=!~;].*)?", re.DOTALL)
_URL = re.compile(
    r"(?:[A-Za-z0-9._-]+(?:\[[^\]]*\])?\s*@\s*)?(?:git|hg|svn|bzr)?\+?(?:https?|ssh|git)://.*"
)
_ARCHIVE = re.compile(r".*\.(whl|zip|tar\.gz|tgz|tar\.bz2|tar\.xz)", re.IGNORECASE)
_WITH_VALUE = frozenset({
    "-i", "--index-url", "--extra-index-url", "--default-index", "--index", "--target", "-t", "--prefix", "--root",
    "--platform", "--python-version", "--implementation", "--abi", "--only-binary", "--no-binary", "--progress-bar",
    "--cache-dir", "--log", "--timeout", "--retries", "--trusted-host", "--cert", "--python", "-p",
    "--upgrade-strategy", "--upgrade-package", "-P", "--root-user-action", "--config-settings", "-C",
    "--resolution", "--exclude-newer", "--use-feature", "--use-deprecated", "--report", "--src", "--prerelease",
})  # fmt: skip
_FILES = {"-r": "-r", "--requirement": "-r", "--requirements": "-r", "-c": "-c", "--constraint": "-c",
          "--constraints": "-c", "--build-constraint": "-c", "-b": "-c", "--override": "-c"}  # fmt: skip


def _of_pip(arguments: Sequence[str], read: Read | None) -> Needs:
    rest = [
        word for word in arguments if word not in {"-q", "-v", "--quiet", "--verbose", "--no-input"}
    ]
    if not rest or rest[0] in {
        "--version",
        "-V",
        "list",
        "freeze",
        "check",
        "cache",
        "config",
        "uninstall",
        "help",
    }:
        return NOTHING
    if rest[0] == "sync":
        rest = ["install", *(word for name in rest[1:] for word in ("-r", name))]
    if rest[0] not in {"install", "download", "wheel"}:
        return EVERYTHING
    found = NOTHING
    words = iter(_split_options(rest[1:]))
    for word in words:
        if word in _FILES:
            found |= _of_requirements(next(words, ""), read)
        elif word in {"-e", "--editable"}:
            found |= _of_editable_target(next(words, ""), read)
        elif word == "--group":
            next(words, "")
            found |= Needs(paths=frozenset({"pyproject.toml"}))
        elif word in {"-f", "--find-links"}:
            found |= NOTHING if "://" in next(words, "") else EVERYTHING
        elif word in _WITH_VALUE:
            next(words, "")
        elif not word.startswith("-"):
            found |= _of_target(word)
    return found


def _split_options(words: Sequence[str]) -> list[str]:
    """`--requirement=x` and `-rx` as two words each."""
    found: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("--") and equals:
            found += [name, value]
        elif re.match(r"-[rce][^-]", word):
            found += [word[:2], word[2:]]
        else:
            found.append(word)
    return found


def _of_target(word: str) -> Needs:
    """A positional argument of pip: a name, an address, or a path."""
    if _URL.fullmatch(word):
        return NOTHING
    return NOTHING if _NAME.fullmatch(word) and not _ARCHIVE.fullmatch(word) else EVERYTHING


def _of_editable_target(word: str, read: Read | None) -> Needs:
    if _URL.fullmatch(word):
        return NOTHING
    folder = word.split("[", 1)[0].removeprefix("file:")
    inside = _inside("", folder)
    return EVERYTHING if inside is None else editable(inside, read)


def _of_requirements(path: str, read: Read | None) -> Needs:
    """A requirements or constraints file with all that it includes."""
    if "://" in path:
        return NOTHING
    start = _inside("", path)
    if start is None:
        return EVERYTHING
    if read is None:
        return Needs(paths=frozenset({start}), patterns=_INCLUDABLE)
    seen: set[str] = set()
    found = NOTHING
    queue = [start]
    while queue:
        file = queue.pop()
        if file in seen:
            continue
        seen.add(file)
        for line in _requirement_lines(read(file) or b""):
            included, more = _of_requirement(line, posixpath.dirname(file), read)
            queue += included
            found |= more
    return found | Needs(paths=frozenset(seen))


def _requirement_lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", errors="replace").replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def _of_requirement(line: str, folder: str, read: Read | None) -> tuple[list[str], Needs]:
    """One line of a requirements file: what it includes, and what it needs itself."""
    option = re.fullmatch(
        r"(-r|-c|-e|-f|--requirement|--constraint|--editable|--find-links)[\s=]*(\S.*)", line
    )
    if option is None:
        return [], NOTHING if line.startswith("-") else _of_target(line)
    name, value = option[1], option[2].strip("\"'")
    if name in _FILES:
        inside = _inside(folder, value)
        if "://" in value:
            return [], NOTHING
        return ([inside], NOTHING) if inside is not None else ([], EVERYTHING)
    if name in {"-f", "--find-links"}:
        return [], NOTHING if "://" in value else EVERYTHING
    # pip takes an editable path from where it runs, not from where the file lies
    return [], _of_editable_target(value, read)


def _inside(folder: str, path: str) -> str | None:
    """A path of the tree, "" for its root; None where it leads out or is no path of it."""
    joined = posixpath.normpath(posixpath.join("/work", folder, path))
    if joined == "/work":
        return ""
    return joined.removeprefix("/work/") if joined.startswith("/work/") else None


# Without the files' content, every file that could be included counts.
_INCLUDABLE = _patterns(
    _ANYWHERE + r"[^/]*(require|constraint|depend|reqs?\b)[^/]*",
    _ANYWHERE + r"[^/]*\.(txt|in|pip|lock)",
    r"[^/]*(require|constraint|depend)[^/]*/.*",
    _ANYWHERE + r"(pyproject\.toml|setup\.py|setup\.cfg)",
)


# -- projects installed in place ------------------------------------------------------------------------------------

_MANIFESTS = (
    r"(pyproject\.toml|setup\.py|setup\.cfg|MANIFEST\.in|Pipfile|[^/]*\.lock|[^/]*requirements[^/]*\.(txt|in)"
    r"|(requirements|reqs|deps)/[^/]*|\.python-version|(?:[^/]+/){0,3}(_|__)?(version|about|pkg_info)(__)?\.(py|txt)"
    r"|VERSION(\.txt)?)"
)
# Editable or not, these are compiled while installing.
_COMPILED = (
    r"(?:.*/)?[^/]*\.(c|cc|cpp|cxx|h|hh|hpp|pyx|pxd|pxi|rs|go|f|f90|for|s|cu|m|mm|i|swg|proto|toml|build|cmake)"
    r"|(?:.*/)?(CMakeLists\.txt|meson\.build|Makefile)"
)
_BUILDS_FROM_PYTHON = re.compile(
    r"mypyc|cythonize|cffi_modules|ext_modules|build_py|cmdclass|build_ext"
)
_VERSION_FROM_PACKAGE = re.compile(
    r"__init__|__version__|attr\s*[:=]|flit|\[tool\.hatch\.version\]"
)
_PACKAGE_ROOT = r"(src/)?[^/]+/__init__\.py"


def editable(folder: str, read: Read | None) -> Needs:
    """What installing the project in `folder` in place depends on: its manifests, and what gets compiled."""
    prefix = re.escape(folder + "/") if folder else ""
    patterns = [re.compile(prefix + _MANIFESTS), re.compile(prefix + _COMPILED)]
    text = _manifest_text(folder, read)
    if text is not None and _BUILDS_FROM_PYTHON.search(text):
        return EVERYTHING
    if text is None or _VERSION_FROM_PACKAGE.search(text):
        patterns.append(re.compile(prefix + _PACKAGE_ROOT))
    return Needs(patterns=frozenset(patterns))


def _manifest_text(folder: str, read: Read | None) -> str | None:
    if read is None:
        return None
    contents = [
        read(posixpath.join(folder, name)) for name in ("pyproject.toml", "setup.cfg", "setup.py")
    ]
    return "\n".join((content or b"").decode("utf-8", errors="replace") for content in contents)


# -- node -----------------------------------------------------------------------------------------------------------

_NODE = _patterns(
    _ANYWHERE
    + r"(package\.json|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?)",
    _ANYWHERE + r"(pnpm-workspace\.yaml|\.npmrc|\.yarnrc(\.yml)?|\.pnpmfile\.c?js|\.nvmrc)",
    r"\.yarn/.*",
)
_NODE_SCRIPTS = re.compile(r'"(?:pre|post)?(?:install|prepare)"\s*:|"file:')


def _of_node(arguments: Sequence[str], paths: Collection[str], read: Read | None) -> Needs:
    verb = next((word for word in arguments if not word.startswith("-")), "install")
    if verb not in {"install", "i", "ci", "add"}:
        return NOTHING if verb in {"config", "cache", "set"} else EVERYTHING
    if read is not None:
        for path in paths:
            if posixpath.basename(path) == "package.json":
                text = (read(path) or b"").decode("utf-8", errors="replace")
                if _NODE_SCRIPTS.search(text):
                    return EVERYTHING
    return Needs(patterns=_NODE)
