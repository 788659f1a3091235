"""What names tell of a change of JavaScript or TypeScript where the compiler knows no types.

Calls are held against the function of their name that they must mean: one that the module imports, or the only one of the
repository. Everything is said of changed lines, or of callers that a changed signature leaves behind.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from regreen.code.diff import FileChange
from regreen.code.file_languages import language_of, parser_for
from regreen.code.paths import is_test
from regreen.code.symbols import SCRIPT_FUNCTIONS, node_text, read_sources, walk_nodes
from regreen.domain.models import SkippedReviewer
from regreen.languages.script import (
    ScriptModule,
    is_script,
    is_typed_script,
    parse_script_module,
    resolve_import,
)
from regreen.languages.script_config import load_jsonc
from regreen.reviewers.analyzers.baseline import (
    BrokenUse,
    broken_caller_claim,
    make_analyzer_claim,
    removed_name_claim,
    require_repository,
)
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_SCRIPT_BYTES = 48 * 2**20
_MAX_FILES = 300
_MAX_PARSED = 250
_MAX_DEFINING = 20
_MIN_WORD = 6
_MAX_LOOKUPS = 100
_CALL_NODES = frozenset({"call_expression", "new_expression"})
_DEFINED = re.compile(
    r"\bfunction\b\s{0,9}\*?\s{0,9}([A-Za-z_$][\w$]*)"
    r"|(?<![\w$])([A-Za-z_$][\w$]*)\s{0,9}[=:]\s{0,9}(?:async\b\s{0,9})?(?:function\b|[(<]|[A-Za-z_$][\w$]*\s{0,9}=>)"
    r"|^[ \t]*(?:(?:static|async|public|private|protected|override|export|default|get|set)\s{1,9}){0,5}[*#]?([A-Za-z_$][\w$]*)\s{0,9}[(<]",
    re.MULTILINE,
)
_TOKEN = re.compile(r"[A-Za-z_$][\w$]*")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_PROMISE_USERS = re.compile(
    r"(?:^|\.)(?:push|all|allSettled|race|any|add|resolve|set|waitUntil|unshift|then|catch|finally)$"
)


@dataclass(frozen=True)
class _Function:
    """A function of the repository. A parameter without a name of its own is ""."""

    path: str
    name: str
    line: int
    parameters: tuple[str, ...]
    node: Node = field(repr=False, compare=False)

    @cached_property
    def _listed(self) -> list[Node]:
        listed = self.node.child_by_field_name("parameters")
        return _list_parameters(listed) if listed is not None else []

    @cached_property
    def _body(self) -> str:
        return node_text(self.node.child_by_field_name("body"))

    @cached_property
    def shown(self) -> str:
        listed = node_text(self.node.child_by_field_name("parameters"))
        return f"{self.name}{' '.join(listed.split())}"[:160]

    @cached_property
    def is_async(self) -> bool:
        return any(c.type == "async" for c in self.node.children)

    @cached_property
    def is_open(self) -> bool:
        """Whether it takes any number of arguments."""
        return any("..." in node_text(p)[:4] for p in self._listed) or "arguments" in self._body

    @cached_property
    def parameters_used_unchecked(self) -> frozenset[str]:
        """The parameters that it uses without looking whether they were given."""
        pairs = zip(self.parameters, self._listed, strict=True)
        return frozenset(
            n for n, p in pairs if n and _default_of(p) is None and _is_dereferenced(n, self._body)
        )

    @cached_property
    def is_overloaded(self) -> bool:
        """Whether it asks what kind of value an argument is, and so takes them in more than one order."""
        parameters = "|".join(re.escape(n) for n in self.parameters if n)
        asked = rf"(?:typeof\s+|Array\.isArray\()(?:{parameters})(?![\w$])|(?<![\w$.])(?:{parameters})\s+instanceof\b"
        return bool(parameters) and re.search(asked, self._body) is not None


@dataclass(frozen=True)
class _Call:
    """A call: the called name, what stands before its dot ("" for a plain name) and the arguments."""

    name: str
    receiver: str
    arguments: tuple[Node, ...]
    node: Node

    @property
    def line(self) -> int:
        return self.node.start_point[0] + 1


@dataclass
class ScriptFile:
    """A file that is parsed when something asks for its tree, functions, calls or imports."""

    path: str
    text: str

    @cached_property
    def root(self) -> Node | None:
        """The syntax tree; None where the file does not parse."""
        language = language_of(self.path)
        if language is None:
            return None
        root = parser_for(language).parse(self.text.encode("utf-8", "surrogateescape")).root_node
        return None if root.has_error else root

    @cached_property
    def rows(self) -> list[str]:
        """The lines."""
        return self.text.split("\n")

    @cached_property
    def functions(self) -> list[_Function]:
        """The functions that have a name."""
        nodes = walk_nodes(self.root) if self.root else ()
        return [
            f for n in nodes if n.type in SCRIPT_FUNCTIONS and (f := _read_function(self.path, n))
        ]

    @cached_property
    def calls(self) -> list[_Call]:
        """The calls of names and of members."""
        nodes = walk_nodes(self.root) if self.root else ()
        return [c for n in nodes if n.type in _CALL_NODES and (c := _read_call(n))]

    def find_calls(self, name: str) -> Iterator[_Call]:
        """The calls of one name, without a walk through the whole tree."""
        text = self.text.encode("utf-8", "surrogateescape") if self.root else b""
        # each lookup may have to pass all statements of the file
        if text.count(name.encode()) > _MAX_LOOKUPS:
            yield from (c for c in self.calls if c.name == name)
            return
        for found in re.finditer(re.escape(name.encode()), text):
            assert self.root is not None  # noqa: S101 - there is no text without it
            node = self.root.named_descendant_for_byte_range(*found.span())
            if node is not None and node.parent and node.parent.type == "member_expression":
                node = node.parent
            if node is None or node.end_byte != found.end() or node.parent is None:
                continue
            call = _read_call(node.parent) if node.parent.type in _CALL_NODES else None
            if call is not None and call.name == name:
                yield call

    @cached_property
    def module(self) -> ScriptModule | None:
        """What the file exports and imports."""
        return parse_script_module(self.path, self.text.encode("utf-8", "surrogateescape"))

    @cached_property
    def bindings(self) -> Counter[str]:
        """How often the file binds each name, imports aside."""
        if self.module is None:
            return Counter()
        return self.module.bound - Counter(x.local for x in self.module.imports if x.local)

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """The source and the imported name of each local name that is bound once."""
        module = self.module
        if module is None:
            return {}
        return {
            x.local: (x.source, x.name)
            for x in module.imports
            if x.local and module.bound[x.local] == 1
        }


@dataclass
class ScriptProgram:
    """The repository's scripts at a revision, each parsed at most once and only where a name is looked for."""

    context: ReviewContext
    rev: str
    parsed: dict[str, ScriptFile] = field(default_factory=dict)
    _defined: dict[str, set[str]] = field(default_factory=dict)
    _functions: dict[str, list[_Function]] = field(default_factory=dict)

    @cached_property
    def texts(self) -> dict[str, str]:
        """The texts by their paths."""
        git = self.context.git
        assert git is not None  # noqa: S101 - `run` has looked
        sources = read_sources(git, self.rev, is_read_script, most=MAX_SCRIPT_BYTES)
        return {p: d.decode("utf-8", "surrogateescape") for p, d in sources}

    @cached_property
    def words(self) -> set[str]:
        """Every name that stands in the texts."""
        found: set[str] = set()
        for text in self.texts.values():
            found.update(_TOKEN.findall(text))
        return found

    def has_word_more_than_twice(self, name: str) -> bool:
        """Whether a name stands in the texts three times or more."""
        count = 0
        for text in self.texts.values():
            count += _TOKEN.findall(text).count(name) if name in text else 0
            if count > 2:
                return True
        return False

    @cached_property
    def paths(self) -> set[str]:
        """All files of the revision."""
        tree = self.context.head_tree if self.rev == self.context.head else self.context.base_tree
        return {e.path for e in tree}

    def parse_files_containing(self, name: str) -> Iterator[ScriptFile]:
        """The files in which a name stands, up to the limit of what is parsed."""
        whole = re.compile(rf"{re.escape(name)}(?![\w$])(?<![\w$]{re.escape(name)})")
        for path, text in self.texts.items():
            may_parse = path in self.parsed or len(self.parsed) < _MAX_PARSED
            if may_parse and name in text and whole.search(text):
                yield self.parsed.setdefault(path, ScriptFile(path, text))

    def file(self, path: str) -> ScriptFile | None:
        """One file; None where there is none."""
        text = self.texts.get(path)
        return self.parsed.setdefault(path, ScriptFile(path, text)) if text is not None else None

    def find_functions(self, name: str) -> list[_Function]:
        """All functions of a name; none where too many files would have to be parsed to know."""
        if name not in self._functions:
            paths = list(islice(self._find_defining_files(name), _MAX_DEFINING + 1))
            files = map(self.file, paths if len(paths) <= _MAX_DEFINING else ())
            self._functions[name] = [
                f for file in files if file for f in file.functions if f.name == name
            ]
        return self._functions[name]

    def _find_defining_files(self, name: str) -> Iterator[str]:
        """The files that may define a function of a name. A cheap pattern skips those that only call it."""
        word = re.escape(name)
        # the name comes first, so that `re` looks for it as for a text
        looks_defined = re.compile(
            rf"{word}(?![\w$])(?:(?<=[\s*#]{word})\s{{0,9}}[(<]|(?<![\w$]{word})\s{{0,9}}[=:]\s{{0,9}}[(<\w$])"
        )
        for path, text in self.texts.items():
            if name and name in text and looks_defined.search(text):
                if path not in self._defined:
                    groups = (m.groups() for m in _DEFINED.finditer(text))
                    self._defined[path] = {x for found in groups for x in found if x}
                if name in self._defined[path]:
                    yield path

    def find_target(self, call: _Call, file: ScriptFile) -> _Function | None:
        """The function that a call means, None where that is not certain."""
        return self.find_named(call.receiver, call.name, file)

    def find_named(
        self, receiver: str, called: str, file: ScriptFile, *, loose: bool = False
    ) -> _Function | None:
        """The function that `receiver.called` means in a file; `loose`: also the only one in the modules it imports."""
        local = receiver if receiver and receiver in file.imports else called
        if local in file.imports and (local != called or not receiver):
            source, name = file.imports[local]
            wanted = called if receiver or name in {"*", "default"} else name
            found = [
                f
                for f in self.find_functions(wanted)
                if self.is_import_of(f.path, source, file.path)
            ]
            return found[0] if len(found) == 1 else None
        found = self.find_functions(called)
        if loose and receiver:
            sources = {source for source, _ in file.imports.values()}
            imported = [
                f for f in found if any(self.is_import_of(f.path, s, file.path) for s in sources)
            ]
            found = imported or [f for f in found if f.path == file.path]
            return found[0] if len(found) == 1 else None
        if len(found) != 1:
            return None
        if not receiver or receiver == "this":
            return found[0] if found[0].path == file.path else None
        return found[0] if len(_split_words(called)) > 1 and len(called) >= 8 else None

    def is_import_of(self, path: str, source: str, importer: str) -> bool:
        """Whether an import means this file: by its path, an alias before its path, or its package's name."""
        if source.startswith("."):
            return resolve_import(source, importer, self.paths) == path
        stem = path.split(".", maxsplit=1)[0].removesuffix("/index")
        tail = source.split("/", maxsplit=1)[-1] if source[:1] in "@~#" else source
        if "/" in source and (stem == tail or stem.endswith(f"/{tail}")):
            return True
        return any(
            source == n or source.startswith(f"{n}/")
            for f, n in self.packages.items()
            if path.startswith(f"{f}/")
        )

    @cached_property
    def packages(self) -> dict[str, str]:
        """The names of the repository's packages, by their folders."""
        read = self.context.head_text if self.rev == self.context.head else self.context.base_text
        folders = [
            p.removesuffix("/package.json")
            for p in self.paths
            if p.endswith("/package.json") and "node_modules" not in p
        ]
        names = {f: load_jsonc(read(f"{f}/package.json") or "").get("name") for f in folders[:200]}
        return {f: n for f, n in names.items() if isinstance(n, str) and n}

    def find_importers(self, paths: Collection[str], *, rounds: int) -> list[str]:
        """The other files that import one of these, and those that import them in turn."""
        found: dict[str, None] = {}
        wanted = {*paths}
        for _ in range(rounds):
            stems = {re.escape(_module_stem(p)) for p in wanted} | {
                re.escape(n)
                for f, n in self.packages.items()
                if any(p.startswith(f"{f}/") for p in wanted)
            }
            if not stems:
                break
            named = re.compile(
                rf"(?:from|import|require)\b[^\n]{{0,80}}['\"/](?:{'|'.join(sorted(stems))})(?:\.\w+)?['\"]"
            )
            wanted = {
                p
                for p, t in self.texts.items()
                if p not in found and p not in paths and named.search(t)
            }
            found |= dict.fromkeys(sorted(wanted))
        return list(found)

    def declares(self, name: str) -> bool:
        """Whether any script has the name other than as a property that is read."""
        pattern = re.compile(
            rf"(?<![.\w$]){re.escape(name)}(?![\w$])|\.{re.escape(name)}\s*[-+*/|&?]{{0,3}}=(?![=>])"
        )
        return any(name in text and pattern.search(text) for text in self.texts.values())


