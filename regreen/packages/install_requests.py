"""What a setup command installs: names, addresses, and files of the tree with further requests."""

from __future__ import annotations

import itertools
import json
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from regreen.packages.dependency import get_table
from regreen.packages.popular_names import Ecosystem
from regreen.packages.requirement_file import (
    FILE_OPTIONS,
    decode_text,
    included_files,
    read_requirement_lines,
    split_options,
)
from regreen.packages.runner_installs import RUNNERS
from regreen.packages.setup_inputs import ReadFile, resolve_path_in_tree
from regreen.shell.parse import ASSIGNMENT, ShellCommand, Word, find_commands, parse_script
from regreen.shell.tools import (
    load_tools,
    normalise_program,
    resolve_module_program,
    split_wrappers,
)

ADDRESS_PATTERN = re.compile(r"(?:[a-z]{1,20}\+)?[a-z]{2,5}://[^\s'\"`|;)>\]]+")
_MAX_SCRIPT_DEPTH = 4
_MAX_ARGUMENTS = 2_000
_PYTHON_TOOLS = frozenset(
    {"pip", "uv", "pipx", "uvx", "poetry", "pdm", "pipenv", "hatch", "easy_install"}
)
_NODE_TOOLS = frozenset({"npm", "yarn", "pnpm", "bun"})
_NODE_RUNNERS = frozenset({"npx", "pnpx", "bunx"})
_INSTALLERS = _PYTHON_TOOLS | _NODE_TOOLS | _NODE_RUNNERS
_JVM_BUILDERS = frozenset({"mvn", "mvnw", "mvnd", "gradle", "gradlew"})
_LIFECYCLE_SCRIPTS = frozenset(
    {
        "preinstall",
        "install",
        "postinstall",
        "preprepare",
        "prepare",
        "postprepare",
        "prepublish",
    }
)
_INSTALL_VERBS = frozenset(
    {"install", "i", "add", "download", "wheel", "inject", "dlx", "exec", "x", "upgrade", "update"}
)
_NAMING_OPTIONS = frozenset(
    {"--with", "--with-editable", "--from", "--spec", "--package", "--with-requirements"}
)


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """A package that a command installs by name. `where` is "the setup", or the script with the command."""

    ecosystem: Ecosystem
    name: str
    where: str


@dataclass(slots=True)
class InstallRequests:
    """All requests in a setup itself, before its files are read.

    `variables` are those that it sets; `unread` are commands that may install and cannot be judged, each with its
    place; `build_arguments` are the files that calls of Maven and Gradle may name, None without such a call; `folder` is
    where the setup stands while it is read.
    """

    words: list[InstallRequest] = field(default_factory=list)
    addresses: list[tuple[str, str]] = field(default_factory=list)
    requirement_files: set[str] = field(default_factory=set)
    scripts: set[str] = field(default_factory=set)
    variables: list[tuple[str, str]] = field(default_factory=list)
    runners: set[str] = field(default_factory=set)
    unread: list[tuple[str, str]] = field(default_factory=list)
    clones_submodules: bool = False
    build_arguments: set[str] | None = None
    folder: str = ""

    def find_possible_paths(self, path: str) -> set[str]:
        """The files of the tree that a path may mean, relative to the root or to the folder of the command."""
        places = (resolve_path_in_tree(folder, path) for folder in {"", self.folder})
        return {place for place in places if place}


def find_install_requests(
    setup: str, read: ReadFile, paths: Collection[str] = ()
) -> InstallRequests:
    """The requests of a shell command, of the scripts of the tree that it runs, and of files that these include.

    Args:
        setup: the command.
        read: reads a file of the tree.
        paths: all files of the tree; the scripts of its packages run where npm or the like is called.
    """
    requests = InstallRequests()
    packages = tuple(path for path in paths if posixpath.basename(path) == "package.json")
    reader = _SetupReader(read, requests, packages)
    reader.read_script(setup, "the setup command", _MAX_SCRIPT_DEPTH)
    reader.read_written_files()
    return requests


def follow_includes(paths: set[str], read: ReadFile) -> set[str]:
    """Requirement files together with all files that they include."""
    known: set[str] = set()
    queue = sorted(paths)
    while queue:
        path = queue.pop()
        if path not in known and (content := read(path)) is not None:
            known.add(path)
            queue += [
                more
                for line in read_requirement_lines(decode_text(content))
                for more in included_files(line, path)
            ]
    return known


