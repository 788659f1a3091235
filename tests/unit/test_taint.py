"""Where untrusted values go: one story a row, vulnerable and safe side by side."""

from __future__ import annotations

import ast
import textwrap
import tomllib
from collections.abc import Collection
from importlib import resources

import pytest

from regreen.taint.analysis import TAINT_RULES, TaintAnalysis, analyse_program
from regreen.taint.models.entry_points import (
    _assign_groups_to_parameters,
    _parameter_patterns,
    _parse_routes,
)
from regreen.taint.program import Program, may_begin

FLASK = "import os, re, subprocess, flask\nfrom flask import Flask, request, redirect, session\napp = Flask(__name__)\n"


def found(code: str, **others: str) -> set[str]:
    """The rules that surely hold in a module, with other modules beside it."""
    return {flow.rule for flow in analysed(code, **others).flows if flow.certain}


def analysed(code: str, **others: str) -> TaintAnalysis:
    files = {"app.py": textwrap.dedent(code)}
    files |= {
        name.replace("__", "/") + ".py": textwrap.dedent(text) for name, text in others.items()
    }
    return analyse_program(Program.from_files(files), ["app.py"])


def handler(body: str, head: str = "") -> str:
    """A Flask handler with this body."""
    indented = textwrap.indent(textwrap.dedent(body), "    ")
    return f"{FLASK}{head}\n@app.route('/x')\ndef x():\n{indented}"


VULNERABLE = [
    ("sql-injection", "q = request.args['q']\ndb.execute(f\"select '{q}'\")"),
    ("sql-injection", "db.execute('select %s' % request.form.get('q'))"),
    ("sql-injection", "db.cursor().execute('select {}'.format(request.values['q']))"),
    ("sql-injection", "parts = ['select ', request.json['q']]\ndb.execute(' '.join(parts))"),
    ("sql-injection", "where = {}\nwhere['q'] = request.cookies.get('q')\ndb.execute('select ' + where['q'])"),
    ("sql-injection", "rows = [f'select {n}' for n in request.args.getlist('n')]\nfor r in rows:\n    db.execute(r)"),
    ("sql-injection", "q = request.args.get('q')\nif len(q) < 10:\n    db.execute('select ' + q)"),
    ("sql-injection", "a, b = request.args['q'].split(',')\ndb.execute('select ' + b)"),
    ("sql-injection", "q = 'select '\nq += request.get_data().decode()\ndb.execute(q)"),
    ("sql-injection", "q = request.args['q']\nif '\"' in q:\n    q = q\ndb.execute('select ' + q)"),
    ("sql-injection", "q = request.args['q']\nif q[0] == 'a':\n    db.execute('select ' + q)"),
    ("sql-injection", "try:\n    q = request.args['q']\nexcept KeyError:\n    q = ''\ndb.execute('select ' + q)"),
    ("sql-injection", "with db.begin() as c:\n    c.execute('select ' + request.args['q'])"),
    ("sql-injection", "q = (lambda v: 'select ' + v)(request.args['q'])\ndb.execute(q)"),
    ("sql-injection", "if (q := request.args.get('q')):\n    db.execute('select ' + q)"),
    ("sql-injection", "n = request.args['n']\nwhile n:\n    db.execute('select ' + n)\n    n = n[1:]"),
    ("command-injection", "os.system('ls ' + request.args['d'])"),
    ("command-injection", "subprocess.run('ls ' + request.args['d'], shell=True)"),
    ("command-injection", "subprocess.run(['bash', '-c', 'ls ' + request.args['d']])"),
    ("command-injection", "cmd = [request.args['program'], '-v']\nsubprocess.Popen(cmd)"),
    ("command-injection", "from shlex import quote\nd = request.args['d']\nquote(d)\nos.popen(f'ls {d}')"),
    ("code-injection", "return str(eval(request.args['e']))"),
    ("code-injection", "exec(compile(request.form['e'], 'x', 'exec'))"),
    ("path-traversal", "return {'a': open('/srv/' + request.args['f']).read()}"),
    ("path-traversal", "p = os.path.join('/srv', request.args['f'])\nos.remove(p)"),
    ("path-traversal", "import pathlib\nreturn {'a': (pathlib.Path('/srv') / request.args['f']).read_text()}"),
    ("path-traversal", "f = request.args['f']\np = '/srv/' + f\nif not p.startswith('/srv/'):\n    flask.abort(404)\nreturn flask.send_file(p)"),
    ("xss", "return '<b>' + request.args['n'] + '</b>'"),
    ("xss", "return flask.make_response(f\"<p>{request.headers['X']}</p>\")"),
    ("xss", "from markupsafe import Markup\nreturn flask.render_template('x', a=Markup(request.args['a']))"),
    ("template-injection", "return flask.render_template_string('Hi ' + request.args['n'])"),
    ("open-redirect", "return redirect(request.args.get('next') or '/')"),
    ("open-redirect", "from urllib.parse import urlparse\nu = request.args['u']\nif urlparse(u).scheme != 'https':\n    return 'no'\nreturn redirect(u)"),
    ("unsafe-deserialization", "import pickle, base64\nreturn {'a': pickle.loads(base64.b64decode(request.cookies['c']))}"),
    ("unsafe-deserialization", "import yaml\nreturn {'a': yaml.load(request.data, Loader=yaml.Loader)}"),
    ("xpath-injection", "from lxml import etree\nt = etree.parse('a.xml')\nreturn {'n': len(t.xpath(\"//u[@n='\" + request.args['n'] + \"']\"))}"),
    ("ldap-injection", "import ldap3\nc = ldap3.Connection('h')\nc.search('dc=x', '(uid=' + request.args['u'] + ')')"),
    ("xxe", "from lxml import etree\np = etree.XMLParser(resolve_entities=True)\nreturn {'t': etree.fromstring(request.data, p).tag}"),
    ("ssrf", "import requests\nreturn {'a': requests.get(request.args['url']).status_code}"),
    ("ssrf", "import httpx\nh = request.args['host']\nhttpx.post(f'https://{h}/api')"),
    ("trust-boundary", "session['role'] = request.form['role']"),
    ("weak-random", "import random\nsession['token'] = str(random.random())"),
    ("weak-random", "import random, string\nreset_token = ''.join(random.choice(string.ascii_letters) for _ in range(20))\nreturn {'a': reset_token}"),
    ("weak-hash", "import hashlib\npassword = request.form['p']\nreturn {'h': hashlib.md5(password.encode()).hexdigest()}"),
    ("weak-cipher", "from Crypto.Cipher import DES\nreturn {'c': DES.new(b'12345678').encrypt(b'x')}"),
    ("insecure-cookie", "r = flask.make_response('x')\nr.set_cookie('sid', '1', secure=False)\nreturn r"),
]  # fmt: skip