def _module_stem(path: str) -> str:
    stem = posixpath.basename(path).split(".", maxsplit=1)[0]
    return posixpath.basename(posixpath.dirname(path)) if stem == "index" else stem


class ScriptNames:
    """Holds calls, awaited calls and property names of changed scripts against what the repository defines."""

    name = "names in JavaScript and TypeScript"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report what a change breaks by the names alone."""
        files = [f for f in context.files if is_read_script(f.path) and f.status != "deleted"]
        if not files:
            return ReviewerReport()
        if context.git is None:
            return require_repository(self.name)
        if sum(e.size or 0 for e in context.head_tree if is_read_script(e.path)) > MAX_SCRIPT_BYTES:
            reason = f"the repository has more than {MAX_SCRIPT_BYTES // 2**20} MiB of scripts: a name may have definitions that were not read"
            return ReviewerReport(skipped=(SkippedReviewer(self.name, reason),))
        program = ScriptProgram(context, context.head)
        claims: list[Claim] = []
        for change in files[:_MAX_FILES]:
            text, old = context.head_text(change.path), context.base_text(change.old_path)
            if text is None or not (head := ScriptFile(change.path, text)).root:
                continue
            base = ScriptFile(change.old_path, old) if old is not None else None
            claims += _find_misspelt_properties(change, head, base, program)
            claims += _find_swapped_arguments(change, head, base, program)
            claims += _find_uncalled_conditions(change, head, program)
            if base is not None and base.root:
                claims += _find_dropped_awaits(change, head, base, program)
                claims += _find_broken_callers(change, head, base, program)
                claims += _find_removed_members(change, head, base, program)
        return ReviewerReport(tuple(claims), read=f"names in {count_noun(len(files), 'script')}")


def is_read_script(path: str) -> bool:
    """Whether a file is a script with code of the repository's own."""
    return is_script(path) and not path.endswith(".d.ts") and "node_modules" not in path.split("/")