@dataclass(slots=True)
class _WrittenFile:
    """A file that the setup writes before it installs from it: its text, where that is known."""

    command: str
    where: str
    text: str | None


@dataclass(slots=True)
class _SetupReader:
    """Reads the commands of a setup in their order, and what they call in the tree."""

    read: ReadFile
    found: InstallRequests
    packages: tuple[str, ...] = ()
    package_scripts: dict[tuple[str, str], str] | None = None
    values: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    written: dict[str, list[_WrittenFile]] = field(default_factory=dict)

    def read_script(self, text: str, where: str, depth: int) -> None:
        """Read the commands of a script; lines that mention an installer and cannot be parsed are noted."""
        if depth < 0:
            self.found.unread.append((_shorten(text), where))
            return
        script = parse_script(text)
        commands = [*script.commands]
        if not script.is_complete:
            for line in text.replace("\\\n", " ").splitlines():
                part = parse_script(line)
                commands += part.commands
                if not part.is_complete and _MENTIONS_INSTALLER.search(line):
                    self.found.unread.append((_shorten(line), where))
        for command in commands:
            self._read_command(command, where, depth)

    def _read_command(self, command: ShellCommand, where: str, depth: int) -> None:
        argv = [piece for word in command.words for piece in self._expand_word(word)]
        first = next((word for word in argv if not ASSIGNMENT.fullmatch(word)), "")
        for word in argv:
            if assigned := ASSIGNMENT.fullmatch(word):
                self.found.variables.append((assigned[1], assigned[2]))
                self.values[assigned[1]] = assigned[2]
            elif first not in {"echo", "printf"} or _SETS_AN_INDEX.search(word):
                self._note_addresses(word, where)
        for redirect in command.redirects:
            if redirect.operator.startswith("<"):
                self._note_addresses(redirect.word.text, where)
        self._note_written_files(command, argv, where)
        self._read_call(argv, command, where, depth)

    def _note_addresses(self, text: str, where: str) -> None:
        self.found.addresses += [(address, where) for address in ADDRESS_PATTERN.findall(text)]

    def _expand_word(self, word: Word) -> list[str]:
        """A word with earlier variables filled in; an unknown variable stays."""
        if word.is_known or "$" not in word.text or _NAMES_A_HOST.search(word.text):
            return [word.text]
        filled = _VARIABLE.sub(lambda use: self.values.get(use[1] or use[2], use[0]), word.text)
        filled = filled[:_MAX_WORD_CHARACTERS]
        split = filled != word.text and not ASSIGNMENT.fullmatch(filled)
        return filled.split() if split and not word.source.startswith('"') else [filled]

    def _read_call(
        self, argv: Sequence[str], command: ShellCommand, where: str, depth: int
    ) -> None:
        wrappers, call = split_wrappers(argv)
        if not call:
            return
        name, arguments = resolve_module_program([_resolve_program(call[0]), *call[1:]])
        requests, tools = self.found, load_tools()
        requests.runners |= RUNNERS & {
            posixpath.basename(re.split(r"[<>=!~@\[]", word)[0]) for word in argv
        }
        if any(posixpath.basename(word) in _JVM_BUILDERS for word in argv):
            named = (
                p for word in argv for p in requests.find_possible_paths(word.rpartition("=")[2])
            )
            requests.build_arguments = (requests.build_arguments or set()).union(named)
        requests.clones_submodules = requests.clones_submodules or bool(
            {"submodule", "--recurse-submodules", ".gitmodules"} & set(argv)
        )
        if name in self.aliases:
            body = self.aliases.pop(name)  # an alias does not expand itself
            self.read_script(f"{body} {shlex.join(arguments)}", where, depth - 1)
            self.aliases[name] = body
        elif name == "alias":
            self.aliases |= dict(
                word.split("=", 1) for word in arguments if ASSIGNMENT.fullmatch(word)
            )
        elif name in {"cd", "pushd"}:
            requests.folder = (
                resolve_path_in_tree(requests.folder, arguments[0]) or "" if arguments else ""
            )
        elif name in _INSTALLERS:
            if "xargs" in wrappers and _takes_packages(name, arguments):
                arguments = [*arguments, *self._read_piped_names(wrappers, command, where)]
            self._read_installer(name, arguments, where, depth)
        elif name in tools.programs["shells"]:
            self._read_shell(name, arguments, command, where, depth)
        elif name == "eval":
            self._read_unknown_program(" ".join(arguments), where)
            self.read_script(" ".join(arguments), where, depth - 1)
        elif name == "python" and _runs_installer(arguments, command):
            requests.unread.append((_shorten(" ".join(argv)), where))
        elif name not in tools.programs["quiet"]:
            self._read_called_file(call[0] if "/" in call[0] else name, arguments, depth)
            self._find_installers_in_arguments(name, arguments, command, where, depth)

    def _read_installer(self, name: str, arguments: Sequence[str], where: str, depth: int) -> None:
        arguments = [
            self._read_substituted_names(word, where)
            if re.fullmatch(r"\$\(.*\)|`.*`", word, re.DOTALL)
            else word
            for word in arguments
        ]
        if name in _PYTHON_TOOLS:
            _read_python_tool(name, arguments, where, self.found)
        else:
            self.found.words += [
                InstallRequest("npm", package, where)
                for package in _read_node_names(name, arguments)
            ]
            self._read_package_scripts(arguments, depth)

    def _read_package_scripts(self, arguments: Sequence[str], depth: int) -> None:
        """The scripts that an installation of the tree's packages runs, and those that the call names."""
        if self.package_scripts is None:
            found = ((path, _read_scripts(self.read(path))) for path in self.packages)
            self.package_scripts = {
                (path, name): text for path, scripts in found for name, text in scripts.items()
            }
        called = {f"{when}{word}" for word in arguments for when in ("", "pre", "post")}
        for path, name in list(self.package_scripts):
            if name not in called | _LIFECYCLE_SCRIPTS:
                continue
            text = self.package_scripts.pop((path, name), "")  # each is read once
            folder, self.found.folder = self.found.folder, posixpath.dirname(path)
            self.found.scripts.add(path)
            self.read_script(text, path, depth - 1)
            self.found.folder = folder

    def _read_substituted_names(self, word: str, where: str) -> str:
        """`pip install $(cat FILE)`: notes the files that are printed; returns a path to read in the word's place."""
        inner = next(find_commands(word.strip("`").removeprefix("$(").removesuffix(")")), None)
        program, *arguments = inner.arguments if inner is not None else [""]
        if program not in load_tools().programs["path_printers"]:
            places = {place for name in arguments for place in self.found.find_possible_paths(name)}
            files = {place for place in places if self.read(place) is not None}
            self.found.requirement_files |= files
            if not files or program not in {"cat", "grep", "head", "sort"}:
                self.found.unread.append((_shorten(word), where))
        return "./substituted"

    def _find_installers_in_arguments(
        self, name: str, arguments: Sequence[str], command: ShellCommand, where: str, depth: int
    ) -> None:
        """A program that is unknown, or not known to run others: an installer among its arguments counts."""
        self._read_unknown_program(name, where)
        if len(arguments) > _MAX_ARGUMENTS:
            if _MENTIONS_INSTALLER.search(" ".join(arguments)):
                self.found.unread.append((_shorten(f"{name} {' '.join(arguments)}"), where))
            return
        for redirect in command.redirects:
            if "<<" in redirect.operator and _MENTIONS_INSTALLER.search(redirect.word.text):
                self.read_script(redirect.word.text, where, depth - 1)
        for at, word in enumerate(arguments):
            is_python = normalise_program(word) == "python"
            inner = (
                resolve_module_program(arguments[at:])[0] if is_python else normalise_program(word)
            )
            if inner in _INSTALLERS:
                self._read_call(arguments[at:], command, where, depth)
                return
        for word in (name, *arguments):
            is_substitution = word.startswith(("$(", "`", "<("))  # its commands are read already
            if " " in word and not is_substitution and _MENTIONS_INSTALLER.search(word):
                self.read_script(word, where, depth - 1)
        if name.startswith(("$", "`", "{")) and _INSTALL_VERBS & set(arguments[:3]):
            tool = "npm" if re.search(r"(?i)npm|yarn|pnpm|bun", name) else "pip"
            self._read_installer(tool, arguments, where, depth)

    def _read_unknown_program(self, text: str, where: str) -> None:
        """A program, or a whole script, that another command prints: refused unless that is known to be harmless."""
        if not text.startswith(("$(", "`", "{")):
            return
        inner = next(find_commands(text.strip("`").removeprefix("$(").removesuffix(")")), None)
        printer = inner.arguments[0] if inner is not None else ""
        harmless = load_tools().programs["environment_printers"] | {"curl", "wget"}
        if normalise_program(printer) not in harmless:
            self.found.unread.append((_shorten(text), where))

    def _read_shell(
        self, name: str, arguments: Sequence[str], command: ShellCommand, where: str, depth: int
    ) -> None:
        """`sh -c SCRIPT`, `sh FILE`, and a script that the shell reads from its input."""
        flag = next((at for at, word in enumerate(arguments) if re.match(r"-\w*c$", word)), None)
        if flag is not None:
            script = next((word for word in arguments[flag + 1 :] if not word.startswith("-")), "")
            self._read_unknown_program(script, where)
            self.read_script(script, where, depth - 1)
            return
        if any(not word.startswith(("-", "+")) for word in arguments) and "-s" not in arguments:
            self._read_called_file(name, arguments, depth)
            return
        for redirect in command.redirects:
            if redirect.operator == "<":
                self._read_called_file(name, [redirect.word.text], depth)
            elif redirect.operator in {"<<", "<<<"}:
                self.read_script(redirect.word.text, where, depth - 1)
        if command.piped_from is not None:
            self._read_piped_script(name, command.piped_from, where, depth)

    def _read_piped_script(self, name: str, source: ShellCommand, where: str, depth: int) -> None:
        argv = [piece for word in source.words for piece in self._expand_word(word)]
        program, arguments = resolve_module_program(split_wrappers(argv)[1])
        documents = [r.word.text for r in source.redirects if r.operator in {"<<", "<<<"}]
        if program in {"echo", "printf"}:
            text = " ".join(word for word in arguments if not word.startswith("-"))
            self.read_script(text.replace("\\n", "\n"), where, depth - 1)
        elif program == "cat" and (documents or arguments):
            for text in documents:
                self.read_script(text, where, depth - 1)
            for path in arguments:
                self._read_called_file(name, [path], depth)
        elif program not in {"curl", "wget"}:  # their addresses are judged
            self.found.unread.append((_shorten(" ".join(argv) + " | " + name), where))

    def _read_piped_names(
        self, wrappers: Sequence[str], command: ShellCommand, where: str
    ) -> Sequence[str]:
        """The packages that `xargs` hands to an installer; files of the tree that it takes them from are noted."""
        source = command.piped_from
        names = [redirect.word.text for redirect in command.redirects]
        names += [
            word for option, word in itertools.pairwise(wrappers) if option in {"-a", "--arg-file"}
        ]
        while source is not None:
            program, *arguments = source.arguments or [""]
            if program in {"echo", "printf"} and all(word.is_known for word in source.words):
                return [
                    word
                    for word in " ".join(arguments).replace("\\n", " ").split()
                    if not word.startswith("-")
                ]
            names += [*arguments, *(redirect.word.text for redirect in source.redirects)]
            source = source.piped_from
        places = {place for name in names for place in self.found.find_possible_paths(name)}
        files = {place for place in places if self.read(place) is not None}
        self.found.requirement_files |= files
        if not files:
            self.found.unread.append((_shorten(" ".join(command.arguments)), where))
        return ()

    def _note_written_files(self, command: ShellCommand, argv: Sequence[str], where: str) -> None:
        """Files that the command writes; an installer may read requirements from them later."""
        _, call = split_wrappers(argv)
        name, arguments = resolve_module_program(call)
        targets = [r.word.text for r in command.redirects if r.operator.startswith((">", "&>"))]
        source = command
        if name == "tee":
            targets += [word for word in arguments if not word.startswith("-")]
            source = command.piped_from or command
        elif name in {"cp", "mv", "ln"} and len(arguments) > 1:
            for path in self.found.find_possible_paths(arguments[-1]):
                self.written.setdefault(path, []).extend(
                    _WrittenFile("", where, f"-r {place}\n") for place in arguments[:-1]
                )
        writer, *words = source.arguments or [""]
        if not targets or writer in load_tools().programs["requirement_exporters"]:
            return
        documents = [r.word.text for r in source.redirects if r.operator in {"<<", "<<<"}]
        text: str | None = "\n".join(documents)
        if writer in {"echo", "printf"}:
            text = "\n".join(words).replace("\\n", "\n")
        elif writer == "cat" and not documents:
            text = "".join(f"-r {path}\n" for path in words)
        elif not documents:
            text = None
        for path in (p for target in targets for p in self.found.find_possible_paths(target)):
            self.written.setdefault(path, []).append(
                _WrittenFile(_shorten(" ".join(argv)), where, text)
            )

    def read_written_files(self) -> None:
        """Read the requirement files that the setup writes itself, as far as their text is known."""
        for path in sorted(self.found.requirement_files & self.written.keys()):
            for file in self.written[path]:
                if file.text is None:
                    self.found.unread.append((file.command, file.where))
                for line in read_requirement_lines(file.text or ""):
                    self.found.words += [
                        InstallRequest("pypi", name, file.where)
                        for name in _read_python_names(line.requirement)
                    ]
                    self.found.requirement_files |= {
                        place
                        for option, value in line.options
                        if option in {"-r", "-c"}
                        for place in self.found.find_possible_paths(value)
                    }

    def _read_called_file(self, name: str, arguments: Sequence[str], depth: int) -> None:
        """`sh x.sh`, `. x.sh`, `./x.sh`, `make`: read the commands in that file of the tree."""
        requests = self.found
        if name == "make":
            paths = ["GNUmakefile", "makefile", "Makefile"]
        elif name in load_tools().programs["shells"] | {"source", "."}:
            paths = [next((word for word in arguments if not word.startswith("-")), "")]
        else:
            paths = [name] if "/" in name else []
        for path in (
            p for named in paths if named for p in sorted(requests.find_possible_paths(named))
        ):
            if depth and path not in requests.scripts and (content := self.read(path)) is not None:
                requests.scripts.add(path)
                text = decode_text(content)
                if name == "make":
                    for recipe in re.findall(r"(?m)^\t[@+-]*(.*(?:\\\n.*)*)$", text):
                        self.read_script(recipe, path, depth - 1)
                elif not content.startswith(b"#!") or re.match(r"#!.*\b(?:ba|da|z)?sh\b", text):
                    self.read_script(text, path, depth - 1)


