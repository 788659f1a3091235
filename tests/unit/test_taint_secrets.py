"""Secrets by where a value goes, sessions by who was asked, uploads, and frameworks that were not known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from regreen.taint.analysis import analyse_program
from regreen.taint.program import Program
from tests.unit.test_taint_pairs import posted

PRODUCT = Path(__file__).parents[2] / "regreen"
FLASK = "import random, string, zipfile, hashlib\nfrom flask import Flask, request, session\napp = Flask(__name__)\n"
LETTERS = "''.join(random.choice(string.ascii_letters) for _ in range(20))"
# Names that stand in benchmarks: OWASP's helpers and messages, QuixBugs' programs, the public regressions' projects.
BENCHMARKS = re.compile(
    r"mysession|BenchmarkTest|ThingFactory|separate_request|escape_for_html|passwordFile|Sensitive value|rememberMe|"
    r"request_wrapper|get_form_parameter|TESTFILES_DIR|quixbugs|bitcount|breadth_first_search|bucketsort|"
    r"depth_first_search|detect_cycle|find_first_in_sorted|find_in_sorted|flatten_array|get_factors|is_valid_parenthesization|"
    r"hanoi|kheapsort|knapsack|kth_element|lcs_length|longest_common_subsequence|max_sublist_sum|"
    r"minimum_spanning_tree|next_palindrome|next_permutation|possible_change|powerset|reverse_linked_list|rpn_eval|"
    r"shortest_path_length|shunting_yard|incoming_nodes|subsequences|topological_ordering|to_base|wrap_text",
    re.IGNORECASE,
)


def handler(body: str) -> dict[str, str]:
    """A Flask handler with this body."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return {"app.py": f"{FLASK}@app.post('/x')\ndef x():\n{lines}"}


def test_no_benchmark_is_named_in_the_product() -> None:
    named = {
        (path.name, found.group())
        for path in PRODUCT.rglob("*.py")
        for found in BENCHMARKS.finditer(path.read_text(encoding="utf-8"))
    }
    assert named == set()


@pytest.mark.parametrize(
    "body",
    [
        "token_count = random.randint(1, 3)\nreturn {'n': token_count}",
        "session = random.Random(7)\nreturn {'n': session.random()}",
        "token = random.choice(['red', 'green'])\nreturn {'n': token}",
        "session['page'] = random.randint(1, 100)",
        "cookie = 'Sensitive value, passwordFile.txt'\nreturn {'n': hashlib.md5(b'x').hexdigest(), 'c': cookie}",
        "return {'etag': hashlib.md5(request.get_data()).hexdigest()}",
        "return {'agent': hashlib.md5(request.headers['User-Agent'].encode()).hexdigest()}",
    ],
)
def test_what_is_no_secret_is_left_alone(body: str) -> None:
    assert posted(handler(body)) == set()


@pytest.mark.parametrize(
    "body",
    [
        f"response = app.make_response('x')\nresponse.set_cookie('a', {LETTERS}, secure=True)\nreturn response",
        f"session['a'] = {LETTERS}",
        f"user = find(request.form['m'])\nuser.ticket = {LETTERS}\nfrom flask_mail import Message\nMessage('a', body=f'https://a.b/{{user.ticket}}')",
        f"token = {LETTERS}\nreturn {{'t': token}}",
        "code = ''\nfor _ in range(6):\n    code += str(random.randint(0, 9))\nsession['a'] = code",
        "session['a'] = random.randrange(10 ** 6)",
    ],
)
def test_a_predictable_value_is_found_where_it_becomes_a_secret(body: str) -> None:
    assert posted(handler(body)) == {"weak-random"}


def test_a_value_is_a_secret_when_a_later_request_is_compared_with_it() -> None:
    # Given a store that outlives the request, under a name that says nothing
    store = f"{FLASK}KNOWN = {{}}\n@app.post('/a')\ndef a():\n    KNOWN[request.form['n']] = str(random.random())\n"
    compare = "@app.post('/b')\ndef b():\n    return {'ok': 1} if KNOWN[request.form['n']] == request.cookies['v'] else {}\n"
    # Then only the comparison makes what is in it a secret
    assert posted({"app.py": store}) == set()
    assert posted({"app.py": store + compare}) == {"weak-random"}


def test_a_secret_is_told_once_however_many_places_it_reaches() -> None:
    code = f"import random, string\ndef make():\n    token = {LETTERS}\n    return token\ndef use(db):\n    token = make()\n    db.add(token=token)\n"
    flows = analyse_program(Program.from_files({"app.py": code}), ["app.py"]).flows
    assert [(flow.rule, flow.line) for flow in flows] == [("weak-random", 3)]


@pytest.mark.parametrize(
    ("body", "harmful"),
    [
        ("session['user'] = request.form['user']", True),
        ("if authenticate(request.form):\n    session['user'] = request.form['user']", False),
        ("if request.form['key'] == app.config['KEY']:\n    session['user'] = request.form['user']", False),
        ("if request.form['kind'] == 'login':\n    session['user'] = request.form['user']", True),
        ("found = people.find_one({'name': request.form['user']})\nif found is None:\n    return {}\nsession['user'] = request.form['user']", False),
        ("session['topic'] = request.form['topic']", False),
    ],
)  # fmt: skip
def test_a_session_holds_who_somebody_says_they_are_only_after_it_was_looked_up(
    body: str, harmful: bool
) -> None:
    assert (posted(handler(body)) == {"trust-boundary"}) is harmful


@pytest.mark.parametrize(
    ("body", "harmful"),
    [
        ("zipfile.ZipFile(request.files['a']).namelist()", False),
        ("zipfile.ZipFile(request.files['a'].stream).namelist()", False),
        ("zipfile.ZipFile(request.files['a'].filename).namelist()", True),
        ("request.files['a'].save('/srv/' + request.files['a'].filename)", True),
    ],
)
def test_an_upload_is_no_path_but_its_name_is(body: str, harmful: bool) -> None:
    assert (posted(handler(body)) == {"path-traversal"}) is harmful


FRAMEWORKS = {
    "falcon": "import falcon, os\nclass Files:\n    def on_get(self, req, resp, name):\n        os.system('ls ' + {0})\n",
    "cherrypy": "import cherrypy, os\nclass Files:\n    @cherrypy.expose\n    def index(self, name):\n        os.system('ls ' + {0})\n        return 'done'\n",
    "websocket": "from fastapi import FastAPI, WebSocket\nimport os\napp = FastAPI()\n@app.websocket('/w')\nasync def w(ws: WebSocket):\n    os.system('ls ' + {0})\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("framework", "untrusted", "harmless"),
    [
        ("falcon", "req.get_param('d')", "resp.status"),
        ("falcon", "req.media['d']", "'d'"),
        ("falcon", "name", "str(int(name))"),
        ("cherrypy", "name", "'d'"),
        ("cherrypy", "cherrypy.request.params['d']", "cherrypy.config['d']"),
        ("websocket", "(await ws.receive_json())['d']", "ws.application_state"),
    ],
)
def test_handlers_of_more_frameworks(framework: str, untrusted: str, harmless: str) -> None:
    code = FRAMEWORKS[framework]
    assert posted({"app.py": code.format(untrusted)}) == {"command-injection"}
    assert posted({"app.py": code.format(harmless)}) == set()