def _read_function(path: str, node: Node) -> _Function | None:
    name = _function_name(node)
    listed = node.child_by_field_name("parameters")
    if not name or listed is None:
        return None
    names = tuple(_parameter_name(p) for p in _list_parameters(listed))
    return _Function(path, name, node.start_point[0] + 1, names, node)


def _list_parameters(listed: Node) -> list[Node]:
    return [c for c in listed.named_children if c.type not in {"comment", "decorator"}]


def _function_name(node: Node) -> str:
    """A function's own name, or that of the variable, property or field that it is the value of."""
    named, parent = node.child_by_field_name("name"), node.parent
    if named is None and parent is not None:
        place = {
            "variable_declarator": "name",
            "pair": "key",
            "assignment_expression": "left",
            "public_field_definition": "name",
            "field_definition": "property",
        }
        named = parent.child_by_field_name(place[parent.type]) if parent.type in place else None
        if named is not None and named.type == "member_expression":
            named = named.child_by_field_name("property")
    return node_text(named) if named is not None and "identifier" in named.type else ""


def _default_of(node: Node) -> Node | None:
    return node.child_by_field_name("value") or node.child_by_field_name("right")


def _parameter_name(node: Node) -> str:
    inner = node.child_by_field_name("pattern") or node.child_by_field_name("left") or node
    return node_text(inner) if inner.type == "identifier" else ""