SAFE = [
    ("sql-injection", "db.execute('select ?', (request.args['q'],))"),
    ("sql-injection", "db.execute(f\"select {int(request.args['q'])}\")"),
    ("sql-injection", "q = request.args['q']\nif q not in ('name', 'age'):\n    flask.abort(400)\ndb.execute('select ' + q)"),
    ("sql-injection", "q = {'a': 'name', 'b': 'age'}[request.args['q']]\ndb.execute('select ' + q)"),
    ("sql-injection", "q = {'a': 'name'}.get(request.args['q'], 'age')\ndb.execute('select ' + q)"),
    ("sql-injection", "q = request.args['q']\nif not q.isalnum():\n    return 'no'\ndb.execute('select ' + q)"),
    ("sql-injection", "q = request.args['q']\nif not re.fullmatch(r'[a-z_]+', q):\n    return 'no'\ndb.execute('select ' + q)"),
    ("sql-injection", "q = request.args['q']\nm = re.match(r'^\\w+$', q)\nif m is None or not m:\n    return 'no'\ndb.execute('select ' + q)"),
    ("sql-injection", "values = ['a', request.args['q'], 'b']\nvalues.pop(1)\ndb.execute('select ' + values[1])"),
    ("sql-injection", "d = {'x': request.args['q'], 'y': 'name'}\ndb.execute('select ' + d['y'])"),
    ("sql-injection", "q = request.args['q'] if 1 > 2 else 'name'\ndb.execute('select ' + q)"),
    ("sql-injection", "match request.args['q']:\n    case 'a' | 'b' as c:\n        db.execute('select ' + c)"),
    ("sql-injection", "kind = 'B'\nmatch kind:\n    case 'A':\n        q = request.args['q']\n    case _:\n        q = 'name'\ndb.execute('select ' + q)"),
    ("sql-injection", "q = request.args['q']\nq = 'name'\ndb.execute('select ' + q)"),
    ("sql-injection", "order = 'asc' if request.args['o'] == 'up' else 'desc'\ndb.execute('select 1 order by a ' + order)"),
    ("sql-injection", "q = request.args['q']\ndb.execute('select ' + str(len(q)))"),
    ("sql-injection", "if isinstance(q := request.json['q'], int):\n    db.execute(f'select {q}')"),
    ("command-injection", "subprocess.run(['ls', '--', request.args['d']])"),
    ("command-injection", "import shlex\nos.system('ls ' + shlex.quote(request.args['d']))"),
    ("code-injection", "import ast\nreturn {'a': ast.literal_eval(request.args['e'])}"),
    ("path-traversal", "from werkzeug.utils import secure_filename\nreturn flask.send_file('/srv/' + secure_filename(request.args['f']))"),
    ("path-traversal", "return flask.send_file('/srv/' + os.path.basename(request.args['f']))"),
    ("path-traversal", "p = os.path.realpath(os.path.join('/srv', request.args['f']))\nif not p.startswith('/srv/'):\n    flask.abort(404)\nreturn flask.send_file(p)"),
    ("path-traversal", "import pathlib\nroot = pathlib.Path('/srv')\np = (root / request.args['f']).resolve()\nif not p.is_relative_to(root):\n    flask.abort(404)\nreturn {'a': p.read_text()}"),
    ("path-traversal", "f = request.args['f']\nif '..' in f or f.startswith('/'):\n    return 'no'\nreturn flask.send_file('/srv/' + f)"),
    ("xss", "import html\nreturn '<b>' + html.escape(request.args['n']) + '</b>'"),
    ("xss", "return flask.render_template('x.html', n=request.args['n'])"),
    ("xss", "return {'n': request.args['n']}"),
    ("xss", "return flask.jsonify(request.args['n'])"),
    ("xss", "return flask.Response(request.args['n'], mimetype='text/plain')"),
    ("open-redirect", "return redirect('/users/' + request.args['id'])"),
    ("open-redirect", "return redirect(flask.url_for('x', id=request.args['id']))"),
    ("open-redirect", "from urllib.parse import urlparse\nu = request.args['u']\nif urlparse(u).netloc not in {'a.example', ''}:\n    return 'no'\nreturn redirect(u)"),
    ("open-redirect", "from django.utils.http import url_has_allowed_host_and_scheme\nu = request.args['u']\nif not url_has_allowed_host_and_scheme(u, None):\n    return 'no'\nreturn redirect(u)"),
    ("unsafe-deserialization", "import yaml\nreturn {'a': yaml.safe_load(request.data)}"),
    ("unsafe-deserialization", "import yaml\nreturn {'a': yaml.load(request.data, Loader=yaml.SafeLoader)}"),
    ("xpath-injection", "from lxml import etree\nt = etree.parse('a.xml')\nt.xpath('//u[@n=$n]', n=request.args['n'])"),
    ("ldap-injection", "import ldap3\nfrom ldap3.utils.conv import escape_filter_chars\nc = ldap3.Connection('h')\nc.search('dc=x', '(uid=' + escape_filter_chars(request.args['u']) + ')')"),
    ("xxe", "import xml.etree.ElementTree as ET\nreturn {'t': ET.fromstring(request.data).tag}"),
    ("ssrf", "import requests\nrequests.get('https://api.example.org/users/' + request.args['id'])"),
    ("weak-random", "import secrets\nsession['token'] = secrets.token_hex()"),
    ("weak-random", "import random\nsession['token'] = random.SystemRandom().getrandbits(64)"),
    ("weak-random", "import random\ncolour = random.choice(['red', 'blue'])\nreturn {'c': colour}"),
    ("weak-hash", "import hashlib\npassword = request.form['p']\nreturn {'h': hashlib.sha256(password.encode()).hexdigest()}"),
    ("weak-hash", "import hashlib\npassword = b'x'\nreturn {'h': hashlib.md5(password, usedforsecurity=False).hexdigest()}"),
    ("weak-hash", "import hashlib\nkey = hashlib.md5(b'path').hexdigest()\nreturn {'h': key}"),
    ("insecure-cookie", "r = flask.make_response('x')\nr.set_cookie('sid', '1', secure=True, httponly=True)\nreturn r"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "body"), VULNERABLE)