def _read_scripts(content: bytes | None) -> dict[str, str]:
    """The scripts of a `package.json`; none if it cannot be read, because npm cannot read it either."""
    try:
        scripts = get_table(json.loads(decode_text(content or b"")), "scripts")
    except (ValueError, RecursionError):
        return {}
    return {name: text for name, text in scripts.items() if isinstance(text, str)}


# Such an address is compared with the base's unexpanded: the variable part is behind the host.
_NAMES_A_HOST = re.compile(r"://[\w.-]+(?:/|$)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_MAX_WORD_CHARACTERS = 10_000
# Names of installers' settings, printed into a file or into GITHUB_ENV.
_SETS_AN_INDEX = re.compile(
    r"(?i)(?:index|registry|find[-_]?links|proxy|source)[\w\" '-]{0,20}[=:]"
)
_MENTIONS_INSTALLER = re.compile(
    r"\b(?:pip[\d.]*|uvx?|pipx|poetry|pdm|pipenv|easy_install|npm|npx|yarn|pnpm|bunx?)\b"
)
_LOOKED_UP_PROGRAM = re.compile(r"(?:\$\(|`)\s*(?:which|command -v|type -[pP])\s+([\w./-]+)\s*[)`]")


def _resolve_program(word: str) -> str:
    """The program that `$(which pip)` or `$VENV/bin/pip` names; other words stay as they are."""
    if match := _LOOKED_UP_PROGRAM.fullmatch(word):
        return match[1]
    last = word.rpartition("/")[2]
    return last if word.startswith(("$", "`")) and re.fullmatch(r"[\w.-]+", last) else word


def _runs_installer(arguments: Sequence[str], command: ShellCommand) -> bool:
    """Whether a program text for Python, on its command line or in its input, mentions an installer."""
    texts = [redirect.word.text for redirect in command.redirects if "<<" in redirect.operator]
    texts += [text for flag, text in itertools.pairwise(arguments) if re.match(r"-\w*c$", flag)]
    return any(_MENTIONS_INSTALLER.search(text) and "install" in text for text in texts)


def _prints_locked_requirements(substitution: str) -> bool:
    """Whether the command in `<(uv export)` writes requirements that the tree has already."""
    printer = next(find_commands(substitution[2:-1]), None)
    exporters = load_tools().programs["requirement_exporters"]
    return printer is not None and printer.arguments[0] in exporters


def _takes_packages(name: str, arguments: Sequence[str]) -> bool:
    return name in _NODE_RUNNERS | {"uvx"} or bool(_INSTALL_VERBS & set(arguments))


def _shorten(text: str) -> str:
    return " ".join(text.split())[:200]


def _value_options() -> frozenset[str]:
    tables = load_tools().option_values
    return tables["pip"] | tables["install"]


# -- Python ---------------------------------------------------------------------------------------------------------


def _read_python_tool(
    tool: str, arguments: Sequence[str], where: str, requests: InstallRequests
) -> None:
    words = iter(split_options(arguments))
    verbs: list[str] = []
    taking, of_another = tool in {"uvx", "easy_install"}, False
    for word in words:
        if word in FILE_OPTIONS or word == "--with-requirements":
            _read_requirement_option(
                next(words, ""), f"{tool} {' '.join(arguments)}", where, requests
            )
        elif word in _NAMING_OPTIONS:
            named = next(words, "")
            of_another = of_another or word in {"--from", "--spec"}
            if tool in {"uv", "uvx", "pipx"}:  # Poetry's --with names a group
                requests.words += [
                    InstallRequest("pypi", name, where) for name in _read_python_names(named)
                ]
        elif word in {"-e", "--editable"} or word in _value_options():
            next(words, "")
        elif word.startswith("-"):
            continue
        elif taking and of_another:
            return  # the program of the package before it
        elif taking:
            requests.words += [
                InstallRequest("pypi", name, where) for name in _read_python_names(word)
            ]
            if tool == "uvx" or (verbs and verbs[-1] == "run"):
                return  # the rest are the program's own arguments
        elif tool == "pip" and word == "sync":
            requests.requirement_files |= {
                place for name in words for place in requests.find_possible_paths(name)
            }
        else:
            verbs.append(word)
            taking = _expects_packages(tool, verbs)


def _read_requirement_option(
    value: str, command: str, where: str, requests: InstallRequests
) -> None:
    if value == "/dev/stdin" or (value.startswith("<(") and not _prints_locked_requirements(value)):
        requests.unread.append((_shorten(command), where))
    elif "://" not in value:
        requests.requirement_files |= requests.find_possible_paths(value)


def _expects_packages(tool: str, verbs: Sequence[str]) -> bool:
    """Whether the arguments of these verbs are packages."""
    if verbs[-1] == "run":
        return tool == "pipx" or verbs[-2:-1] == ["tool"]
    return verbs[-1] in _INSTALL_VERBS or verbs[-1].startswith(("$", "`"))


_DISTRIBUTION = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*+(?:\[[^\]/]*\]\s*+)?(?:[(<>=!~;@].*)?", re.DOTALL
)
_ARCHIVE = re.compile(r".*\.(?:whl|zip|tar\.gz|tgz|tar\.bz2|tar\.xz)", re.IGNORECASE)