def _is_dereferenced(name: str, body: str) -> bool:
    """Whether a function fails without this argument: it is dereferenced and never looked at first."""
    word = rf"(?<![.\w$]){re.escape(name)}(?![\w$])"
    if not re.search(rf"{word}(?:\.[A-Za-z_$]|\[)", body):
        return False
    looked_at = rf"{word}\s*(?:&&|\|\||\?|[!=]==?|[-+*/|&]?=(?!>))|(?:typeof|!)\s*\(?\s*{word}|(?:if|while)\s*\(\s*{word}\s*[)&|]|\binstanceof\b|\bin\s+{word}"
    return not re.search(looked_at, body)


def _read_call(node: Node) -> _Call | None:
    function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
    arguments = node.child_by_field_name("arguments")
    if function is None or arguments is None or arguments.type != "arguments":
        return None
    given = tuple(c for c in arguments.named_children if c.type != "comment")
    if function.type == "identifier":
        return _Call(node_text(function), "", given, node)
    if function.type != "member_expression":
        return None
    receiver = node_text(function.child_by_field_name("object"))
    return _Call(node_text(function.child_by_field_name("property")), receiver, given, node)


def _split_words(name: str) -> set[str]:
    return {w.lower() for w in _PARTS.findall(name)}


# Properties that nothing defines, one slip of the keys away from one that the repository has.


