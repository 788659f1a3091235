"""The calls that harm, by name: which rule, and which arguments must not be untrusted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Where:
    """A rule, the arguments it looks at (the first that is given), and on what condition."""

    rule: str
    arguments: tuple[int | str, ...] = (0,)
    when: str = ""
    by_shell: bool = False


SHELLS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "cmd.exe", "cmd", "powershell", "pwsh", "powershell.exe"}
)
LDAP_METHODS = frozenset(
    {"search", "search_s", "search_st", "search_ext", "search_ext_s", "paged_search"}
)

LDAP3_METHODS = frozenset({"search", "paged_search"})
XPATH_METHODS = frozenset({"find", "findall", "findtext", "iterfind"})
XML_LIBRARIES = ("xml.etree.", "lxml.etree.", "lxml.objectify.", "defusedxml.")


def _each(
    rule: str, names: str, *arguments: int | str, when: str = "", by_shell: bool = False
) -> dict[str, Where]:
    where = Where(rule, arguments or (0,), when, by_shell)
    return dict.fromkeys(names.split(), where)


def _merged(*tables: dict[str, Where]) -> dict[str, tuple[Where, ...]]:
    found: dict[str, tuple[Where, ...]] = {}
    for table in tables:
        for name, where in table.items():
            found[name] = (*found.get(name, ()), where)
    return found


BY_NAME = _merged(
    _each(
        "command-injection",
        "os.system os.popen commands.getoutput subprocess.getoutput subprocess.getstatusoutput "
        "asyncio.create_subprocess_shell asyncio.subprocess.create_subprocess_shell popen2.popen2 "
        "paramiko.SSHClient().exec_command",
        0, "command", "cmd", by_shell=True,
    ),
    _each(
        "command-injection",
        "subprocess.run subprocess.call subprocess.Popen subprocess.check_call subprocess.check_output pty.spawn",
        0, "args",
    ),
    _each("command-injection", "os.execl os.execle os.execlp os.execv os.execve os.execvp", 0),
    _each("command-injection", "os.spawnl os.spawnv os.spawnvp os.spawnve", 1),
    _each(
        "code-injection",
        "builtins.eval builtins.exec builtins.compile code.interact code.InteractiveInterpreter().runcode "
        "builtins.execfile builtins.__import__ importlib.import_module timeit.timeit numexpr.evaluate",
        0,
    ),
    _each(
        "path-traversal",
        "builtins.open io.open codecs.open os.open os.remove os.unlink os.rmdir os.mkdir os.makedirs os.listdir "
        "os.scandir os.stat os.chmod os.chown os.path.exists os.path.isfile os.path.isdir os.path.getsize "
        "os.removedirs os.truncate os.readlink os.walk shutil.rmtree tarfile.open zipfile.ZipFile "
        "flask.send_file flask.helpers.send_file aiofiles.open django.http.FileResponse "
        "starlette.responses.FileResponse fastapi.responses.FileResponse linecache.getline fileinput.input "
        "gzip.open bz2.open lzma.open sqlite3.dbm.open logging.FileHandler configparser.ConfigParser().read "
        "bottle.static_file sanic.response.file aiohttp.web.FileResponse",
        0, "file", "path", "filename", "path_or_file",
    ),
    _each("path-traversal", " ".join(f"pathlib.Path().{name}" for name in (
        "exists", "is_file", "is_dir", "stat", "open", "glob", "rglob", "rename", "replace", "chmod", "lstat")), "self"),
    # A zip file's own `extractall` stays in its folder; a tar file's does so where it is told to.
    _each("path-traversal", "tarfile.open().extractall tarfile.TarFile().extractall tarfile.open().extract",
          "self", when="unfiltered"),
    _each(
        "path-traversal",
        "os.rename os.replace os.symlink os.link shutil.copy shutil.copyfile shutil.copy2 shutil.copytree "
        "shutil.move",
        0,
    ),
    _each(
        "path-traversal",
        "os.rename os.replace shutil.copy shutil.copyfile shutil.copy2 shutil.copytree shutil.move",
        1,
    ),
    _each(
        "xss",
        "flask.make_response flask.Response flask.wrappers.Response django.http.HttpResponse "
        "django.http.response.HttpResponse "
        "starlette.responses.HTMLResponse fastapi.responses.HTMLResponse werkzeug.wrappers.Response "
        "quart.Response quart.make_response tornado.web.RequestHandler.write",
        0, "response", "content", when="html",
    ),
    _each("xss", "aiohttp.web.Response sanic.response.html bottle.HTTPResponse", "text", "body", 0, when="html-only"),
    _each(
        "xss",
        "markupsafe.Markup flask.Markup jinja2.Markup django.utils.safestring.mark_safe "
        "django.utils.safestring.SafeString",
        0,
    ),
    _each(
        "template-injection",
        "flask.render_template_string jinja2.Template mako.template.Template django.template.Template "
        "jinja2.Environment().from_string jinja2.Escaping().from_string tornado.template.Template flask.templating.render_template_string",
        0, "source", "template_string",
    ),
    _each(
        "open-redirect",
        "flask.redirect werkzeug.utils.redirect django.shortcuts.redirect django.http.HttpResponseRedirect "
        "django.http.HttpResponsePermanentRedirect starlette.responses.RedirectResponse "
        "fastapi.responses.RedirectResponse aiohttp.web.HTTPFound quart.redirect bottle.redirect sanic.response.redirect "
        "tornado.web.RequestHandler.redirect",
        0, "location", "url", "redirect_to",
    ),
    _each(
        "unsafe-deserialization",
        "pickle.loads pickle.load pickle.Unpickler cPickle.loads cPickle.load _pickle.loads dill.loads dill.load "
        "marshal.loads marshal.load "
        "cloudpickle.loads cloudpickle.load jsonpickle.decode jsonpickle.loads joblib.load pandas.read_pickle "
        "shelve.open yaml.unsafe_load yaml.unsafe_load_all yaml.full_load_all ruamel.yaml.unsafe_load",
        0,
    ),
    _each("unsafe-deserialization", "yaml.load yaml.load_all", 0, "stream", when="unsafe-loader"),
    _each("unsafe-deserialization", "torch.load", 0, when="full-load"),
    _each(
        "xpath-injection",
        "lxml.etree.XPath lxml.etree.ETXPath elementpath.XPath2Parser().parse elementpath.Selector",
        0,
    ),
    _each("xpath-injection", "elementpath.select elementpath.iter_select", 1, "path"),
    _each("xxe", "lxml.etree.parse lxml.etree.fromstring lxml.etree.XML lxml.objectify.parse lxml.objectify.fromstring "
          "xml.dom.minidom.parse xml.dom.minidom.parseString xml.dom.pulldom.parse xml.dom.pulldom.parseString "
          "xml.sax.parse xml.sax.parseString xml.etree.ElementTree.parse xml.etree.ElementTree.fromstring",
          0, when="parser-resolves-entities"),
    _each(
        "ssrf",
        "requests.get requests.post requests.put requests.delete requests.patch requests.head requests.options "
        "requests.Session().get requests.Session().post requests.session().get requests.session().post "
        "httpx.get httpx.post httpx.put httpx.delete httpx.patch httpx.head httpx.Client().get httpx.Client().post "
        "httpx.AsyncClient().get httpx.AsyncClient().post urllib.request.urlopen urllib.request.Request "
        "urllib.request.urlretrieve urllib.urlopen urllib2.urlopen aiohttp.ClientSession().get "
        "aiohttp.ClientSession().post aiohttp.request http.client.HTTPConnection http.client.HTTPSConnection",
        0, "url",
    ),
    _each("ssrf", "requests.request requests.Session().request httpx.request httpx.stream "
          "urllib3.PoolManager().request aiohttp.ClientSession().request", 1, "url"),
    _each(
        "sql-injection",
        "sqlalchemy.text sqlalchemy.sql.text django.db.models.expressions.RawSQL pandas.read_sql pandas.read_sql_query "
        "sqlalchemy.sql.expression.text psycopg2.sql.SQL psycopg.sql.SQL asyncpg.connect().fetch asyncpg.create_pool().fetch "
        "asyncpg.create_pool().acquire().fetch",
        0, "sql", "query",
    ),
    _each(
        "log-injection",
        "logging.info logging.warning logging.error logging.debug logging.critical logging.exception logging.log "
        "logging.getLogger().info logging.getLogger().warning logging.getLogger().error logging.getLogger().debug "
        "logging.getLogger().critical logging.getLogger().exception",
        0,
    ),
)  # fmt: skip

# By the method's name alone, whatever it is called on.
BY_METHOD = _merged(
    _each("sql-injection", "executescript executemany", 0, "sql", "operation", "query"),
    _each("sql-injection", "execute", 0, "sql", "operation", "query", "statement"),
    _each("sql-injection", "mogrify raw fetchrow fetchval", 0, "query"),
    _each("sql-injection", "extra", "select"),
    _each("sql-injection", "extra", "where"),
    _each("sql-injection", "extra", "tables"),
    _each("path-traversal", "save", 0, "dst"),
    _each("xpath-injection", "xpath", 0, "_path", "query"),
    _each(
        "path-traversal",
        "read_text read_bytes write_text write_bytes iterdir rmdir unlink mkdir touch",
        "self",
    ),
    _each("header-injection", "add_header", 1, "value"),
)
