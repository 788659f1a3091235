"""What library calls do to untrusted values: pass them on, make them safe, give something unrelated."""

from __future__ import annotations

import re

from regreen.codebase.taint.values import EVERYTHING

ALL = frozenset({EVERYTHING})
HTML = frozenset({"xss"})
QUOTES = frozenset({"xpath-injection", "sql-injection"})
LINES = frozenset({"log-injection", "header-injection"})
HOSTS = frozenset({"open-redirect", "ssrf"})
PATH = frozenset({"path-traversal"})

# Every sink where the letters of a text do the harm.
TEXTUAL = (
    HTML | QUOTES | LINES | HOSTS | PATH
    | frozenset(
        {"command-injection", "code-injection", "template-injection", "ldap-injection", "unsafe-deserialization", "xxe"}
    )
)  # fmt: skip

# What a call makes its result safe for.
SANITIZERS: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            "html.escape", "markupsafe.escape", "flask.escape", "django.utils.html.escape", "cgi.escape",
            "bleach.clean", "nh3.clean", "xml.sax.saxutils.escape", "xml.sax.saxutils.quoteattr",
            "django.utils.html.conditional_escape", "django.utils.html.format_html", "jinja2.escape",
            "django.utils.html.strip_tags", "tornado.escape.xhtml_escape",
        ),
        HTML | {"header-injection"},
    ),
    **dict.fromkeys(("json.dumps", "flask.jsonify", "orjson.dumps"), LINES),
    **dict.fromkeys(("shlex.quote", "shlex.join", "pipes.quote"), frozenset({"command-injection"})),
    **dict.fromkeys(
        ("urllib.parse.quote", "urllib.parse.quote_plus", "urllib.parse.urlencode", "urllib.quote"),
        HTML | LINES | HOSTS | frozenset({"command-injection", "xpath-injection", "sql-injection"}),
    ),
    **dict.fromkeys(
        ("werkzeug.utils.secure_filename", "os.path.basename", "ntpath.basename", "posixpath.basename",
         "django.utils.text.get_valid_filename", "werkzeug.security.safe_join", "flask.safe_join",
         "django.utils._os.safe_join"),
        PATH,
    ),
    **dict.fromkeys(
        ("ldap3.utils.conv.escape_filter_chars", "ldap.filter.escape_filter_chars", "ldap.dn.escape_dn_chars",
         "ldap3.utils.dn.escape_rdn"),
        frozenset({"ldap-injection"}),
    ),
    **dict.fromkeys(("builtins.repr", "builtins.ascii"), LINES),
    **dict.fromkeys(("base64.b64encode", "base64.urlsafe_b64encode", "binascii.hexlify"),
                    HTML | LINES | QUOTES | frozenset({"command-injection", "ldap-injection"})),
    **dict.fromkeys(("re.escape",), frozenset()),
    **dict.fromkeys(("psycopg2.extensions.quote_ident", "psycopg2.sql.Identifier", "psycopg.sql.Identifier",
                     "psycopg2.sql.Literal", "psycopg.sql.Literal", "pymysql.converters.escape_string"),
                    frozenset({"sql-injection"})),
    **dict.fromkeys(("url_has_allowed_host_and_scheme",), frozenset()),
}  # fmt: skip

# Calls whose result says nothing of the text they were given.
CLEAN = frozenset(
    {
        f"builtins.{name}"
        for name in (
            "int", "float", "bool", "complex", "len", "isinstance", "issubclass", "hasattr", "callable", "hash",
            "id", "ord", "hex", "oct", "bin", "abs", "round", "divmod", "pow", "any", "all", "range", "type", "print",
        )
    }
    | {
        "uuid.UUID", "decimal.Decimal", "fractions.Fraction", "datetime.datetime.strptime", "datetime.date.fromisoformat",
        "datetime.datetime.fromisoformat", "time.strptime", "ipaddress.ip_address", "ipaddress.ip_network",
        "hashlib.md5", "hashlib.sha1", "hashlib.sha256", "hashlib.sha512", "hashlib.new", "hmac.new", "zlib.crc32",
        "os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.getsize", "os.path.isabs", "re.compile",
        "hmac.compare_digest", "secrets.compare_digest", "flask.redirect", "flask.render_template", "flask.url_for",
        "flask.abort", "flask.jsonify", "django.shortcuts.render", "django.shortcuts.redirect", "django.urls.reverse",
        "builtins.open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "os.popen", "aiofiles.open",
        "flask.send_file", "flask.send_from_directory", "flask.flash", "werkzeug.security.generate_password_hash",
        "werkzeug.security.check_password_hash", "django.shortcuts.get_object_or_404", "secrets.token_hex",
    }
)  # fmt: skip

# Calls that give an address of this site.
ROUTES = frozenset({"django.urls.reverse", "django.urls.reverse_lazy", "flask.url_for"})