def _find_misspelt_properties(
    change: FileChange, head: ScriptFile, base: ScriptFile | None, program: ScriptProgram
) -> Iterator[Claim]:
    known = Counter(_TOKEN.findall(base.text) if base else ())
    lost = known - Counter(_TOKEN.findall(head.text))
    added = set(change.added_lines)
    read: dict[str, Node] = {}
    for node in walk_nodes(head.root) if head.root else ():
        if node.type == "property_identifier" and node.start_point[0] + 1 in added:
            name = node_text(node)
            parent = node.parent
            if (
                len(name) >= _MIN_WORD
                and name not in known
                and parent is not None
                and parent.type == "member_expression"
            ):
                read.setdefault(name, node)
    for name, node in read.items():
        if program.has_word_more_than_twice(name) or program.declares(name):
            continue
        line = node.start_point[0] + 1
        meant = next((w for w in sorted(lost) if is_typing_slip(name, w, loose=True)), "")
        alike = (w for w in program.words if len(w) == len(name) and is_typing_slip(name, w))
        meant = meant or next(filter(program.has_word_more_than_twice, sorted(alike)), "")
        if meant in program.words:
            yield make_analyzer_claim(
                "script/misspelt-property",
                "high",
                change.path,
                (line, line),
                title=f"Nothing defines `{name}`: `{meant}` is meant",
                body=f"`{name}` is read here and stands nowhere else in the repository; `{meant}` is one slip away.",
                confidence=0.88 if meant in lost else 0.84,
                excerpt=head.rows[line - 1][:300],
                source="names in the repository",
                head=f"`{name}` is not defined",
                symbol="",
                code=name,
            )


def is_typing_slip(wrong: str, right: str, *, loose: bool = False) -> bool:
    """Whether one slip of the keys makes `right` `wrong`: two letters exchanged; `loose`: one too many, too few or another.

    The last letter does not count: it makes plurals and forms of verbs.
    """
    if wrong == right or wrong[0] != right[0] or abs(len(wrong) - len(right)) > 1:
        return False
    if wrong.lower() == right.lower() or any(c.isdigit() for c in wrong + right):
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(wrong, right, strict=False)) if a != b),
        min(len(wrong), len(right)),
    )
    tail_wrong, tail_right = wrong[start:], right[start:]
    if len(wrong) == len(right):
        if (
            tail_wrong[:2].lower() == tail_right[:2][::-1].lower()
            and tail_wrong[2:] == tail_right[2:]
        ):
            return len(tail_wrong) >= 2
        return loose and len(tail_wrong) > 1 and tail_wrong[1:] == tail_right[1:]
    long, short = sorted((tail_wrong, tail_right), key=len, reverse=True)
    return loose and len(short) > 0 and long[1:] == short


# Conditions that name a function and do not call it.


def _find_uncalled_conditions(
    change: FileChange, head: ScriptFile, program: ScriptProgram
) -> Iterator[Claim]:
    for node in walk_nodes(head.root) if head.root else ():
        if node.type not in {"if_statement", "while_statement", "ternary_expression"}:
            continue
        condition = node.child_by_field_name("condition")
        inner = (
            condition.named_children[0]
            if condition is not None and condition.type == "parenthesized_expression"
            else condition
        )
        if inner is None or not change.touches_lines(
            inner.start_point[0] + 1, inner.end_point[0] + 1
        ):
            continue
        for part in _split_condition(inner):
            call = _Call(node_text(part), "", (), part)
            if part.type == "member_expression":
                receiver = node_text(part.child_by_field_name("object"))
                call = _Call(node_text(part.child_by_field_name("property")), receiver, (), part)
            target = program.find_target(call, head)
            if target is None or target.parameters == () or not _is_never_rebound(call, head):
                continue
            word = rf"(?<![\w$]){re.escape(call.name)}(?![\w$])"
            if len(re.findall(word, node_text(node))) > 1:
                continue  # it asks whether the function is there
            yield make_analyzer_claim(
                "script/uncalled-function",
                "high",
                change.path,
                (call.line, call.line),
                title=f"`{call.name}` is a function and is not called: the condition always holds",
                body=f"`{target.shown}` is defined in {target.path}:{target.line}.",
                confidence=0.88,
                excerpt=head.rows[call.line - 1][:300],
                source="names in the repository",
                code=call.name,
            )


def _split_condition(node: Node) -> list[Node]:
    """The names that a condition is, or joins with `&&`, `||` and `!`."""
    if node.type in {"identifier", "member_expression"}:
        return [node]
    signs = {"&&", "||", "!"}
    if (
        node.type == "parenthesized_expression"
        or node_text(node.child_by_field_name("operator")) in signs
    ):
        return [x for c in node.named_children for x in _split_condition(c)]
    return []


