"""A package that is imported and not declared: which distribution it is, and which manifest should name it."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from regreen.fixers.checks.change import parse_python
from regreen.fixers.checks.dependencies import declared
from regreen.fixers.checks.paths import is_test

Read = Callable[[str], str | None]
_MISSING = re.compile(
    r"(?:(?:ModuleNotFoundError|ImportError): |/python[\d.]*: )No module named '?([A-Za-z_][\w.]{0,100})'?"
)
_NO_COMMAND = re.compile(
    r"(?:^|: )(pytest|ruff|mypy|black|isort|flake8|coverage|tox|nox|pylint|pyright): (?:command )?not found",
    re.MULTILINE,
)
_HINT = re.compile(
    r"(?:pip3?|uv pip) install (?:-U |--upgrade )?[\"'`]?([A-Za-z0-9][\w.-]{0,80})(\[[\w,. -]{1,80}\])?",
    re.IGNORECASE,
)
_NEEDS = re.compile(r"Error|error|not installed|required|missing|hint|note:", re.IGNORECASE)
_MARKS = {"asyncio": "pytest-asyncio", "anyio": "anyio", "trio": "pytest-trio", "django_db": "pytest-django", "benchmark": "pytest-benchmark", "timeout": "pytest-timeout", "flaky": "pytest-rerunfailures", "twisted": "pytest-twisted"}  # fmt: skip
_UNKNOWN_MARK = re.compile(r"Unknown pytest\.mark\.(\w{1,40})|'(\w{1,40})' not found in `markers`")
_DISTRIBUTIONS = {
    "yaml": "PyYAML", "PIL": "Pillow", "cv2": "opencv-python", "sklearn": "scikit-learn", "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil", "attr": "attrs", "jwt": "PyJWT", "dotenv": "python-dotenv", "Crypto": "pycryptodome",
    "OpenSSL": "pyOpenSSL", "serial": "pyserial", "usb": "pyusb", "git": "GitPython", "github": "PyGithub", "docx": "python-docx",
    "pptx": "python-pptx", "fitz": "PyMuPDF", "magic": "python-magic", "MySQLdb": "mysqlclient", "psycopg2": "psycopg2-binary",
    "google.protobuf": "protobuf", "jose": "python-jose", "multipart": "python-multipart", "pkg_resources": "setuptools",
    "setuptools": "setuptools", "ruamel": "ruamel.yaml", "ruamel.yaml": "ruamel.yaml", "zmq": "pyzmq", "nacl": "PyNaCl",
    "markdown": "Markdown", "jinja2": "Jinja2", "flask": "Flask", "werkzeug": "Werkzeug", "django": "Django", "sqlalchemy": "SQLAlchemy",
    "redis": "redis", "slugify": "python-slugify", "Levenshtein": "Levenshtein", "skimage": "scikit-image", "Xlib": "python-xlib",
    "socks": "PySocks", "pytest_asyncio": "pytest-asyncio", "pytest_mock": "pytest-mock", "mock": "mock", "toml": "toml", "tomli": "tomli",
    "tomli_w": "tomli-w", "typing_extensions": "typing_extensions", "importlib_metadata": "importlib-metadata",
    "importlib_resources": "importlib-resources", "xmltodict": "xmltodict", "lxml": "lxml", "simplejson": "simplejson",
    "charset_normalizer": "charset-normalizer", "websocket": "websocket-client", "socketio": "python-socketio",
    "engineio": "python-engineio", "telegram": "python-telegram-bot", "discord": "discord.py", "wx": "wxPython", "gi": "PyGObject",
    "pylab": "matplotlib", "mpl_toolkits": "matplotlib", "prometheus_client": "prometheus-client", "flask_cors": "Flask-Cors",
    "rest_framework": "djangorestframework", "corsheaders": "django-cors-headers", "environ": "django-environ", "decouple": "python-decouple",
}  # fmt: skip
_FIXTURES = {"mocker": "pytest-mock", "benchmark": "pytest-benchmark", "httpx_mock": "pytest-httpx", "requests_mock": "requests-mock", "freezer": "pytest-freezer", "snapshot": "syrupy", "faker": "Faker", "anyio_backend": "anyio", "aiohttp_client": "pytest-aiohttp", "respx_mock": "respx", "httpserver": "pytest-httpserver", "datadir": "pytest-datadir", "subtests": "pytest-subtests", "testdir": "pytest", "fs": "pyfakefs", "xprocess": "pytest-xprocess", "time_machine": "time-machine", "data_regression": "pytest-regressions", "event_loop": "pytest-asyncio"}  # fmt: skip
_FIXTURE = re.compile(r"fixture '(\w{1,60})' not found")
_OPTIONS = re.compile(r"unrecognized arguments: (--[\w-]{1,60})")
_OPTION_PLUGINS = {"--cov": "pytest-cov", "--timeout": "pytest-timeout", "--numprocesses": "pytest-xdist", "--dist": "pytest-xdist", "--randomly-seed": "pytest-randomly", "--reruns": "pytest-rerunfailures", "--benchmark-only": "pytest-benchmark", "--html": "pytest-html", "--mypy": "pytest-mypy", "--asyncio-mode": "pytest-asyncio", "--snapshot-update": "syrupy", "--doctest-plus": "pytest-doctestplus"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Missing:
    """A distribution that something needs; `module` is how it is imported, `extra` which of its extras is missing."""

    distribution: str
    module: str
    extra: str = ""

    @property
    def requirement(self) -> str:
        """As a manifest names it."""
        return f"{self.distribution}{self.extra}"


def missing_in(output: str, files: Sequence[str]) -> tuple[Missing, ...]:
    """What the output says is missing, without the repository's own modules and the standard library."""
    found: list[Missing] = []
    for match in _MISSING.finditer(output):
        module = match[1]
        top = module.split(".")[0]
        if top in sys.stdlib_module_names or _is_own(top, files):
            continue
        found.append(
            Missing(_DISTRIBUTIONS.get(module, _DISTRIBUTIONS.get(top, top.replace("_", "-"))), top)
        )
    found += [Missing(match[1], match[1]) for match in _NO_COMMAND.finditer(output)]
    marks = [match[1] or match[2] for match in _UNKNOWN_MARK.finditer(output)]
    found += [Missing(_MARKS[mark], mark) for mark in marks if mark in _MARKS]
    asked = [match[1] for match in _FIXTURE.finditer(output)]
    found += [Missing(_FIXTURES[name], name) for name in asked if name in _FIXTURES]
    for match in _OPTIONS.finditer(output):
        name = match[1].split("=")[0]
        plugin = next(
            (
                one
                for option, one in _OPTION_PLUGINS.items()
                if name == option or name.startswith(f"{option}-")
            ),
            None,
        )
        if plugin:
            found.append(Missing(plugin, name))
    found += _hinted(output)
    return tuple({canonicalize_name(one.distribution): one for one in found}.values())