def test_an_untrusted_value_that_reaches_a_sink_is_found(rule: str, body: str) -> None:
    assert rule in found(handler(body))


@pytest.mark.parametrize(("rule", "body"), SAFE)
def test_a_value_that_was_made_safe_is_left_alone(rule: str, body: str) -> None:
    assert rule not in found(handler(body))


ELSEWHERE = [
    ("sql-injection", "from fastapi import FastAPI\napp = FastAPI()\n@app.get('/u/{name}')\nasync def u(name: str):\n    await db.execute(f'select {name}')"),
    ("command-injection", "import os\nfrom fastapi import FastAPI, Query\napp = FastAPI()\n@app.post('/u')\ndef u(name: str | None = Query(None)):\n    os.system(f'ping {name}')"),
    ("sql-injection", "from fastapi import APIRouter, Request\nrouter = APIRouter()\n@router.post('/u')\nasync def u(request: Request):\n    data = await request.json()\n    await db.execute('select ' + data['n'])"),
    ("xss", "from django.http import HttpResponse\ndef view(request):\n    return HttpResponse('Hi ' + request.GET.get('n'))"),
    ("sql-injection", "from django.db import connection\ndef view(request, pk):\n    with connection.cursor() as c:\n        c.execute('select ' + request.POST['n'])"),
    ("open-redirect", "from django.shortcuts import redirect\nfrom django.views import View\nclass V(View):\n    def get(self, request):\n        return redirect(request.GET['next'])"),
    ("path-traversal", "from django.views import View\nclass V(View):\n    def get(self, request, name):\n        return open('/srv/' + self.request.GET['f'])"),
    ("command-injection", "import os\nimport tornado.web\nclass H(tornado.web.RequestHandler):\n    def get(self):\n        os.system(self.get_argument('c'))"),
    ("code-injection", "from aiohttp import web\nasync def h(request):\n    data = await request.post()\n    eval(data['x'])"),
    ("command-injection", "import os, sys\ndef main():\n    os.system(sys.argv[1])"),
    ("command-injection", "import os\nos.system('ls ' + input())"),
    ("command-injection", "import os\nos.system('ls ' + os.environ['D'])"),
    ("unsafe-deserialization", "import pickle, socket\ndef serve():\n    s = socket.socket()\n    return pickle.loads(s.recv(1024))"),
    ("command-injection", "import argparse, subprocess\np = argparse.ArgumentParser()\nargs = p.parse_args()\nsubprocess.call(args.cmd, shell=True)"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "code"), ELSEWHERE)
