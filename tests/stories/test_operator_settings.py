"""Where the operator's settings come from, and what no repository and no other user of the machine can bring in or read."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
from regreen_playground.routes.apps import new_key
from urllib3 import Retry

from tests.unit.changes import ENV
from tests.unit.changes import Story as Repository

REGREEN = str(Path(sys.executable).with_name("regreen"))


class Listener(ThreadingHTTPServer):
    """A server on this machine that remembers what reached it, and has an answer for nothing."""

    daemon_threads = True

    def __init__(self) -> None:
        heard = self.heard = list[str]()

        class Handler(BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                heard.append(self.rfile.readline().decode("latin-1").strip())
                self.wfile.write(
                    b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )
                self.close_connection = True

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def listening() -> Iterator[Listener]:
    with Listener() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def stranger() -> Iterator[Listener]:
    """The address that a repository names."""
    with listening() as server:
        yield server


@pytest.fixture
def world() -> Iterator[Listener]:
    """The way to everywhere else, as the user has set it: a proxy."""
    with listening() as server:
        yield server


def hostile(root: Path, url: str) -> Repository:
    """A repository that names its own model endpoint in every file that a program may look into."""
    repo = Repository(root)
    told = f"ANTHROPIC_BASE_URL={url}\nREGREEN_HOME={root}/kept\nREGREEN_DATABASE_URL=sqlite:///{root}/x.sqlite\nREGREEN_APP_ID=666\n"
    files = dict.fromkeys((".env", "regreen.env", ".regreen/regreen.env", ".flaskenv"), told)
    repo.change({"a.py": "def half(x):\n    return x / 2\n"}, files | {"a.py": "def half(x):\n    return x / 3\n"})  # fmt: skip
    return repo


def test_a_repository_cannot_say_where_the_key_is_sent(
    tmp_path: Path, stranger: Listener, world: Listener
) -> None:
    repo = hostile(tmp_path / "repo", stranger.url)
    env = ENV | {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-ant-SECRET-OF-THE-USER", "HTTPS_PROXY": world.url}  # fmt: skip
    subprocess.run([REGREEN, "review", "--base", "main"], cwd=repo.root, env=env, capture_output=True, check=True, timeout=250)  # fmt: skip
    assert stranger.heard == []
    assert set(world.heard) == {"CONNECT api.anthropic.com:443 HTTP/1.1"}
    assert not (repo.root / "kept").exists()


@dataclass(frozen=True)
class Served:
    """`regreen serve` with its settings in its home folder, begun in a folder that holds a stranger's `.env`."""

    home: Path
    folder: Path
    url: str
    log: Path


