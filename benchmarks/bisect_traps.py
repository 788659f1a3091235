"""Real regressions with an unrelated failure put into their range, through `regreen bisect`.

    python -m benchmarks.bisect_traps CASES.json REPOSITORIES ID:KIND:WHERE... [-- FLAG...]

KIND is how the other failure shows (see `KINDS`), WHERE the commits it is put on: `before` the first bad commit,
`after` it, `over` both sides of it, or `spread` over a third of the range at random. The ends are spared. Right is the
first bad commit, or a set that holds it. CASES.json is described in `bisect_regressions.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bisect_regressions import REGREEN, is_right

KINDS = {
    "import": "raise ImportError('cannot import name frob from lib')",
    "syntax": "compile('def f(:', 'x.py', 'exec')",
    "assertion": "assert 1 == 2, 'another thing is wrong'",
    "hang": "while True: pass",
    "abort": "import os; os.abort()",
    "same_type": "raise {kind}('something quite different happened here')",
    "exit": "import sys; sys.exit(2)",
    "flood": "import sys\nwhile True: sys.stdout.write('x' * 65536)",
    "attribute": "import json; json.nothing_like_it",
    "other_test": "print('FAILED tests/test_other.py::test_other - KeyError: 3'); import sys; sys.exit(1)",
    "alike": "import sys; sys.exit(1)",
}
# In the box there is no git: a commit is known by the names and sizes of its files.
_PROBE = """
import hashlib, json, os
def _print():
    found = []
    for top, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name not in ("__pycache__", ".git")]
        for name in names:
            path = os.path.relpath(os.path.join(top, name), ".")
            if not os.path.islink(path) and path not in ("check_it.py", "trapped.json") and name[-4:] != ".pyc":
                found.append("%s %d" % (path, os.path.getsize(path)))
    return hashlib.sha1("\\n".join(sorted(found)).encode()).hexdigest()
if _print() in json.load(open("trapped.json")):
"""


def main() -> None:
    words, flags = sys.argv[1:], list[str]()
    if "--" in words:
        at = words.index("--")
        words, flags = words[:at], words[at + 1 :]
    listed, repositories, *specs = words
    cases = {case["id"]: case for case in json.loads(Path(listed).read_text())}
    right = 0
    for spec in specs:
        name, kind, where = spec.split(":")
        case = cases[name]
        repo = Path(repositories) / case["repo"].replace("/", "+") / "repo"
        started = time.monotonic()
        found, trapped = run(case, repo, Path(listed).parent / case["check"], (kind, where), flags)
        good = is_right(case, found, flags)
        right += good
        line = [spec, "right" if good else "WRONG", found["outcome"], len(found["credible_set"])]
        line += [f"{trapped} of {found['range']['commits']} trapped", found["tests"], "tests"]
        print(*line, f"{time.monotonic() - started:.0f}s", flush=True)
    print(f"{right} of {len(specs)} right")


def run(
    case: dict[str, Any], repo: Path, check: Path, trap: tuple[str, str], flags: list[str]
) -> tuple[dict[str, Any], int]:
    kind, where = trap
    chosen = commits_of(case, repo, where)
    spared = {fingerprint(repo, case["bad"]), fingerprint(repo, case["good"])}
    prints = [one for one in (fingerprint(repo, sha) for sha in chosen) if one not in spared]
    with tempfile.TemporaryDirectory() as folder:
        trapped = Path(folder, "trapped.json")
        trapped.write_text(json.dumps(prints))
        body = KINDS[kind].format(kind=(case["failure_at_bad"].split() or ["ValueError"])[0])
        head, text, rest = check.read_text().split('"""', 2)
        script = f'{head}"""{text}"""{_PROBE}' + "".join(f"    {row}\n" for row in body.split("\n"))
        Path(folder, "check_it.py").write_text(script + rest)
        command = [str(REGREEN), "bisect", "--repo", str(repo), "--timeout", "10"]
        command += ["--good", case["good"], "--bad", case["bad"], "--format", "json", *flags]
        command += ["--env", f"PYTHONPATH={case['python_path']}"]
        command += ["--overlay", f"{folder}/check_it.py", "--overlay", str(trapped)]
        if case["requirements"]:
            command += ["--setup", "pip install " + " ".join(case["requirements"])]
        environment = {**os.environ, "REGREEN_HOME": f"{folder}/home"}
        done = subprocess.run(
            [*command, "--", "python", "check_it.py"],
            check=False, capture_output=True, text=True, env=environment,
        )  # fmt: skip
    if not done.stdout:
        sys.exit(f"{case['id']}: {done.stderr[-500:]}")
    return json.loads(done.stdout), len(prints)


def commits_of(case: dict[str, Any], repo: Path, where: str) -> list[str]:
    listed = _git(repo, "rev-list", "--topo-order", "--reverse", case["bad"], f"^{case['good']}")
    commits = listed.split()
    at, width = commits.index(case["first_bad"]), max(1, len(commits) * 35 // 100)
    match where:
        case "before":
            return commits[max(0, at - width) : max(0, at - 1)]
        case "after":
            return commits[at + 1 : at + 1 + width]
        case "over":
            return commits[max(0, at - width // 2) : at + 1 + width // 2]
        case _:
            chance = random.Random(0)
            return [sha for sha in commits if chance.random() < 0.35]


def fingerprint(repo: Path, sha: str) -> str:
    rows = [row for row in _git(repo, "ls-tree", "-r", "-l", "-z", sha).split("\0") if row]
    files = [
        f"{path} {meta.split()[3]}"
        for meta, _, path in (row.partition("\t") for row in rows)
        if meta.startswith("100")
    ]
    return hashlib.sha1("\n".join(sorted(files)).encode()).hexdigest()  # noqa: S324 - a name


def _git(repo: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(repo), *words], check=True, capture_output=True, text=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
