"""What a failure says is missing: modules, plugins, extras, tools; and which distribution brings each."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from regreen.fixers.checks.paths import is_test
from regreen.fixers.rungs.task_runners import Read

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
    "rest_framework": "djangorestframework", "corsheaders": "django-cors-headers", "environ": "django-environ", "decouple": "python-decouple", "dns": "dnspython", "ldap": "python-ldap", "nmap": "python-nmap",
    "win32api": "pywin32", "markdown_it": "markdown-it-py", "kafka": "kafka-python", "memcache": "python-memcached", "snappy": "python-snappy",
    "Cryptodome": "pycryptodomex", "stdnum": "python-stdnum", "barcode": "python-barcode", "IPython": "ipython", "bson": "pymongo",
    "gridfs": "pymongo", "Bio": "biopython", "osgeo": "GDAL", "shapefile": "pyshp", "pywt": "PyWavelets", "speech_recognition": "SpeechRecognition",
    "xdist": "pytest-xdist", "box": "python-box", "pymysql": "PyMySQL", "airflow": "apache-airflow", "umap": "umap-learn", "jks": "pyjks",
    "faiss": "faiss-cpu", "community": "python-louvain", "sentence_transformers": "sentence-transformers", "flask_sqlalchemy": "Flask-SQLAlchemy",
    "flask_login": "Flask-Login", "flask_wtf": "Flask-WTF", "wtforms": "WTForms", "pythonjsonlogger": "python-json-logger", "dbus": "dbus-python",
    "zoneinfo": "backports.zoneinfo", "tree_sitter": "tree-sitter", "pyximport": "Cython", "Cython": "Cython", "cairo": "pycairo", "opentelemetry": "opentelemetry-api",
    "webob": "WebOb", "webtest": "WebTest", "paste": "Paste", "mako": "Mako", "pygments": "Pygments", "unidecode": "Unidecode", "babel": "Babel",
    "sphinx": "Sphinx", "psycopg2cffi": "psycopg2cffi", "ldap3": "ldap3", "pyasn1_modules": "pyasn1-modules", "haystack": "django-haystack",
    "crispy_forms": "django-crispy-forms", "debug_toolbar": "django-debug-toolbar", "django_filters": "django-filter", "storages": "django-storages",
    "taggit": "django-taggit", "mptt": "django-mptt", "guardian": "django-guardian", "oauth2_provider": "django-oauth-toolkit", "jwcrypto": "jwcrypto",
    "rest_framework_simplejwt": "djangorestframework-simplejwt", "allauth": "django-allauth", "import_export": "django-import-export",
}  # fmt: skip
_FIXTURES = {"mocker": "pytest-mock", "benchmark": "pytest-benchmark", "httpx_mock": "pytest-httpx", "requests_mock": "requests-mock", "freezer": "pytest-freezer", "snapshot": "syrupy", "faker": "Faker", "anyio_backend": "anyio", "aiohttp_client": "pytest-aiohttp", "respx_mock": "respx", "httpserver": "pytest-httpserver", "datadir": "pytest-datadir", "subtests": "pytest-subtests", "testdir": "pytest", "fs": "pyfakefs", "xprocess": "pytest-xprocess", "time_machine": "time-machine", "data_regression": "pytest-regressions", "event_loop": "pytest-asyncio"}  # fmt: skip
_FIXTURE = re.compile(r"fixture '(\w{1,60})' not found")
_OPTIONS = re.compile(r"unrecognized arguments: (-[^\n]{1,400})")
_REQUIRED = re.compile(r"Missing required plugins: ([^\n]{1,400})")
_SETTING = re.compile(r"Unknown config option: (\w{1,60})")
_SETTINGS = {"asyncio_mode": "pytest-asyncio", "asyncio_default_fixture_loop_scope": "pytest-asyncio", "timeout": "pytest-timeout", "env": "pytest-env", "DJANGO_SETTINGS_MODULE": "pytest-django", "django_find_project": "pytest-django", "mypy_plugins": "pytest-mypy", "env_files": "pytest-dotenv", "qt_api": "pytest-qt", "reruns": "pytest-rerunfailures", "randomly_seed": "pytest-randomly", "snapshot_dirname": "syrupy", "doctest_plus": "pytest-doctestplus", "mock_use_standalone_module": "pytest-mock", "cov_": "pytest-cov", "xvfb_width": "pytest-xvfb", "anyio_mode": "anyio"}  # fmt: skip
# What older interpreters brought along: each goes by a distribution that brings it back.
_GONE = {"distutils": "setuptools", "cgi": "legacy-cgi", "imghdr": "standard-imghdr", "telnetlib": "standard-telnetlib", "audioop": "audioop-lts", "asyncore": "pyasyncore", "asynchat": "pyasynchat", "crypt": "legacycrypt", "pipes": "standard-pipes", "sndhdr": "standard-sndhdr", "aifc": "standard-aifc", "chunk": "standard-chunk", "uu": "standard-uu", "xdrlib": "standard-xdrlib", "nntplib": "standard-nntplib", "mailcap": "standard-mailcap", "smtpd": "aiosmtpd"}  # fmt: skip
# What a distribution no longer brings: the releases that still did.
_BOUNDS = {"pkg_resources": "<81"}
# Tops under which each distribution has a package of its own: there the dotted name says which.
_SHARED = frozenset({"google", "azure", "zope", "opentelemetry", "backports", "sphinxcontrib", "jaraco", "collective", "plone", "paste", "repoze", "flaskext", "ruamel"})  # fmt: skip
_OPTION_PLUGINS = {"--cov": "pytest-cov", "--timeout": "pytest-timeout", "--numprocesses": "pytest-xdist", "--dist": "pytest-xdist", "--randomly-seed": "pytest-randomly", "--reruns": "pytest-rerunfailures", "--benchmark-only": "pytest-benchmark", "--html": "pytest-html", "--mypy": "pytest-mypy", "--asyncio-mode": "pytest-asyncio", "--snapshot-update": "syrupy", "-n": "pytest-xdist", "--maxprocesses": "pytest-xdist", "--forked": "pytest-forked", "--flakes": "pytest-flakes", "--ds": "pytest-django", "--reuse-db": "pytest-django", "--create-db": "pytest-django", "--nomigrations": "pytest-django", "--black": "pytest-black", "--isort": "pytest-isort", "--flake8": "pytest-flake8", "--ruff": "pytest-ruff", "--pylint": "pytest-pylint", "--random-order": "pytest-random-order", "--nbval": "nbval", "--inline-snapshot": "inline-snapshot", "--force-regen": "pytest-regressions", "--markdown-docs": "pytest-markdown-docs", "--codeblocks": "pytest-codeblocks", "--mpl": "pytest-mpl", "--repeat": "pytest-repeat", "--count": "pytest-repeat", "--json-report": "pytest-json-report", "--durations-path": "pytest-split", "--splits": "pytest-split", "--headed": "pytest-playwright", "--block-network": "pytest-recording", "--record-mode": "pytest-recording", "--vcr-record": "pytest-vcr", "--disable-socket": "pytest-socket", "--hypothesis-seed": "hypothesis", "--hypothesis-profile": "hypothesis", "--doctest-plus": "pytest-doctestplus"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Missing:
    """A distribution that something needs; `module` is how it is imported, `extra` which of its extras is missing.

    `bound` is what its version has to keep to ("<81"), where that is known.
    """

    distribution: str
    module: str
    extra: str = ""
    bound: str = ""

    @property
    def requirement(self) -> str:
        """As a manifest names it."""
        return f"{self.distribution}{self.extra}{self.bound}"


def missing_in(output: str, files: Sequence[str]) -> tuple[Missing, ...]:
    """What the output says is missing, without the repository's own modules and the standard library."""
    found: list[Missing] = []
    for match in _MISSING.finditer(output):
        module = match[1]
        top = module.split(".")[0]
        if top in _GONE and not is_own(top, files):
            found.append(Missing(_GONE[top], top))
        elif top not in sys.stdlib_module_names and not is_own(top, files):
            found.append(Missing(distribution_of(module), top, bound=_BOUNDS.get(top, "")))
    found += [Missing(match[1], match[1]) for match in _NO_COMMAND.finditer(output)]
    marks = [match[1] or match[2] for match in _UNKNOWN_MARK.finditer(output)]
    found += [Missing(_MARKS[mark], mark) for mark in marks if mark in _MARKS]
    asked = [match[1] for match in _FIXTURE.finditer(output)]
    found += [Missing(_FIXTURES[name], name) for name in asked if name in _FIXTURES]
    for match in _OPTIONS.finditer(output):
        for word in match[1].split():
            plugin = _plugin_for(word.partition("=")[0])
            if plugin:
                found.append(Missing(plugin, word.partition("=")[0]))
    for match in _REQUIRED.finditer(output):
        for wanted in match[1].split(","):
            if name := re.match(r"\s*([A-Za-z0-9][\w.-]*)(\s*[<>=!~]=?[\w.*]+)?", wanted):
                found.append(Missing(name[1], name[1], bound=(name[2] or "").strip()))
    settings = [match[1] for match in _SETTING.finditer(output)]
    found += [Missing(_SETTINGS[name], name) for name in settings if name in _SETTINGS]
    found += _hinted(output)
    return tuple({canonicalize_name(one.distribution): one for one in found}.values())