def settings_file(home: Path) -> Path:
    """What `regreen setup` leaves behind, of an App that nobody serves."""
    home.mkdir()
    key, file = home / "key.pem", home / "regreen.env"
    key.write_text(new_key()[0])
    file.write_text(f"REGREEN_APP_ID=1\nREGREEN_PRIVATE_KEY_PATH={key}\nREGREEN_WEBHOOK_SECRET=said-by-nobody\nREGREEN_GITHUB_API_URL=http://127.0.0.1:9\n")  # fmt: skip
    key.chmod(0o600)
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    top = tmp_path_factory.mktemp("served")
    home, folder, log = top / "home", top / "folder", top / "log"
    settings_file(home)
    folder.mkdir()
    (folder / ".env").write_text("REGREEN_DATABASE_URL=sqlite:////proc/nowhere\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [REGREEN, "serve", "--port", str(port)], cwd=folder, stdout=out, stderr=out, umask=0o022,
            env=ENV | {"REGREEN_HOME": str(home), "REGREEN_SANDBOX": "bwrap"},
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    session = requests.Session()
    session.mount(url, requests.adapters.HTTPAdapter(max_retries=Retry(connect=200, backoff_factor=0.2, backoff_max=1)))  # fmt: skip
    try:
        assert session.get(f"{url}/healthz", timeout=60).text == "ok\n", log.read_text()
        yield Served(home, folder, url, log)
    finally:
        process.terminate()
        ended = process.wait(timeout=60)
    assert ended == 0


def test_a_dot_env_beside_serve_is_not_read_and_one_line_says_where_it_belongs(
    served: Served,
) -> None:
    lines = [line for line in served.log.read_text().splitlines() if ".env is not read" in line]
    assert len(lines) == 1
    assert f"{served.folder}/.env is not read: move it to {served.home}/regreen.env" in lines[0]


def test_nobody_else_on_the_machine_reads_what_is_kept(served: Served) -> None:
    # a link of the box's own tree leads to what stands only in the box
    kept = [served.home, *(one for one in served.home.rglob("*") if not one.is_symlink())]
    assert {"regreen.sqlite", "dashboard-token"} <= {one.name for one in kept}
    modes = {str(one): oct(one.stat().st_mode) for one in kept if one.stat().st_mode & 0o077}
    assert modes == {}


def test_the_dashboard_of_a_registered_app_asks_for_the_token_that_was_made(served: Served) -> None:
    assert requests.get(served.url, headers={"Host": "localhost"}, timeout=30).status_code == 401
    token = (served.home / "dashboard-token").read_text()
    assert requests.get(served.url, auth=("me", token), timeout=30).status_code == 200
    assert str(served.home / "dashboard-token") in served.log.read_text()
    assert token not in served.log.read_text()


def regreen(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([REGREEN, *words], cwd=folder, env=ENV | env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)  # fmt: skip


@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("worker",), ("redeliver", "x"), ("setup",)])  # fmt: skip
def test_settings_that_others_can_read_are_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    settings_file(tmp_path / "home").chmod(0o640)
    done = regreen(tmp_path, *words, REGREEN_HOME=str(tmp_path / "home"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "can be read or changed by other users; `chmod 600` it" in done.stderr


@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("worker",), ("redeliver", "x")])
def test_a_file_that_is_named_is_read_and_cannot_move_the_home_folder(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    named = tmp_path / "named"
    named.write_text("REGREEN_APP_ID=one\n")
    done = regreen(tmp_path, *words, "--config", "named", REGREEN_HOME=str(tmp_path / "home"))
    assert (done.returncode, "REGREEN_APP_ID: Input should be a valid integer" in done.stderr) == (2, True)  # fmt: skip
    named.write_text("REGREEN_HOME=/elsewhere\n")
    done = regreen(tmp_path, *words, "--config", "named", HOME=str(tmp_path))
    assert (done.returncode, "set it in the environment" in done.stderr) == (2, True)


def test_doctor_reads_the_settings_that_serve_reads(tmp_path: Path) -> None:
    settings_file(tmp_path / "home")
    (tmp_path / ".env").write_text("REGREEN_APP_ID=666\n")
    done = regreen(tmp_path, "doctor", "--only", "github", REGREEN_HOME=str(tmp_path / "home"))
    assert "App 1\n" in done.stdout


@pytest.mark.parametrize("command", ["review", "bisect", "fix", "gate", "plan", "sandbox"])
def test_the_other_commands_read_no_settings_file_at_all(command: str) -> None:
    assert "--config" not in regreen(Path("/"), command, "--help").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_home_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    repo = hostile(tmp_path / "repo", "http://127.0.0.1:9")
    planted = tmp_path / "planted"
    (planted / "views").mkdir(parents=True)
    os.chown(planted / "views", 3002, 3002)
    words = ("review", "--base", "main", "--no-model")
    refused = regreen(repo.root, *words, REGREEN_HOME=str(planted))
    assert (refused.returncode, "belongs to another user" in refused.stderr) == (2, True)
    os.chown(planted, 3002, 3002)
    assert "belongs to another user" in regreen(repo.root, *words, REGREEN_HOME=str(planted)).stderr
    assert regreen(repo.root, *words, REGREEN_HOME=str(tmp_path / "own")).returncode == 0
    assert (tmp_path / "own" / "views").stat().st_mode & 0o777 == 0o700


def test_a_repository_that_a_commit_brought_along_is_not_believed(tmp_path: Path) -> None:
    """Git takes any folder with these files for a repository, its configuration for its owner's, and runs what that names."""
    outer, mark = Repository(tmp_path / "outer"), tmp_path / "ran"
    config = f'[core]\nrepositoryformatversion = 0\nbare = false\nworktree = ..\nfsmonitor = "touch {mark};false"\n[filter "x"]\nclean = touch {mark}; cat\n'
    planted = {"HEAD": "ref: refs/heads/main\n", "config": config, "objects/x": "", "refs/x": ""}
    outer.commit({"a.py": "x = 1\n", ".gitattributes": "*.py filter=x\n"})
    for name, text in planted.items():
        for place in ("lib", "lib/inner"):
            file = outer.root / place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    for place in ("lib", "lib/inner"):
        done = regreen(outer.root / place, "review", "--head", "WORKTREE", "--base", "HEAD", "--no-model", REGREEN_HOME=str(tmp_path / "home"))  # fmt: skip
        assert (done.returncode, "lies in another repository" in done.stderr) == (3, True)
    assert not mark.exists()


def test_the_module_imports_nothing_of_the_folder_it_is_run_in(tmp_path: Path) -> None:
    for name in ("click", "difflib", "json", "shlex", "regreen_evil", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the repository ran')\n")
    done = subprocess.run([sys.executable, "-m", "regreen", "--version"], cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path: Path) -> None:
    repo, temporary, views = hostile(tmp_path / "repo", "http://127.0.0.1:9"), tmp_path / "tmp", tmp_path / "home" / "views"  # fmt: skip
    ages = {temporary / "regreen-review-12345678": 2, temporary / "regreen-review-23456789": 0.5, temporary / "regreen-review-my_notes": 2, views / "old": 31, views / "new": 20}  # fmt: skip
    for folder, days in ages.items():
        folder.mkdir(parents=True)
        (folder / ("a.py" if "my" in folder.name else ".made-by-regreen")).touch()
        os.utime(folder, (time.time() - days * 86_400,) * 2)
    regreen(repo.root, "review", "--base", "main", "--no-model", REGREEN_HOME=str(tmp_path / "home"), TMPDIR=str(temporary))  # fmt: skip
    assert {folder.name for folder in ages if folder.exists()} == {
        "regreen-review-23456789",
        "regreen-review-my_notes",
        "new",
    }