def _read_python_names(word: str) -> Iterator[str]:
    """The package names in an argument; paths, archives and addresses contain none."""
    for part in [word] if re.search(r"[\[<>=!~]", word) else word.split(","):
        plain = part.strip()
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


def _read_node_names(tool: str, arguments: Sequence[str]) -> Iterator[str]:
    # only with `=`: of npm, which has no such option, the word after it would be a package
    words = iter(split_options([word for word in arguments if not word.startswith("--mode=")]))
    taking = tool in _NODE_RUNNERS
    for word in words:
        if word in {"-p", "--package"}:
            yield from _parse_npm_name(next(words, ""))
            if taking:
                return
        elif word in _value_options():
            next(words, "")
        elif word == "--" or word.startswith("-"):
            continue
        elif taking:
            yield from _parse_npm_name(word)
            if tool in _NODE_RUNNERS:
                return
        elif word in _INSTALL_VERBS:
            taking = True
            if word in {"dlx", "exec", "x"}:
                tool = "npx"
        elif word != "global":
            return


def _parse_npm_name(word: str) -> Iterator[str]:
    """`name@1`, `@scope/name@1`, `alias@npm:name@1`; `owner/repository` and addresses stay unchanged."""
    if not word or word.startswith((".", "/")) or "://" in word or _ARCHIVE.fullmatch(word):
        return
    plain = word.partition("@npm:")[2] or word.removeprefix("npm:")
    scope, at, rest = plain.partition("/") if plain.startswith("@") else ("", "", plain)
    yield scope + at + rest.partition("@")[0]
