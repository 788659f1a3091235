"""Handlers in the style of each framework's documentation that let untrusted input do harm."""

from __future__ import annotations

CASES: list[tuple[str, str]] = [
    (
        "sql-injection",
        """\
import sqlite3
from flask import Blueprint, request, g, current_app
bp = Blueprint("users", __name__)
def get_db():
    if "db" not in g:
        g.db = sqlite3.connect(current_app.config["DATABASE"])
    return g.db
@bp.route("/find", methods=("GET", "POST"))
def find():
    if request.method == "POST":
        name = request.form["username"]
        user = get_db().execute("SELECT * FROM user WHERE username = '%s'" % (name,)).fetchone()
        return {"u": user["id"]}
    return {}
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import text
app = Flask(__name__)
db = SQLAlchemy(app)
@app.get("/orders/<status>")
def orders(status):
    sort = request.args.get("sort", "id")
    stmt = text(f"SELECT id FROM orders WHERE status = :s ORDER BY {sort}")
    return {"n": db.session.execute(stmt, {"s": status}).scalar()}
""",
    ),
    (
        "command-injection",
        """\
from flask import Flask, request
import subprocess
app = Flask(__name__)
@app.post("/ping")
def ping():
    payload = request.get_json(force=True)
    target = payload.get("host", "localhost").strip()
    out = subprocess.check_output(f"ping -c 1 {target}", shell=True, text=True)
    return {"out": out}
""",
    ),
    (
        "path-traversal",
        """\
import os
from flask import Flask, request, send_file
app = Flask(__name__)
UPLOADS = "/srv/uploads"
@app.route("/download")
def download():
    return send_file(os.path.join(UPLOADS, request.args["name"]), as_attachment=True)
""",
    ),
    (
        "path-traversal",
        """\
import os
from flask import Flask, request
app = Flask(__name__)
@app.post("/upload")
def upload():
    f = request.files["file"]
    f.save(os.path.join(app.config["UPLOAD_FOLDER"], f.filename))
    return {"ok": True}
""",
    ),
    (
        "template-injection",
        """\
from flask import Flask, request
from jinja2 import Environment
app = Flask(__name__)
env = Environment()
@app.route("/hello")
def hello():
    return env.from_string("Hello " + request.args.get("name", "")).render()
""",
    ),
    (
        "open-redirect",
        """\
from flask import Flask, request, redirect, url_for
app = Flask(__name__)
@app.route("/login", methods=["POST"])
def login():
    nxt = request.args.get("next")
    if not nxt:
        nxt = url_for("index")
    return redirect(nxt)
""",
    ),
    (
        "xss",
        """\
from flask import Flask, request, make_response
app = Flask(__name__)
@app.errorhandler(404)
def missing(error):
    resp = make_response("<h1>Not found: {}</h1>".format(request.path), 404)
    return resp
""",
    ),
    (
        "xss",
        """\
from flask import Flask
app = Flask(__name__)
@app.route("/user/<name>")
def user(name):
    return f"<h1>{name}</h1>"
""",
    ),
    (
        "unsafe-deserialization",
        """\
import pickle
from flask import Flask, request
app = Flask(__name__)
@app.put("/model")
def model():
    loaded = pickle.load(request.stream)
    return {"kind": type(loaded).__name__}
""",
    ),
    (
        "ssrf",
        """\
from flask import Flask, request
import urllib.request
app = Flask(__name__)
@app.post("/preview")
def preview():
    with urllib.request.urlopen(request.form["url"], timeout=5) as page:
        return {"size": len(page.read())}
""",
    ),
    (
        "ssrf",
        """\
from flask import Flask, request
import requests
app = Flask(__name__)
session = requests.Session()
@app.post("/hook")
def hook():
    body = request.get_json()
    session.post(body["callback"], json={"done": True}, timeout=3)
    return {}
""",
    ),
    (
        "code-injection",
        """\
from flask import Flask, request
app = Flask(__name__)
@app.route("/calc")
def calc():
    expr = request.args.get("expr", "1")
    return {"v": eval(expr, {"__builtins__": {}})}
""",
    ),
    (
        "xxe",
        """\
from flask import Flask, request
from lxml import etree
app = Flask(__name__)
@app.post("/xml")
def xml():
    parser = etree.XMLParser(resolve_entities=True, no_network=False)
    doc = etree.fromstring(request.get_data(), parser=parser)
    return {"root": doc.tag}
""",
    ),
    (
        "xxe",
        """\
import xml.sax
from xml.sax import handler
import io
from flask import Flask, request
app = Flask(__name__)
@app.post("/xml")
def parse():
    p = xml.sax.make_parser()
    p.setFeature(handler.feature_external_ges, True)
    p.setContentHandler(handler.ContentHandler())
    p.parse(io.BytesIO(request.data))
    return {}
""",
    ),
    (
        "ldap-injection",
        """\
import ldap
from flask import Flask, request
app = Flask(__name__)
@app.get("/who")
def who():
    con = ldap.initialize("ldap://directory")
    rows = con.search_s("ou=people,dc=x", ldap.SCOPE_SUBTREE, "(cn=%s)" % request.args["cn"])
    return {"n": len(rows)}
""",
    ),
    (
        "xpath-injection",
        """\
import xml.etree.ElementTree as ET
from flask import Flask, request
app = Flask(__name__)
TREE = ET.parse("users.xml")
@app.get("/who")
def who():
    found = TREE.find(f".//user[@name='{request.args['n']}']")
    return {"ok": found is not None}
""",
    ),
    (
        "log-injection",
        """\
import logging
from flask import Flask, request
app = Flask(__name__)
log = logging.getLogger(__name__)
@app.post("/login")
def login():
    log.warning("failed login for %s" % request.form["user"])
    return {}, 403
""",
    ),
    (
        "trust-boundary",
        """\
from flask import Flask, request, session
app = Flask(__name__)
@app.post("/as")
def act():
    session["user_id"] = request.form["user_id"]
    return {}
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
from flask.views import MethodView
import psycopg2
app = Flask(__name__)
class Items(MethodView):
    def __init__(self):
        self.conn = psycopg2.connect("dbname=x")
    def delete(self, item_id):
        with self.conn.cursor() as cur:
            cur.execute("DELETE FROM items WHERE id = " + item_id)
        return {}
app.add_url_rule("/items/<item_id>", view_func=Items.as_view("items"))
""",
    ),
    (
        "sql-injection",
        """\
from django.db import connection
from django.http import JsonResponse
def report(request):
    year = request.GET.get("year", "2020")
    with connection.cursor() as cursor:
        cursor.execute("SELECT SUM(total) FROM sales WHERE year = " + year)
        row = cursor.fetchone()
    return JsonResponse({"sum": row[0]})
""",
    ),
    (
        "sql-injection",
        """\
from django.shortcuts import render
from .models import Person
def people(request):
    last = request.POST["last"]
    rows = Person.objects.raw("SELECT * FROM app_person WHERE last_name = '%s'" % last)
    return render(request, "people.html", {"rows": rows})
""",
    ),
    (
        "sql-injection",
        """\
from django.views.generic import ListView
from .models import Entry
class Entries(ListView):
    model = Entry
    def get_queryset(self):
        order = self.request.GET.get("o")
        return Entry.objects.extra(select={"rank": "score * " + order})
""",
    ),
    (
        "xss",
        """\
from django.http import HttpResponse
def greet(request):
    return HttpResponse("Hello " + request.GET["name"])
""",
    ),
    (
        "xss",
        """\
from django.utils.safestring import mark_safe
from django.shortcuts import render
def page(request):
    note = mark_safe("<i>" + request.GET.get("note", "") + "</i>")
    return render(request, "page.html", {"note": note})
""",
    ),
    (
        "open-redirect",
        """\
from django.http import HttpResponseRedirect
def leave(request):
    return HttpResponseRedirect(request.GET.get("next", "/"))
""",
    ),
    (
        "open-redirect",
        """\
from django.shortcuts import redirect
from django.views import View
class Done(View):
    def post(self, request, *args, **kwargs):
        target = request.POST.get("return_to")
        return redirect(target)
""",
    ),
    (
        "path-traversal",
        """\
import os
from django.conf import settings
from django.http import FileResponse
def media(request, name):
    return FileResponse(open(os.path.join(settings.MEDIA_ROOT, request.GET["f"]), "rb"))
""",
    ),
    (
        "command-injection",
        """\
import os
from django.http import HttpResponse
from django.views.decorators.http import require_POST
@require_POST
def convert(request):
    name = request.POST.get("file")
    os.system("convert %s out.png" % name)
    return HttpResponse(status=204)
""",
    ),
    (
        "unsafe-deserialization",
        """\
import base64, pickle
from django.http import JsonResponse
def cart(request):
    raw = request.COOKIES.get("cart")
    items = pickle.loads(base64.b64decode(raw)) if raw else []
    return JsonResponse({"n": len(items)})
""",
    ),
    (
        "sql-injection",
        """\
from rest_framework.views import APIView
from rest_framework.response import Response
from django.db import connection
class Search(APIView):
    def post(self, request):
        term = request.data["term"]
        with connection.cursor() as c:
            c.execute(f"SELECT id FROM docs WHERE body LIKE '%{term}%'")
            return Response(c.fetchall())
""",
    ),
    (
        "sql-injection",
        """\
from typing import Annotated
from fastapi import FastAPI, Query
import sqlite3
app = FastAPI()
@app.get("/items/")
async def items(q: Annotated[str, Query(max_length=50)]):
    con = sqlite3.connect("x.db")
    return con.execute(f"select * from items where name = '{q}'").fetchall()
""",
    ),
    (
        "sql-injection",
        """\
from fastapi import APIRouter, Depends
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession
from .db import get_session
router = APIRouter()
class Filter(BaseModel):
    field: str
    value: str
@router.post("/search")
async def search(f: Filter, session: AsyncSession = Depends(get_session)):
    result = await session.execute(text("select * from t where " + f.field + " = :v"), {"v": f.value})
    return result.all()
""",
    ),
    (
        "path-traversal",
        """\
from fastapi import FastAPI
from fastapi.responses import FileResponse
app = FastAPI()
@app.get("/files/{file_path:path}")
def get_file(file_path: str):
    return FileResponse("/srv/files/" + file_path)
""",
    ),
    (
        "path-traversal",
        """\
import shutil
from fastapi import FastAPI, UploadFile
app = FastAPI()
@app.post("/upload")
async def upload(file: UploadFile):
    with open(f"/data/{file.filename}", "wb") as out:
        shutil.copyfileobj(file.file, out)
    return {}
""",
    ),
    (
        "ssrf",
        """\
import httpx
from fastapi import FastAPI
app = FastAPI()
@app.get("/proxy")
async def proxy(url: str):
    async with httpx.AsyncClient() as client:
        r = await client.get(url)
    return r.status_code
""",
    ),
    (
        "xss",
        """\
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
app = FastAPI()
@app.get("/hi", response_class=HTMLResponse)
def hi(name: str = "you"):
    return f"<p>Hi {name}</p>"
""",
    ),
    (
        "open-redirect",
        """\
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
app = FastAPI()
@app.get("/go")
async def go(request: Request):
    return RedirectResponse(request.query_params["to"])
""",
    ),
    (
        "command-injection",
        """\
import asyncio
from fastapi import FastAPI, Form
app = FastAPI()
@app.post("/render")
async def render(name: str = Form()):
    proc = await asyncio.create_subprocess_shell("pandoc " + name)
    await proc.wait()
    return {}
""",
    ),
    (
        "unsafe-deserialization",
        """\
import yaml
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def load(request):
    body = await request.body()
    doc = yaml.load(body, Loader=yaml.UnsafeLoader)
    return JSONResponse({"n": len(doc)})
app = Starlette(routes=[Route("/load", load, methods=["POST"])])
""",
    ),
    (
        "sql-injection",
        """\
from aiohttp import web
import aiosqlite
routes = web.RouteTableDef()
@routes.get("/u/{name}")
async def handle(request):
    name = request.match_info["name"]
    async with aiosqlite.connect("x.db") as db:
        async with db.execute(f"select id from u where name='{name}'") as cur:
            row = await cur.fetchone()
    return web.json_response({"id": row[0]})
""",
    ),
    (
        "xss",
        """\
from aiohttp import web
async def handle(request):
    data = await request.post()
    return web.Response(text="<b>" + data["who"] + "</b>", content_type="text/html")
app = web.Application()
app.add_routes([web.post("/", handle)])
""",
    ),
    (
        "open-redirect",
        """\
from aiohttp import web
async def handle(request):
    raise web.HTTPFound(request.query["next"])
app = web.Application()
app.router.add_get("/", handle)
""",
    ),
    (
        "command-injection",
        """\
import tornado.web, os
class Main(tornado.web.RequestHandler):
    def get(self):
        self.write({"out": os.popen("cat " + self.get_argument("f")).read()})
""",
    ),
    (
        "xss",
        """\
import tornado.web
class Main(tornado.web.RequestHandler):
    def get(self):
        self.write("<h1>" + self.get_query_argument("t") + "</h1>")
""",
    ),
    (
        "path-traversal",
        """\
from bottle import route, request
@route("/read")
def read():
    with open("/var/data/" + request.query.name) as f:
        return {"t": f.read()}
""",
    ),
    (
        "command-injection",
        """\
import socket, subprocess
def serve():
    s = socket.socket()
    s.bind(("0.0.0.0", 9000)); s.listen()
    while True:
        conn, addr = s.accept()
        data = conn.recv(1024).decode()
        subprocess.Popen(data, shell=True)
""",
    ),
    (
        "code-injection",
        """\
import socketserver
class H(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().strip()
        self.wfile.write(str(eval(line)).encode())
""",
    ),
    (
        "unsafe-deserialization",
        """\
import socket, pickle
def client(host):
    with socket.create_connection((host, 5000)) as sock:
        buf = b""
        while chunk := sock.recv(4096):
            buf += chunk
    return pickle.loads(buf)
""",
    ),
    (
        "command-injection",
        """\
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlparse, parse_qs
import os
class H(BaseHTTPRequestHandler):
    def do_GET(self):
        query = parse_qs(urlparse(self.path).query)
        host = query.get("host", [""])[0]
        os.system("nslookup " + host)
        self.send_response(204)
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
import sqlite3
app = Flask(__name__)
class Repo:
    def __init__(self, con): self.con = con
    def by_email(self, email):
        return self._one("email", email)
    def _one(self, col, value):
        return self.con.execute("select * from u where %s = '%s'" % (col, value)).fetchone()
@app.get("/u")
def u():
    repo = Repo(sqlite3.connect("x"))
    return {"u": repo.by_email(request.args["email"])}
""",
    ),
    (
        "command-injection",
        """\
from flask import Flask, request
from functools import partial
import subprocess
app = Flask(__name__)
shell = partial(subprocess.run, shell=True, check=False)
@app.post("/x")
def x():
    shell("tar czf out.tgz " + " ".join(request.form.getlist("files")))
    return {}
""",
    ),
    (
        "sql-injection",
        """\
from dataclasses import dataclass
from flask import Flask, request
app = Flask(__name__)
@dataclass
class Query:
    table: str
    where: str
    def sql(self):
        return f"SELECT * FROM {self.table} WHERE {self.where}"
@app.get("/q")
def q():
    query = Query("t", request.args["w"])
    cur = app.db.cursor()
    cur.execute(query.sql())
    return {}
""",
    ),
    (
        "path-traversal",
        """\
import os, re
from flask import Flask, request, abort
app = Flask(__name__)
@app.get("/r")
def r():
    name = request.args["name"]
    if not re.match(r"[a-z0-9_]+", name):
        abort(400)
    with open(os.path.join("/srv/reports", name + ".txt")) as f:
        return {"t": f.read()}
""",
    ),
    (
        "path-traversal",
        """\
from flask import Flask, request
import zipfile, io, os
app = Flask(__name__)
@app.post("/unzip")
def unzip():
    z = zipfile.ZipFile(io.BytesIO(request.files["z"].read()))
    for info in z.infolist():
        with open(os.path.join("/srv/out", info.filename), "wb") as out:
            out.write(z.read(info))
    return {}
""",
    ),
    (
        "template-injection",
        """\
from jinja2 import Template
from fastapi import FastAPI, Body
app = FastAPI()
@app.post("/mail")
def mail(body: str = Body(...)):
    return {"text": Template(body).render(user="x")}
""",
    ),
    (
        "code-injection",
        """\
import importlib
from flask import Flask, request
app = Flask(__name__)
@app.get("/run")
def run():
    mod = importlib.import_module(request.args["plugin"])
    return {"r": mod.run()}
""",
    ),
    (
        "sql-injection",
        """\
from quart import Quart, request
import asyncpg
app = Quart(__name__)
@app.get("/x")
async def x():
    conn = await asyncpg.connect("postgres://")
    name = request.args.get("name")
    return {"r": await conn.fetch(f"SELECT * FROM t WHERE name = '{name}'")}
""",
    ),
    (
        "sql-injection",
        """\
import pymysql
from flask import request, Flask
app = Flask(__name__)
@app.route("/u")
def u():
    conn = pymysql.connect(host="h")
    cur = conn.cursor(pymysql.cursors.DictCursor)
    sql = "SELECT * FROM users WHERE id=" + request.args.get("id", "0")
    cur.execute(sql)
    return {"u": cur.fetchone()}
""",
    ),
    (
        "sql-injection",
        """\
from django.db.models.expressions import RawSQL
from django.http import JsonResponse
from .models import Book
def books(request):
    q = request.GET["q"]
    found = Book.objects.annotate(v=RawSQL("select count(*) from x where n = '" + q + "'", []))
    return JsonResponse({"n": found.count()})
""",
    ),
    (
        "command-injection",
        """\
from fastapi import APIRouter
from pydantic import BaseModel
import os
router = APIRouter()
class Job(BaseModel):
    name: str
    args: list[str] = []
@router.post("/jobs")
def create(job: Job):
    os.system("run " + job.name)
    return {}
""",
    ),
    (
        "command-injection",
        """\
import paramiko
from flask import Flask, request
app = Flask(__name__)
@app.post("/x")
def x():
    c = paramiko.SSHClient()
    c.connect("h")
    stdin, out, err = c.exec_command("ls " + request.form["d"])
    return {"o": out.read().decode()}
""",
    ),
    (
        "command-injection",
        """\
import sys, subprocess
from sanic import Sanic, json
app = Sanic("a")
@app.get("/ping")
async def ping(request):
    host = request.args.get("host")
    subprocess.call("ping " + host, shell=True)
    return json({})
""",
    ),
    (
        "path-traversal",
        """\
from pathlib import Path
from aiohttp import web
BASE = Path("/srv")
async def show(request):
    name = request.query.get("name", "")
    return web.FileResponse(BASE / name)
app = web.Application()
app.router.add_get("/", show)
""",
    ),
    (
        "path-traversal",
        """\
import os
from flask import Flask, request, send_file
app = Flask(__name__)
@app.get("/f")
def f():
    name = request.args["n"].replace("../", "")
    return send_file("/srv/" + name)
""",
    ),
    (
        "path-traversal",
        """\
import tarfile
from django.http import HttpResponse
def up(request):
    f = request.FILES["f"]
    with open("/uploads/" + f.name, "wb") as out:
        for c in f.chunks():
            out.write(c)
    return HttpResponse("ok")
""",
    ),
    (
        "ssrf",
        """\
import aiohttp
from aiohttp import web
async def fetch(request):
    data = await request.json()
    async with aiohttp.ClientSession() as session:
        async with session.get(data["url"]) as r:
            return web.Response(text=await r.text())
app = web.Application()
app.router.add_post("/", fetch)
""",
    ),
    (
        "ssrf",
        """\
from rest_framework.decorators import api_view
from rest_framework.response import Response
import requests
@api_view(["POST"])
def probe(request):
    r = requests.head(request.data.get("target"), timeout=2)
    return Response({"status": r.status_code})
""",
    ),
    (
        "xss",
        """\
from starlette.responses import HTMLResponse
from starlette.applications import Starlette
from starlette.routing import Route
async def home(request):
    name = request.query_params.get("name", "x")
    return HTMLResponse("<h1>" + name + "</h1>")
app = Starlette(routes=[Route("/", home)])
""",
    ),
    (
        "xss",
        """\
from flask import Flask, request, Markup
app = Flask(__name__)
@app.route("/c")
def c():
    rows = [Markup("<li>%s</li>" % x) for x in request.args.getlist("x")]
    return {"n": len(rows)}
""",
    ),
    (
        "open-redirect",
        """\
from flask import Flask, request, redirect
from urllib.parse import urlparse
app = Flask(__name__)
@app.route("/o")
def o():
    u = request.args["u"]
    if urlparse(u).path.startswith("/"):
        return redirect(u)
    return "no"
""",
    ),
    (
        "unsafe-deserialization",
        """\
import jsonpickle
from fastapi import FastAPI, Request
app = FastAPI()
@app.post("/p")
async def p(request: Request):
    body = await request.body()
    obj = jsonpickle.decode(body)
    return {"t": str(type(obj))}
""",
    ),
    (
        "template-injection",
        """\
from django.template import Template, Context
from django.http import HttpResponse
def t(request):
    return HttpResponse(Template(request.POST["tpl"]).render(Context({})))
""",
    ),
    (
        "code-injection",
        """\
from flask import Flask, request
app = Flask(__name__)
OPS = {}
@app.post("/def")
def define():
    src = request.json["src"]
    ns = {}
    exec(compile("def f(x):\\n    return " + src, "<user>", "exec"), ns)
    return {"r": ns["f"](1)}
""",
    ),
    (
        "xpath-injection",
        """\
from lxml import etree
from django.http import JsonResponse
def f(request):
    tree = etree.parse("x.xml")
    q = "//book[author/text()='%s']" % request.GET.get("a")
    return JsonResponse({"n": len(tree.xpath(q))})
""",
    ),
    (
        "ldap-injection",
        """\
from ldap3 import Server, Connection
from fastapi import FastAPI
app = FastAPI()
@app.get("/who/{uid}")
def who(uid: str):
    with Connection(Server("h")) as c:
        c.search("ou=x", "(&(objectClass=person)(uid=" + uid + "))", attributes=["cn"])
        return {"n": len(c.entries)}
""",
    ),
    (
        "sql-injection",
        """\
from flask import Flask, request
import sqlite3
app = Flask(__name__)
def where(filters):
    return " AND ".join("%s='%s'" % kv for kv in filters.items())
@app.get("/s")
def s():
    con = sqlite3.connect("x")
    return {"r": con.execute("select * from t where " + where(request.args)).fetchall()}
""",
    ),
]