def distribution_of(module: str) -> str:
    """The distribution that is known to bring a module, or else the one that has its name."""
    top, *rest = module.split(".")
    for name in (module, top):
        if name in _DISTRIBUTIONS:
            return _DISTRIBUTIONS[name]
    return "-".join([top, *rest][:3]) if top in _SHARED and rest else top.replace("_", "-")


def _plugin_for(option: str) -> str | None:
    """The plugin of pytest that brings an option: `--cov-report` goes by `--cov`."""
    known = (
        one
        for one in _OPTION_PLUGINS
        if option == one or (len(one) > 2 and option.startswith(f"{one}-"))
    )
    found = next(known, None)
    return _OPTION_PLUGINS[found] if found else None


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


def is_own(top: str, files: Sequence[str]) -> bool:
    """Whether the repository itself has the module."""
    return any(
        path in {f"{top}.py", f"src/{top}.py"}
        or path.startswith((f"{top}/", f"src/{top}/", f"lib/{top}/"))
        for path in files
    )


def imported_by_source(module: str, files: Sequence[str], read: Read) -> bool:
    """Whether the product itself imports the module, and not its tests alone."""
    word = re.compile(rf"^\s*(?:import|from)\s+{re.escape(module)}\b", re.MULTILINE)
    sources = [
        path
        for path in files
        if path.endswith(".py") and not is_test(path) and path not in {"setup.py", "noxfile.py"}
    ]
    return any(word.search(read(path) or "") for path in sources[:3000])