# Calls that raise unless the text is of one harmless shape: what was given is harmless where they returned.
PARSERS = frozenset(
    {
        "builtins.int", "builtins.float", "builtins.complex", "uuid.UUID", "decimal.Decimal", "fractions.Fraction",
        "ipaddress.ip_address", "ipaddress.ip_network", "ipaddress.ip_interface", "ipaddress.IPv4Address",
        "ipaddress.IPv6Address", "ipaddress.IPv4Network", "ipaddress.IPv6Network", "datetime.date.fromisoformat",
        "datetime.datetime.fromisoformat", "datetime.time.fromisoformat",
    }
)  # fmt: skip

# Calls that change the text so that what was checked before no longer holds.
DECODERS = frozenset(
    {
        "urllib.parse.unquote", "urllib.parse.unquote_plus", "urllib.parse.parse_qs", "urllib.parse.parse_qsl",
        "base64.b64decode", "base64.urlsafe_b64decode", "base64.standard_b64decode", "base64.b32decode",
        "base64.decodebytes", "binascii.unhexlify", "html.unescape", "codecs.decode", "zlib.decompress",
        "gzip.decompress", "bytes.fromhex", "xml.sax.saxutils.unescape",
    }
)  # fmt: skip

_FOLLOWED = re.compile(
    r"(?:builtins|json|base64|binascii|urllib\.parse|html|os\.path|posixpath|ntpath|pathlib|codecs|copy|itertools|"
    r"functools|textwrap|string|re|io|collections|zlib|gzip|ast|markupsafe|bleach|shlex|unicodedata|configparser|"
    r"operator|typing|os|zipfile|tarfile|yarl|httpx\.URL|yaml|tomllib|csv|flask\.request|web\.request|flask\.make_response|werkzeug|xml\.sax\.saxutils|"
    r"sqlalchemy\.text|jinja2|random|secrets|heapq|bisect|urllib\.request\.Request|tempfile|orjson|ujson|simplejson)"
    r"(?:\.|\(|$)"
)
_NUMBER_METHODS = frozenset(
    {
        "find", "rfind", "index", "rindex", "count", "startswith", "endswith", "isdigit", "isalnum", "isalpha",
        "isnumeric", "isdecimal", "isidentifier", "isspace", "isupper", "islower", "isascii", "bit_length",
        "is_file", "is_dir", "exists", "is_absolute", "is_relative_to", "has_key", "fileno", "tell", "fetchone",
        "fetchall", "fetchmany", "execute", "executemany", "commit", "set_cookie", "timestamp", "bindparams",
    }
)  # fmt: skip
EXTRACTORS = frozenset(
    {
        "split", "rsplit", "partition", "rpartition", "splitlines", "group", "groups", "groupdict", "keys", "values",
        "items", "get", "getlist", "getall", "pop", "findall", "get_all", "to_dict", "popitem", "dict",
    }
)  # fmt: skip


# A code made with a key, by the place where it was made.
MAC = re.compile(r"hmac\(\)@[^@]+@")
_MARKUP = re.compile(r"(?:markupsafe|flask|jinja2)\.Markup\(\)(?:\.format\(\)|\.join\(\))*\Z")
_ESCAPES = re.compile(r"(?:^|[._])(?:html_?)?(?:escape|sanitize|quote)(?:_\w+)?\Z", re.IGNORECASE)


def is_called_an_escape(name: str) -> bool:
    """Whether an unknown function says by its name that it makes text harmless for a page."""
    return _ESCAPES.search(name) is not None


_MAKES_TEXT = re.compile(
    r"(?:builtins|textwrap|html|string|re|urllib\.parse|base64|codecs|unicodedata|jinja2\.(?:Template|Environment))[.(]"
)
_FIXED_HOST = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\\\s]+[/?#]", re.IGNORECASE)
_LOCAL_PATH = re.compile(r"/[^/\\]|[\w.-]+/")


def bounded(start: str) -> frozenset[str]:
    """The sinks for which it does not matter what follows this beginning of an address."""
    if _FIXED_HOST.match(start):
        return HOSTS
    return HOSTS if _LOCAL_PATH.match(start) else frozenset()


def is_markup(name: str) -> bool:
    """Whether this is text that escapes whatever is added to it or formatted into it."""
    return _MARKUP.match(name) is not None


def makes_text(name: str) -> bool:
    """Whether what a call gives is text, and no answer of a framework's that knows its own kind."""
    return _MAKES_TEXT.match(name) is not None


def is_followed(name: str) -> bool:
    """Whether the library is known well enough to say that what goes in comes out."""
    return _FOLLOWED.match(name) is not None


def gives_no_text(method: str) -> bool:
    """Whether the method's result carries nothing of the text."""
    return method in _NUMBER_METHODS