def _hinted(output: str) -> Iterator[Missing]:
    """What a library says to install, where it says so in an error: `pip install httpx[http2]`."""
    for line in output.splitlines():
        match = _HINT.search(line) if len(line) < 2000 and _NEEDS.search(line) else None
        if (
            match
            and not match[1].startswith("-")
            and match[1].lower() not in {"pip", "the", "a", "it"}
        ):
            yield Missing(
                match[1].rstrip("."), match[1].replace("-", "_"), (match[2] or "").replace(" ", "")
            )


def build_additions(missing: Sequence[Missing], read: Read) -> Iterator[tuple[dict[str, str], str]]:
    """`build-system.requires` with what building the project itself imports and nobody declared."""
    text = read("pyproject.toml")
    head = re.search(r"^\[build-system\][^\n]*\n", text or "", re.MULTILINE)
    entry = (
        re.search(r"^requires\s*=\s*\[", text[head.end() :], re.MULTILINE)
        if text and head
        else None
    )
    if text is None or head is None or entry is None:
        return
    for one in missing:
        changed = _into_list(text, head.end() + entry.end(), one.requirement)
        if changed is not None:
            yield (
                {"pyproject.toml": changed},
                f"building needs {one.distribution}, which build-system.requires does not name",
            )


def _is_own(top: str, files: Sequence[str]) -> bool:
    return any(
        path in {f"{top}.py", f"src/{top}.py"}
        or path.startswith((f"{top}/", f"src/{top}/", f"lib/{top}/"))
        for path in files
    )