def test_other_frameworks_and_other_sources_are_known(rule: str, code: str) -> None:
    assert rule in found(code)


def test_a_number_in_the_path_is_not_text() -> None:
    code = "from flask import Flask\napp = Flask(__name__)\n@app.route('/u/<int:n>/<int:uuid>/<name>')\ndef u(n, uuid, name):\n    db.execute(f'select {%s}')"
    assert "sql-injection" not in found(code % "n")
    assert "sql-injection" not in found(code % "uuid")
    assert "sql-injection" in found(code % "name")


@pytest.mark.parametrize(
    ("address", "names", "known"),
    [
        ("/f/<path:date>", ["date"], {}),
        ("/f/<string:uuid>", [], {}),
        ("/f/<path:date>/<path:path>", ["date", "path"], {}),
        ("/f/<id:int>", ["request", "id"], {"id"}),
        ("/f/<int:number>", ["number"], {"number"}),
        ("/f/<slug:int>", ["slug"], {"slug"}),
        (r"^(.*)/(\d+)$", ["req", "path", "n"], {"path", "n"}),
        (r"^(.*)/(\d+)$", ["req", "path"], {}),
        (r"^(?P<n>\d+)/(a|b)/(.+)$", ["request", "n"], {"n"}),
        ("(" * 20_000, ["request"], {}),
    ],
)
def test_what_a_route_lets_through(address: str, names: list[str], known: Collection[str]) -> None:
    patterns = _assign_groups_to_parameters(_parameter_patterns(address, names), names, None)
    assert set(patterns) == set(known)
    assert patterns.get("path", "^(?:.*)\\Z") == "^(?:.*)\\Z", "each group for its own parameter"