def _is_never_rebound(call: _Call, head: ScriptFile) -> bool:
    """Whether the name is a function's own, which nothing else binds in the file or assigns anywhere."""
    if not call.receiver:
        binding = head.bindings[call.name] + (call.name in head.imports)
        return binding == 1
    return call.receiver == "this" and not re.search(
        rf"\b{re.escape(call.name)}\??\s*(?::|=[^=>])", head.text
    )


# Arguments that bear the names of each other's parameters.


_REVERSES = re.compile(
    r"(?i)revers|swap|transpos|rotate|rotation|invert|inverse|inversion|flip|mirror|descend|opposite"
)


def _is_meant_reversed(call: _Call) -> bool:
    """Whether a function around the call is named for the reversal, or is the one that is called: it exchanges on purpose."""
    node = call.node.parent
    while node is not None:
        name = node.child_by_field_name("name") or node.child_by_field_name("key")
        text = node_text(name) if name is not None else ""
        if _REVERSES.search(text) or text == call.name:
            return True
        node = node.parent
    return False


def _find_swapped_arguments(
    change: FileChange, head: ScriptFile, base: ScriptFile | None, program: ScriptProgram
) -> Iterator[Claim]:
    removed = {*change.removed_lines}
    before = (
        [c for c in base.calls if removed & {*range(c.line, c.node.end_point[0] + 2)}]
        if base and base.root
        else []
    )
    new = Counter(map(_write_call, head.calls)) - Counter(
        map(_write_call, base.calls if base else ())
    )
    for call in head.calls:
        if not 2 <= len(call.arguments) <= 8 or not change.touches_lines(
            call.line, call.node.end_point[0] + 1
        ):
            continue
        if _is_meant_reversed(call) or _write_call(call) not in new:
            continue
        target = program.find_target(call, head)
        names = [_argument_name(a) for a in call.arguments]
        pair = (
            _find_positions_named_crosswise(names, target.parameters)
            if target and not target.is_overloaded
            else None
        )
        pair = pair or next(
            (
                p
                for old in before
                if (p := _find_positions_exchanged_by_change(old, call))
                and _old_order_fits_better(old, call, p, target, program)
            ),
            None,
        )
        if pair is None or _is_in_base(node_text(call.node), program.context):
            continue
        first, second = (node_text(call.arguments[i]) for i in pair)
        defined = (
            f"`{target.shown}` is defined in {target.path}:{target.line}."
            if target
            else "Other calls give them the other way round."
        )
        yield make_analyzer_claim(
            "script/swapped-arguments",
            "high",
            change.path,
            (call.line, min(call.node.end_point[0] + 1, call.line + 3)),
            title=f"`{first[:60]}` and `{second[:60]}` are in each other's place",
            body=defined,
            confidence=0.86,
            excerpt=head.rows[call.line - 1][:300],
            source="names of arguments and parameters",
            head=target.shown if target else call.name,
            code=f"{call.name} {first} {second}"[:200],
        )


def _is_in_base(code: str, context: ReviewContext) -> bool:
    """Whether one of the changed files had this code before, so that it only moved."""
    return any(code in (context.base_text(f.old_path) or "") for f in context.change.files)


def _write_call(call: _Call) -> tuple[str, ...]:
    return call.receiver, call.name, *(node_text(a) for a in call.arguments)


def _find_positions_exchanged_by_change(old: _Call, new: _Call) -> tuple[int, int] | None:
    """The two positions whose arguments a change exchanged, where the call is the same otherwise."""
    if (old.name, old.receiver, len(old.arguments)) != (new.name, new.receiver, len(new.arguments)):
        return None
    was, now = ([node_text(a) for a in c.arguments] for c in (old, new))
    differ = [i for i, (a, b) in enumerate(zip(was, now, strict=True)) if a != b]
    if len(differ) != 2 or (was[differ[0]], was[differ[1]]) != (now[differ[1]], now[differ[0]]):
        return None
    return differ[0], differ[1]


def _old_order_fits_better(
    old: _Call, new: _Call, pair: tuple[int, int], target: _Function | None, program: ScriptProgram
) -> bool:
    """Whether names of parameters and other calls speak for the order before the change, and nothing for the new one."""
    scores = []
    others = [
        c
        for f in program.parse_files_containing(new.name)
        for c in f.find_calls(new.name)
        if c.receiver == new.receiver
    ]
    for call in (old, new):
        score = 0
        for i in pair:
            mine = call.arguments[i]
            if target is not None and i < len(target.parameters):
                score += bool(
                    _split_words(_argument_name(mine)) & _split_words(target.parameters[i])
                )
            for other in others:
                if len(other.arguments) > i and node_text(other.node) != node_text(new.node):
                    score += _is_same_kind_of_argument(mine, other.arguments[i])
        scores.append(score)
    return scores[0] > 0 and scores[1] == 0