def additions(
    missing: Sequence[Missing], files: Sequence[str], read: Read, setup: str
) -> Iterator[tuple[dict[str, str], str]]:
    """Changed manifests, one set after the other, each with what to say about it; those that `setup` installs first."""
    used_by_source = {
        one.distribution for one in missing if imported_by_source(one.module, files, read)
    }
    for path in _manifests(files, setup):
        text = read(path)
        if text is None:
            continue
        have = declared(path, text)
        with_extra = _with_extras(text, [one for one in missing if one.extra])
        if with_extra != text:
            names = ", ".join(one.requirement for one in missing if one.extra)
            yield {path: with_extra}, f"{names} is needed, and {path} declares it without the extra"
            continue
        wanted = [one for one in missing if canonicalize_name(one.distribution) not in have]
        if not wanted:
            continue
        changed = _add(path, text, wanted, used_by_source, setup)
        if changed is not None and changed != text:
            names = ", ".join(one.distribution for one in wanted)
            yield {path: changed}, f"{names} is imported but {path} does not declare it"


def _with_extras(text: str, wanted: Sequence[Missing]) -> str:
    """The manifest with the missing extras added to what it declares already."""
    for one in wanted:
        loose = re.sub(r"[-_.]+", "[-_.]+", one.distribution)
        text = re.sub(
            rf"(?im)((?:^|[\"'\s,]){loose})(?=\s*(?:[\"'<>=~!;,]|$))",
            rf"\g<1>{one.extra}",
            text,
            count=1,
        )
    return text


def imported_by_source(module: str, files: Sequence[str], read: Read) -> bool:
    """Whether the product itself imports the module, and not its tests alone."""
    word = re.compile(rf"^\s*(?:import|from)\s+{re.escape(module)}\b", re.MULTILINE)
    sources = [
        path
        for path in files
        if path.endswith(".py") and not is_test(path) and path not in {"setup.py", "noxfile.py"}
    ]
    return any(word.search(read(path) or "") for path in sources[:3000])


def _manifests(files: Sequence[str], setup: str) -> list[str]:
    names = [
        path
        for path in files
        if re.search(r"(^|/)[\w.-]*(requirements|reqs)[\w./-]*\.(txt|in)$|(^|/)requirements/", path)
        and path.endswith((".txt", ".in"))
    ]
    packages = [path for path in files if path in {"pyproject.toml", "setup.cfg", "setup.py"}]
    named = [path for path in names if path in setup]
    project = re.search(r"(?:^|[\s'\"])\.(?:\[|['\"\s]|$)", setup)
    first = [*packages, *named] if project else [*named, *packages]
    return [*first, *(path for path in names if path not in named)][:6]


def _add(path: str, text: str, wanted: Sequence[Missing], used: set[str], setup: str) -> str | None:
    if path.endswith((".txt", ".in")):
        if "--hash=" in text:
            return None
        gap = "" if not text or text.endswith("\n") else "\n"
        return text + gap + "".join(f"{one.requirement}\n" for one in wanted)
    for one in wanted:
        group = "" if one.distribution in used else _installed_group(path, text, setup)
        changed = (
            _add_to_toml(text, one.requirement, group)
            if path == "pyproject.toml"
            else _add_to_list(path, text, one.requirement)
        )
        if changed is None and group:
            changed = _add_to_toml(text, one.requirement, "") if path == "pyproject.toml" else None
        if changed is None:
            return None
        text = changed
    return text