def test_a_text_with_brackets_is_no_route() -> None:
    code = "import re_path_like\nfrom flask import request\n\ndef remove(name):\n    db.execute(f'select {name}')\n\nmenu.add('Delete (all) items', remove)\npath('x/<int:n>', view)\nrows.append(('(a)', remove))\n"
    routes = [(route.address, route.name) for route in _parse_routes(ast.parse(code))]
    assert routes == [("x/<int:n>", "view"), ("(a)", "remove")]


def test_a_flow_is_followed_through_another_module_and_keeps_its_way() -> None:
    flows = analysed(
        handler("return store.find(request.args['n'])", "from pkg import store\n"),
        pkg____init__="",
        pkg__store="def find(name):\n    sql = 'select ' + name\n    return run(sql)\n\ndef run(sql):\n    return db.execute(sql)\n",
    ).flows
    (flow,) = [f for f in flows if f.rule == "sql-injection"]
    assert (flow.path, flow.line) == ("pkg/store.py", 6)
    assert [(s.path, s.line) for s in flow.steps] == [
        ("app.py", 8), ("app.py", 8), ("pkg/store.py", 2), ("pkg/store.py", 3), ("pkg/store.py", 6),
    ]  # fmt: skip


def test_a_helper_that_answers_yes_or_no_is_believed_by_what_it_checks() -> None:
    helper = "def fine(name):\n    return name in ('a', 'b')\n\ndef anything(name):\n    return len(name) > 3\n"
    code = handler(
        "n = request.args['n']\nif not {}(n):\n    return 'no'\ndb.execute('select ' + n)",
        "from checks import fine, anything\n",
    )
    assert "sql-injection" not in found(code.replace("{}", "fine"), checks=helper)
    assert "sql-injection" in found(code.replace("{}", "anything"), checks=helper)


LISTED = "keys = request.args.getlist('k')\n"
CHECKED = [
    ("name = request.args['k']\nif all(c.isalnum() or c in '_-' for c in name):", "name", True),
    (LISTED + "if all(k in ('a', 'b') for k in keys):", "','.join(keys)", True),
    (LISTED + "if any(k in ('a', 'b') for k in keys):", "','.join(keys)", False),
    (LISTED + "if not any(k not in ('a', 'b') for k in keys):", "','.join(keys)", True),
    (LISTED + "bad = [k for k in keys if k not in {'a', 'b'}]\nif not bad:", "','.join(keys)", True),
    (LISTED + "bad = [k for k in keys if k not in {'a', 'b'}]\nif bad:", "','.join(keys)", False),
    ("given = request.args\nif not set(given) - {'a', 'b'}:", "','.join(given)", True),
    ("given = request.args\nif set(given) <= {'a', 'b'}:", "','.join(given)", True),
    ("given = request.args\nif {'a', 'b'}.issuperset(given):", "','.join(k for k in given)", True),
    ("given = request.args\nif set(given).issubset({'a', 'b'}):", "given['a']", False),
    ("given = request.args\nfor k, v in given.items():\n  if k in {'a', 'b'}:", "k", True),
    ("given = request.args\nfor k, v in given.items():\n  if k in {'a', 'b'}:", "v", False),
    ("found = re.compile('[a-z]+').fullmatch(name := request.args['k'])\nif found is not None:", "name", True),
    ("found = re.compile('[a-z]+').fullmatch(name := request.args['k'])\nif found is None:", "name", False),
    ("parts = request.args['k'].split('.')\nif all(p.isalnum() for p in parts):", "request.args['k']", True),
]  # fmt: skip


