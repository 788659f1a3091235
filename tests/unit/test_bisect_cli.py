"""The command line of bisections: what is refused, and with which words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from regreen.cli import main


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGREEN_HOME", str(tmp_path / "home"))
    path = tmp_path / "repo"
    path.mkdir()
    for words in (
        ["init", "-q"],
        ["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"],
    ):
        subprocess.run(["git", *words], cwd=path, check=True)
    return path


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--good", "nowhere", "--", "true"], 2, "nowhere"),
        (["--env", "x", "--", "true"], 2, "K=V"),
        (["--overlay", "/does/not/exist", "--", "true"], 2, "--overlay"),
        (["--overlay", f"{__file__}:/etc/x", "--", "true"], 2, "inside the checkout"),
        (["--overlay", f"{__file__}:a/.git/x", "--", "true"], 2, "inside the checkout"),
        (["--overlay", "", "--", "true"], 2, "--overlay"),
        (["--signature", "(", "--", "true"], 2, "regular expression"),
        (["--jobs", "0", "--", "true"], 2, "--jobs"),
        (["--confidence", "2", "--", "true"], 2, "--confidence"),
        (["--plot", "/does/not/exist/p.svg", "--", "true"], 2, "--plot"),
        (["--good", "HEAD", "--", "true"], 2, "same commit"),
        (["--find-fix", "--", "true"], 2, "--find-fix"),
        ([], 2, "COMMAND"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(
    words: list[str], code: int, said: str, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bisect", "--repo", str(repo), *words])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (code, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_no_repository_is_the_environments_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bisect", "--repo", str(tmp_path), "--", "true"])
    assert ended.value.code == 3
    assert "git repository" in capsys.readouterr().err


def test_a_home_that_cannot_be_written_is_answered_with_the_setting_to_change(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REGREEN_HOME", "/proc/nowhere")
    with pytest.raises(SystemExit) as ended:
        main(["bisect", "--repo", str(repo), "--", "true"])
    assert ended.value.code == 2
    assert "set REGREEN_HOME" in capsys.readouterr().err