def _installed_group(path: str, text: str, setup: str) -> str:
    """The extra or dependency group that the setup installs, for what only tests need."""
    if path != "pyproject.toml":
        return ""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return ""
    extras = document.get("project", {}).get("optional-dependencies", {})
    groups = document.get("dependency-groups", {})
    named = re.findall(r"\[([\w,.\s-]{1,200})\]|--(?:extra|group)[= ]([\w.-]+)", setup)
    words = [
        word.strip() for pair in named for part in pair for word in part.split(",") if word.strip()
    ]
    wanted = [*words, *(("dev",) if "uv sync" in setup or "uv run" in setup else ())]
    return next((str(word) for word in wanted if word in extras or word in groups), "")


def _add_to_toml(text: str, name: str, group: str) -> str | None:
    """Add to `dependencies`, or to the extra or group called `group`, keeping the file's own layout."""
    tables = (r"project\.optional-dependencies", r"dependency-groups") if group else (r"project",)
    key = re.escape(group) if group else "dependencies"
    for table in tables:
        head = re.search(rf"^\[{table}\][^\n]*\n", text, re.MULTILINE)
        if head is None:
            continue
        stop = re.compile(r"^\[", re.MULTILINE).search(text, head.end())
        end = stop.start() if stop else len(text)
        entry = re.compile(rf"^[\"']?{key}[\"']?\s*=\s*\[", re.MULTILINE).search(
            text, head.end(), end
        )
        if entry is None:
            if group:
                continue
            line = f'dependencies = ["{name}"]\n'
            return (
                text[: head.end()] + line + text[head.end() :]
                if "dynamic" not in text[head.end() : end]
                else None
            )
        return _into_list(text, entry.end(), name)
    return None


def _into_list(text: str, start: int, name: str) -> str | None:
    """Put a string at the end of the list whose `[` ends at `start`."""
    end = _closing(text, start)
    if end is None:
        return None
    inside = text[start:end]
    quote = "'" if "'" in inside and '"' not in inside else '"'
    if "\n" not in inside:
        gap = (
            ", "
            if inside.strip() and not inside.rstrip().endswith(",")
            else " "
            if inside.strip()
            else ""
        )
        return f"{text[:start]}{inside.rstrip()}{gap}{quote}{name}{quote}{text[end:]}"
    last = [line for line in inside.split("\n") if line.strip()]
    indent = re.match(r"\s*", last[-1]).group(0) if last else "    "  # type: ignore[union-attr]  # always matches
    body = inside.rstrip()
    comma = "" if not body.strip() or re.sub(r"#[^\n]*$", "", body).rstrip().endswith(",") else ","
    tail = inside[len(body) :]
    return f"{text[:start]}{body}{comma}\n{indent or '    '}{quote}{name}{quote},{tail}{text[end:]}"


def _closing(text: str, start: int) -> int | None:
    depth, quote = 1, ""
    position = start
    while position < len(text):
        char = text[position]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#":
            position = text.find("\n", position)
            if position < 0:
                return None
        elif char in "[]":
            depth += 1 if char == "[" else -1
            if depth == 0:
                return position
        position += 1
    return None


def _add_to_list(path: str, text: str, name: str) -> str | None:
    if path == "setup.py":
        tree = parse_python(text)
        entry = re.search(r"install_requires\s*=\s*\[", text)
        return _into_list(text, entry.end(), name) if entry and tree else None
    entry = re.search(r"^install_requires\s*=[^\n]*\n", text, re.MULTILINE)
    if entry is None:
        return None
    block = re.compile(r"(?:[ \t]+[^\n]*\n|\n)*").match(text, entry.end())
    end = block.end() if block else entry.end()
    body = text[entry.end() : end].rstrip("\n")
    indent = re.match(r"[ \t]*", body).group(0) if body else "    "  # type: ignore[union-attr]  # always matches
    return f"{text[: entry.end()]}{body}{chr(10) if body else ''}{indent or '    '}{name}\n{text[entry.end() + len(body) + (1 if body else 0) :]}"