@pytest.mark.parametrize(("test", "value", "harmless"), CHECKED)
def test_what_a_check_says_of_many_holds_for_each(test: str, value: str, harmless: bool) -> None:
    indented = "  " * (test.rpartition("\n")[2].startswith("  "))
    rules = found(handler(f"{test}\n{indented}  db.execute('select ' + {value})"))
    assert ("sql-injection" not in rules) == harmless


SIGNED = """\
    import hmac, pickle
    KEY = os.environ["KEY"].encode()
    def genuine(body, given):
        wanted = "sha256=" + hmac.new({key}, msg=body, digestmod="sha256").hexdigest()
        return hmac.compare_digest(wanted, given)
    @app.post("/x")
    def x():
        {test} genuine(request.data, request.headers["x"]):
            return ""
        return str(pickle.loads(request.data))
"""


def test_a_message_that_its_sender_signed_is_trusted() -> None:
    def signed(**holes: str) -> set[str]:
        return found(textwrap.dedent(FLASK) + textwrap.dedent(SIGNED.format(**holes)))

    assert "unsafe-deserialization" not in signed(key="KEY", test="if not")
    assert "unsafe-deserialization" in signed(key="KEY", test="if")
    assert "unsafe-deserialization" in signed(key="request.args['k'].encode()", test="if not")


def test_the_session_takes_what_is_about_nobody() -> None:
    assert "trust-boundary" in found(handler("session['user_id'] = request.args['u']"))
    assert "trust-boundary" in found(handler("session[request.args['k']] = '1'"))
    assert "trust-boundary" not in found(handler("session['language'] = request.args['l']"))


@pytest.mark.parametrize(
    ("dependency", "harmed"),
    [
        ("def rows(q: str):\n    yield Rows(q)", True),
        ("def rows(q: int):\n    return Rows(q)", False),
        ("def rows(q: Annotated[str, Query(pattern='^[a-z]+$')]):\n    return Rows('x')", False),
    ],
)
def test_a_dependency_gets_what_it_asks_of_the_request(dependency: str, harmed: bool) -> None:
    code = f"""\
from fastapi import Depends, FastAPI
app = FastAPI()
class Rows:
    def __init__(self, q):
        self.q = q
    def all(self):
        return db.execute("select " + self.q)
{dependency}
@app.get("/x")
def x(rows: Rows = Depends(rows)):
    return rows.all()
"""
    assert ("sql-injection" in found(code)) == harmed


def test_a_helper_that_raises_guards_what_follows() -> None:
    helper = "def check(name):\n    if not name.isalnum():\n        raise ValueError(name)\n    return name\n"
    assert "sql-injection" not in found(
        handler(
            "n = check(request.args['n'])\ndb.execute('select ' + n)", "from checks import check\n"
        ),
        checks=helper,
    )


def test_objects_keep_what_was_put_into_them() -> None:
    code = "class Box:\n    def __init__(self, q):\n        self.q = q\n        self.k = 'name'\n    def go(self):\n        db.execute('select ' + self.{})\n"
    assert "sql-injection" in found(handler("Box(request.args['q']).go()", code.replace("{}", "q")))
    assert "sql-injection" not in found(
        handler("Box(request.args['q']).go()", code.replace("{}", "k"))
    )


def test_a_value_from_a_request_weighs_more_than_a_program_s_own_argument() -> None:
    from regreen.taint.analysis import flow_confidence

    assert (
        flow_confidence("command-injection", "web", certain=True)
        > 0.8
        > flow_confidence("command-injection", "argv", certain=True)
    )


HOSTILE = [
    ("(" * 5000 + ")" * 5000, "nested"),
    ("x = " + "-" * 100_000 + "1", "nested"),
    ("def f(:\n", "syntax error"),
    ("\0", ""),
    ("x = '" + "a" * 3_000_000 + "'", "larger"),
    ("f'{" * 300 + "}'" * 300, ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), HOSTILE)
def test_what_cannot_be_read_is_said(text: str, reason: str) -> None:
    analysis = analyse_program(Program.from_files({"a.py": text}), ["a.py"])
    assert reason in analysis.unread["a.py"]