def _is_same_kind_of_argument(one: Node, other: Node) -> bool:
    """Whether two arguments have the same text, or are literals or functions of one kind."""
    return node_text(one) == node_text(other) or (
        one.type == other.type
        and one.type
        not in {
            "identifier",
            "member_expression",
            "call_expression",
            "subscript_expression",
            "binary_expression",
            "await_expression",
        }
    )


def _argument_name(node: Node) -> str:
    if node.type in {"identifier", "this"}:
        return node_text(node)
    if node.type == "member_expression":
        return node_text(node.child_by_field_name("property"))
    return ""


def _find_positions_named_crosswise(
    names: Sequence[str], parameters: Sequence[str]
) -> tuple[int, int] | None:
    """Two positions whose arguments are each named as the other's parameter, and not as their own."""
    count = min(len(names), len(parameters))
    for i in range(count):
        for j in range(i + 1, count):
            if min(map(len, (parameters[i], parameters[j], names[i], names[j]))) < 3:
                continue
            crosswise = _is_named(names[i], parameters[j]) and _is_named(names[j], parameters[i])
            own = _split_words(names[i]) & _split_words(parameters[i]) or _split_words(
                names[j]
            ) & _split_words(parameters[j])
            if crosswise and not own:
                return i, j
    return None


def _is_named(argument: str, parameter: str) -> bool:
    mine, wanted = _split_words(argument), _split_words(parameter)
    return bool(mine and wanted) and (mine <= wanted or wanted <= mine)


# Calls that were awaited and are not any more, though they still give a promise.


def _find_dropped_awaits(
    change: FileChange, head: ScriptFile, base: ScriptFile, program: ScriptProgram
) -> Iterator[Claim]:
    removed = {*change.removed_lines}
    awaited = {
        (call.receiver, call.name)
        for call in base.calls
        if _is_awaited(call) and removed & {*range(call.line, call.node.end_point[0] + 2)}
    }
    bare = _count_bare(head) - _count_bare(base)
    for call in head.calls if awaited else ():
        key = (call.receiver, call.name)
        is_dropped = key in awaited and bare[key] > 0
        if not is_dropped or not change.touches_lines(call.line, call.line):
            continue
        if not _is_taken_for_its_value(call.node) or not _returns_promise(call, head, program):
            continue
        yield make_analyzer_claim(
            "script/dropped-await",
            "high",
            change.path,
            (call.line, call.line),
            title=f"`await` is gone, and `{call.name}` still gives a promise",
            body="What follows gets the promise instead of its value, and nobody sees its errors.",
            confidence=0.87,
            excerpt=head.rows[call.line - 1][:300],
            source="calls before and after",
            head=f"`{call.name}` is not awaited",
            base="awaited",
            code=call.name,
        )


def _is_awaited(call: _Call) -> bool:
    return call.node.parent is not None and call.node.parent.type == "await_expression"


def _count_bare(file: ScriptFile) -> Counter[tuple[str, str]]:
    """How often each name of a receiver is called without `await`."""
    return Counter((call.receiver, call.name) for call in file.calls if not _is_awaited(call))


def _is_taken_for_its_value(node: Node) -> bool:
    """Whether nothing near the call treats its result as a promise."""
    parent = node.parent
    while parent is not None and parent.type in {
        "parenthesized_expression",
        "as_expression",
        "ternary_expression",
    }:
        node, parent = parent, parent.parent
    if parent is None or parent.type in {
        "await_expression",
        "yield_expression",
        "array",
        "unary_expression",
        "arrow_function",
        "spread_element",
    }:
        return False
    if parent.type == "return_statement":
        return _is_inside_try(parent)
    if parent.type == "arguments":
        call = _read_call(parent.parent) if parent.parent is not None else None
        return call is None or not _PROMISE_USERS.search(f"{call.receiver}.{call.name}")
    if parent.type == "member_expression":
        return node_text(parent.child_by_field_name("property")) not in {"then", "catch", "finally"}
    bound = parent.type in {"variable_declarator", "assignment_expression"}
    return not bound or _is_read_as_value(parent, node)


