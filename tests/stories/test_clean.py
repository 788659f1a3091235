"""What a user sees who types `regreen clean`: what is kept, what goes, and what never does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from regreen.adapters.git.repository import GitRepository
from regreen.adapters.sandbox.bubblewrap.bubblewrap_sandbox import BwrapSandbox
from regreen.adapters.sandbox.docker.docker_sandbox import DockerSandbox
from regreen.adapters.sandbox.retention import UsageLedger
from regreen.bisect.verdict_memory import SqliteVerdictMemory
from regreen.cli import cli
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.models import EnvSpec
from regreen.domain.private_folders import temporary_folder
from tests.contract.sandboxes import sandbox_or_skip
from tests.unit.repairs import GREEN, Repository


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a view of a repository, runs of a bisection, and what belongs to the operator."""
    place = tmp_path / "home"
    monkeypatch.setenv("REGREEN_HOME", str(place))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    repository = Repository(tmp_path / "repo")
    repository.commit("start", GREEN)
    GitRepository.open(repository.path)
    memory = SqliteVerdictMemory(place / "bisect.db")
    memory.append("verdict:1", "{}")
    memory.close()
    for name in ("regreen.sqlite", "regreen.env", "dashboard-token", "key.pem"):
        (place / name).write_text("the operator's")
    return place


def clean(*argv: str) -> tuple[int, dict[str, Any]]:
    words = ("clean", *argv, "--format", "json")
    done = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    return int(done.return_value or 0), json.loads(done.stdout)


def leave_behind() -> Path:
    """The temporary folder that a killed command leaves."""
    program = "from regreen.domain.private_folders import temporary_folder as made\nwith made('tree') as it: print(it, flush=True); input()"
    with subprocess.Popen(
        (sys.executable, "-c", program), stdin=-1, stdout=-1, text=True
    ) as killed:
        assert killed.stdout is not None
        folder = Path(killed.stdout.readline().strip())
        killed.kill()
    return next(path for path in (folder, *folder.parents) if path.name.startswith("regreen-"))


def kept(document: dict[str, Any]) -> dict[str, int]:
    return {row["kind"]: row["entries"] for row in document["caches"] if row["entries"]}


def test_clean_shows_what_is_kept_and_removes_nothing(home: Path) -> None:
    code, document = clean()
    assert (code, document["version"], kept(document)) == (0, 1, {"repositories": 1, "runs": 1})
    (views,) = [row for row in document["caches"] if row["kind"] == "repositories"]
    assert views["path"] == str(home / "views")
    assert views["bytes"] > 0
    assert views["oldest_days"] < 1
    assert kept(clean()[1]) == {"repositories": 1, "runs": 1}


def test_named_kinds_go_and_the_others_stay(home: Path) -> None:
    code, document = clean("runs", "--yes")
    assert (code, document["kept"]) == (0, [])
    assert document["removed"] == [{"kind": "runs", "entries": 1, "bytes": 12288}]
    assert kept(clean()[1]) == {"repositories": 1}
    assert not (home / "bisect.db").exists()


def test_all_goes_but_the_operators_database_keys_and_settings(home: Path, tmp_path: Path) -> None:
    old, young = leave_behind(), leave_behind()
    os.utime(old, (0, time.time() - 2 * 86400))
    code, document = clean("--all", "--yes")
    assert (code, document["kept"], kept(clean()[1])) == (0, [], {})
    assert (old.exists(), young.exists()) == (False, True)
    for name in ("regreen.sqlite", "regreen.env", "dashboard-token", "key.pem"):
        assert (home / name).read_text() == "the operator's"


def test_a_users_own_folder_stays_whatever_its_name_is(home: Path, tmp_path: Path) -> None:
    own = [tmp_path / name for name in ("regreen-my-feature", "regreen-tree-fixtures")]
    for folder in own:
        subprocess.run(["git", "init", "-q", folder], check=True)
        os.utime(folder, (0, time.time() - 3 * 86400))
    (copy := home / "bisect.db.my-copy").touch()
    document = clean("--all", "--yes")[1]
    with temporary_folder("tree"):  # which removes leftovers too
        assert "temporary" not in {row["kind"] for row in document["removed"] if row["entries"]}
    assert all((folder / ".git" / "HEAD").exists() for folder in own)
    assert copy.exists()


def test_a_home_among_the_leftovers_stays(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = home.rename(leave_behind() / "home")
    os.utime(place.parent, (0, time.time() - 3 * 86400))
    monkeypatch.setenv("REGREEN_HOME", str(place))
    clean("temporary", "--yes")
    assert (place / "key.pem").exists()


def test_leftovers_are_named_before_they_go(home: Path) -> None:
    os.utime(left := leave_behind(), (0, time.time() - 2 * 86400))
    done = CliRunner().invoke(cli, ("clean", "temporary", "--yes"), standalone_mode=False)
    assert f"leftover: {left}\n" in done.stderr
    assert not left.exists()


def test_without_a_terminal_nothing_goes_unasked(home: Path) -> None:
    with pytest.raises(UserError, match="--yes"):
        clean("--all")
    assert (home / "bisect.db").exists()


def test_caches_in_use_by_another_command_stay(home: Path, tmp_path: Path) -> None:
    """A gate that waits for its patch on standard input has opened nothing yet, and may at any time."""
    argv = (sys.executable, "-m", "regreen", "gate", "--repo", str(tmp_path / "repo"), "--base", "HEAD", "--patch", "-")  # fmt: skip
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
        view = next((home / "views").iterdir())
        os.utime(view, (0, 0))
        while view.stat().st_mtime == 0:  # the gate opens it before it reads
            time.sleep(0.05)
        try:
            with pytest.raises(OutsideError, match="another regreen command"):
                clean("--all", "--yes")
            assert clean()[0] == 0
        finally:
            waiting.kill()
    assert (home / "bisect.db").exists()
    assert clean("--all", "--yes")[0] == 0, "a killed command leaves no lock behind"


@pytest.mark.sandbox
@pytest.mark.parametrize("backend", ["docker", "bwrap"])
def test_prepared_environments_go_unless_a_box_uses_them(
    home: Path, backend: str, tmp_path: Path
) -> None:
    sandbox_or_skip(backend)
    place = home / "sandbox"
    sandbox = (
        DockerSandbox.connect(ledger=UsageLedger(place / "used"))
        if backend == "docker"
        else BwrapSandbox.connect(place)
    )
    env = sandbox.prepare(EnvSpec(setup=f"echo made > /env/made; : {tmp_path} {time.time()}"), ())
    with sandbox.open(env, ()):
        code, document = clean("environments", "--yes")
        assert code == 1
        assert any(env.key in row["name"] for row in document["kept"])
    code, document = clean("environments", "--yes")
    assert (code, document["kept"]) == (0, [])
    with pytest.raises(OutsideError, match="prepare it again"):
        sandbox.open(env, ())