FRIENDLY_BUT_HUGE = [
    "x = " + " + ".join(["'a'"] * 20_000),
    "x = " + "[" * 80 + "]" * 80,
    "if a:\n  pass\n" + "elif b:\n  pass\n" * 500,
    "def f(x):\n" + "".join(f"{'  ' * n}if x:\n" for n in range(1, 80)) + "  " * 80 + "pass\n",
    "def f(x):\n" + "  x = f(x) + f(x)\n" * 300,
    "x = 'a' * 10 ** 9\ny = '%999999999d' % 1\nz = 2 ** 99999\n",
    "a = b = {}\n" + "a[1] = b\nb[2] = a\n" * 200,
    "class A(A): pass\nA().x()\n",
    "import app\napp.app.app\n",
    "\n".join(f"def f{n}(x):\n  return f{n + 1}(x) + f{n + 1}(x)" for n in range(60)) + "\nf0(1)\n",
]  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", FRIENDLY_BUT_HUGE, ids=range(len(FRIENDLY_BUT_HUGE)))
def test_large_and_circular_code_ends_in_time(text: str) -> None:
    analyse_program(Program.from_files({"app.py": text}), ["app.py"], seconds=20)


def test_f_strings_of_a_later_python_are_read() -> None:
    code = handler(
        "d = {'a': request.args['q']}\ndb.execute(f'select {d['a']} {'\\n'.join(['x'])}')"
    )
    assert "sql-injection" in found(code)


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("sql-injection", "n = request.args.get('page', 1, type=int)\ndb.execute(f'select {n}')"),
        ("open-redirect", "return redirect(request.url)"),
        ("open-redirect", "return redirect(request.path)"),
        ("xss", "import somewhere\nreturn somewhere.escape_html(request.args['n'])"),
        ("sql-injection", "import somewhere\nw = somewhere.wrap(request)\ndb.execute('select ' + w.name)"),
        ("path-traversal", "pattern = re.compile(r'[a-z]+')\nf = request.args['f']\nif not pattern.fullmatch(f):\n    return 'no'\nreturn flask.send_file(f)"),
    ],
)  # fmt: skip
def test_common_idioms_are_not_scolded(rule: str, body: str) -> None:
    assert rule not in found(handler(body))


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("path-traversal", "f = request.files['f']\nf.save('/srv/' + f.filename)"),
        ("sql-injection", "Item.objects.raw('select ' + request.args['q'])"),
        ("path-traversal", "pattern = re.compile(r'.+')\nf = request.args['f']\nif not pattern.fullmatch(f):\n    return 'no'\nreturn flask.send_file(f)"),
    ],
)  # fmt: skip
def test_common_mistakes_are_found(rule: str, body: str) -> None:
    assert rule in found(handler(body))


def test_a_model_s_number_is_not_text() -> None:
    code = (
        "from fastapi import FastAPI\nfrom pydantic import BaseModel\napp = FastAPI()\n"
        "class Item(BaseModel):\n    n: int\n    name: str\n"
        "@app.post('/i')\ndef i(item: Item):\n    db.execute(f'select {item.%s}')\n"
    )
    assert "sql-injection" in found(code % "name")
    assert "sql-injection" not in found(code % "n")


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("from flask import request", True),
        ("@router.get('/x')\ndef x(q: str): ...", True),
        ("class Page(LoginRequiredMixin, ListView): ...", True),
        ("app.add_url_rule('/x', view_func=x)", True),
        ("import sys\nmain(sys.argv)", True),
        ("from store import find\nrows = find('all')", False),
        ("class Requested:\n    target = 1", False),
    ],
)
def test_only_files_where_untrusted_values_enter_are_walked_for_others_sake(
    text: str, begins: bool
) -> None:
    assert may_begin(text.encode()) is begins


def test_every_row_of_the_sink_table_is_complete() -> None:
    table = resources.files("regreen.taint.models").joinpath("sinks.toml").read_text("utf-8")
    for row in tomllib.loads(table)["sinks"]:
        assert row["rule"] in {*TAINT_RULES, "secret"}
        assert row.keys() <= {"rule", "calls", "methods", "arguments", "when", "by_shell"}
        assert bool(row.get("calls")) != bool(row.get("methods"))