def _is_read_as_value(binding: Node, call: Node) -> bool:
    """Whether the name that a call's result is bound to is read, and never awaited or handed on as a promise."""
    name = node_text(binding.child_by_field_name("name") or binding.child_by_field_name("left"))
    around = _enclosing_function(binding)
    code = re.sub(rf"(?<![\w$.])await\s*{re.escape(node_text(call))}", "", node_text(around))
    word = rf"(?<![\w$.]){re.escape(name)}(?![\w$])"
    settled = rf"await\s+{word}(?!\s*[.\[])|{word}\s*\.\s*(?:then|catch|finally)\b|(?:all|allSettled|race|any|push)\s*\([^()]*{word}"
    read = rf"{word}\s*(?:\.\s*(?!then\b|catch\b|finally\b)[A-Za-z_$]|\[)"
    handed_on = rf"(?:return|yield)\s+{word}(?!\s*[.\[])"
    if re.search(settled, code):
        return False
    return bool(re.search(read, code)) or not re.search(handed_on, code)


def _enclosing_function(node: Node) -> Node:
    while node.parent is not None and node.type not in SCRIPT_FUNCTIONS:
        node = node.parent
    return node


def _is_inside_try(node: Node) -> bool:
    while node.parent is not None and node.type not in SCRIPT_FUNCTIONS:
        if node.type == "statement_block" and node.parent.type == "try_statement":
            return True
        node = node.parent
    return False


def _returns_promise(call: _Call, head: ScriptFile, program: ScriptProgram) -> bool:
    target = program.find_target(call, head)
    if target is not None:
        return target.is_async
    if program.find_functions(call.name):
        return all(f.is_async for f in program.find_functions(call.name))
    other = re.compile(rf"\bawait\s+[\w$.]{{0,80}}(?<![\w$]){re.escape(call.name)}\(")
    return bool(other.search(head.text))


# Callers that a changed signature leaves behind.


def _find_broken_callers(
    change: FileChange, head: ScriptFile, base: ScriptFile, program: ScriptProgram
) -> Iterator[Claim]:
    before = _functions_by_name(base.functions)
    for name, new in _functions_by_name(head.functions).items():
        old = before.get(name)
        if old is None or old.parameters == new.parameters or old.is_open or new.is_open:
            continue
        if not change.touches_lines(new.line, new.line + new.shown.count("\n")):
            continue
        places = []
        for file in program.parse_files_containing(name):
            for call in file.find_calls(name):
                if any(a.type == "spread_element" for a in call.arguments):
                    continue
                touched = program.context.change.by_path.get(file.path)
                last = call.arguments[-1].start_point[0] + 1 if call.arguments else call.line
                if touched is not None and touched.touches_lines(call.line, last):
                    continue
                why = _explain_misfit(old, new, len(call.arguments))
                if why and program.find_target(call, file) == new:
                    places.append(
                        BrokenUse(file.path, call.line, file.rows[call.line - 1].strip(), why)
                    )
        if places:
            lines = (new.line, new.line)
            places.sort(key=lambda p: (is_test(p.path), p.path, p.line))
            yield broken_caller_claim(
                change, name, lines, (old.shown, new.shown), places, "goes wrong"
            )


def _functions_by_name(functions: Iterable[_Function]) -> dict[str, _Function]:
    times = Counter(f.name for f in functions)
    return {f.name: f for f in functions if times[f.name] == 1}


def _explain_misfit(old: _Function, new: _Function, given: int) -> str | None:
    """Why a call that was written for the old parameters goes wrong with the new ones."""
    for at, name in enumerate(old.parameters[:given]):
        if name and name in new.parameters and new.parameters.index(name) != at:
            return f"its argument {at + 1} was `{name}`, which is now parameter {new.parameters.index(name) + 1}"
    if is_typed_script(new.path):
        return None  # the compiler counts
    for at, name in enumerate(new.parameters):
        if (
            at >= given
            and name in new.parameters_used_unchecked
            and name not in old.parameters_used_unchecked
        ):
            return f"it gives no `{name}`, which the function uses without looking"
    return None


def _find_removed_members(
    change: FileChange, head: ScriptFile, base: ScriptFile, program: ScriptProgram
) -> Iterator[Claim]:
    """Exports that are gone and still read as `module.name`; those that are imported by name are the compiler's."""
    old, new = base.module, head.module
    if old is None or new is None or old.open or new.open:
        return
    for name, line in old.exports.items():
        if name in new.exports or line not in change.removed_lines:
            continue
        places = [
            BrokenUse(file.path, node.start_point[0] + 1, file.rows[node.start_point[0]].strip())
            for file in program.parse_files_containing(name)
            for node in (walk_nodes(file.root) if file.root else ())
            if node.type == "member_expression"
            and node_text(node.child_by_field_name("property")) == name
            and (bound := file.imports.get(node_text(node.child_by_field_name("object"))))
            and bound[1] == "*"
            and resolve_import(bound[0], file.path, program.paths) == change.path
        ]
        if places:
            yield removed_name_claim(change, name, line, places)
