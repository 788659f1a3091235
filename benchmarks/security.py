"""Security figures: OWASP's Python benchmark beside ruff S and bandit, secrets beside detect-secrets, noise, speed.

    python benchmarks/security.py owasp DIR [--bandit PATH]
    python benchmarks/security.py secrets [--detect-secrets PYTHON]
    python benchmarks/security.py clean FILE.jsonl.gz
    python benchmarks/security.py names NAMES.txt

DIR is a checkout of OWASP-Benchmark/BenchmarkPython; the result is a markdown table on standard output.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from regreen.codebase.packages import look_alike
from regreen.codebase.secret_patterns import find_secrets
from regreen.codebase.taint.analyse import analyse
from regreen.codebase.taint.program import Program
from regreen.codebase.taint.rules import confidence
from tests.unit.credentials import negatives, positives

CLASSES = {
    "cmdi": ("command-injection", "78"), "codeinj": ("code-injection", "94 95"), "deserialization": ("unsafe-deserialization", "502"),
    "hash": ("weak-hash", "327 328 916"), "ldapi": ("ldap-injection", "90"), "pathtraver": ("path-traversal", "22 73"),
    "redirect": ("open-redirect", "601"), "securecookie": ("insecure-cookie", "614"), "sqli": ("sql-injection", "89"),
    "trustbound": ("trust-boundary", "501"), "weakrand": ("weak-random", "330 338"), "xpathi": ("xpath-injection", "643"),
    "xss": ("xss", "79 80"), "xxe": ("xxe", "611"),
}  # fmt: skip
# ruff numbers its rules after bandit's; what each is about, by the benchmark's classes.
RUFF = {
    "S102": "codeinj", "S307": "codeinj", "S301": "deserialization", "S302": "deserialization", "S506": "deserialization",
    "S324": "hash", "S303": "hash", "S311": "weakrand", "S602": "cmdi", "S603": "cmdi", "S604": "cmdi", "S605": "cmdi", "S606": "cmdi",
    "S607": "cmdi", "S608": "sqli", "S701": "xss", "S702": "xss", "S703": "xss", "S704": "xss", "S313": "xxe", "S314": "xxe",
    "S315": "xxe", "S316": "xxe", "S317": "xxe", "S318": "xxe", "S319": "xxe", "S320": "xxe", "S310": "redirect",
}  # fmt: skip
Hits = dict[str, set[str]]


def owasp(folder: Path, bandit: str | None) -> None:
    labels = _labels(folder)
    ours, seconds = _ours(folder, labels)
    tools = {"Regreen": ours, "ruff S": _ruff(folder)}
    if bandit:
        tools["bandit"] = _bandit(folder, bandit)
    lines = sum((folder / path).read_text(encoding="utf-8").count("\n") for path in labels)
    print(f"{len(labels)} cases, {lines} lines, taint analysis {seconds:.1f} s of processor time\n")
    print(
        "| class | cases | "
        + " | ".join(f"{name}: recall | false alarms | score" for name in tools)
        + " |"
    )
    print("| --- | --- |" + " --- | --- | --- |" * len(tools))
    totals: dict[str, float] = defaultdict(float)
    for kind in sorted(CLASSES):
        paths = [path for path, (one, _) in labels.items() if one == kind]
        row = [f"{kind} | {len(paths)}"]
        for name, hits in tools.items():
            recall = _share(hits, kind, [p for p in paths if labels[p][1]])
            false = _share(hits, kind, [p for p in paths if not labels[p][1]])
            totals[name] += recall - false
            row.append(f"{recall:.2f} | {false:.2f} | {recall - false:+.2f}")
        print("| " + " | ".join(row) + " |")
    print(
        "| **mean** | |"
        + "".join(f" | | **{totals[name] / len(CLASSES):+.3f}** |" for name in tools)
    )


def _share(hits: Hits, kind: str, paths: list[str]) -> float:
    return sum(kind in hits.get(path, set()) for path in paths) / max(1, len(paths))


def _labels(folder: Path) -> dict[str, tuple[str, bool]]:
    (expected,) = folder.glob("expectedresults-*.csv")
    with expected.open(encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
    return {f"testcode/{row[0]}.py": (row[1], row[2] == "true") for row in rows}


def _program(folder: Path) -> Program:
    paths = {str(p.relative_to(folder)): p for p in folder.rglob("*.py")}
    return Program.of({name: path.read_text(encoding="utf-8") for name, path in paths.items()})


def _flows(folder: Path, labels: Iterable[str], least: float) -> Hits:
    by_rule = {rule: kind for kind, (rule, _) in CLASSES.items()}
    hits: Hits = defaultdict(set)
    for flow in analyse(_program(folder), sorted(labels), seconds=3600).flows:
        if (
            flow.rule in by_rule
            and confidence(flow.rule, flow.origin, certain=flow.certain) >= least
        ):
            hits[flow.path].add(by_rule[flow.rule])
    return hits


def _ours(folder: Path, labels: Iterable[str]) -> tuple[Hits, float]:
    start = time.process_time()
    hits = _flows(folder, labels, 0.8)
    return hits, time.process_time() - start


def _ruff(folder: Path) -> Hits:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "S", "--target-version", "py313",
               "--exit-zero", "--output-format", "json", "--no-cache", "testcode"]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    hits: Hits = defaultdict(set)
    for row in json.loads(done.stdout):
        kind = RUFF.get(row["code"] or "")
        if kind:
            hits["testcode/" + Path(row["filename"]).name].add(kind)
    return hits


def _bandit(folder: Path, bandit: str) -> Hits:
    done = subprocess.run(
        [bandit, "-q", "-r", "testcode", "-f", "json", "--exit-zero"],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    report = json.loads(done.stdout)
    print(f"bandit could not parse {len(report['errors'])} files\n")
    by_cwe = {cwe: kind for kind, (_, numbers) in CLASSES.items() for cwe in numbers.split()}
    hits: Hits = defaultdict(set)
    for row in report["results"]:
        kind = RUFF.get(row["test_id"].replace("B", "S", 1)) or by_cwe.get(
            str(row["issue_cwe"].get("id"))
        )
        if kind:
            hits["testcode/" + Path(row["filename"]).name].add(kind)
    return hits


def secrets(other: str | None) -> None:
    print(
        "| tool | real found | innocent found | precision | recall |\n| --- | --- | --- | --- | --- |"
    )
    real, innocent = list(positives(seed=2026, each=25)), list(negatives(seed=2026, each=25))
    tools = {
        "Regreen": [
            [any(s.confidence >= 0.8 for s in find_secrets(text, path)) for path, text in cases]
            for cases in (real, innocent)
        ]
    }
    if other:
        tools["detect-secrets"] = [_detect_secrets(other, cases) for cases in (real, innocent)]
    for name, (yes, wrong) in tools.items():
        precision = sum(yes) / max(1, sum(yes) + sum(wrong))
        print(
            f"| {name} | {sum(yes)} of {len(yes)} | {sum(wrong)} of {len(wrong)} | {precision:.3f} | {sum(yes) / len(yes):.3f} |"
        )


def _detect_secrets(tool: str, cases: list[tuple[str, str]]) -> list[bool]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, (path, text) in enumerate(cases):
            file = folder / str(number) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n", encoding="utf-8")
        done = subprocess.run(
            [tool, "scan", "--all-files", "."], cwd=folder, capture_output=True, check=True
        )
        found = {path.split("/")[0] for path in json.loads(done.stdout)["results"]}
    return [str(number) in found for number in range(len(cases))]


def clean(file: Path) -> None:
    """Findings that would be posted on changes that proved to be fine."""
    posted: Counter[str] = Counter()
    changes, lines, start = 0, 0, time.process_time()
    with gzip.open(file, "rt", encoding="utf-8") as rows:
        for row in rows:
            case = json.loads(row)
            changes += 1
            after = {f["path"]: f["after"] for f in case["files"] if f["after"] is not None}
            before = {f["path"]: f["before"] for f in case["files"] if f["before"] is not None}
            lines += sum(text.count("\n") for text in after.values())
            old = Counter(_keys(before))
            for key in _keys(after):
                old[key] -= 1
                posted[key[0]] += old[key] < 0
    spent = time.process_time() - start
    print(
        f"{changes} changes, {lines} lines, {spent:.1f} s of processor time: {sum(posted.values()) / changes:.2f} posted a change {dict(+posted)}"
    )


def _keys(files: dict[str, str]) -> list[tuple[str, str]]:
    flows = analyse(
        Program.of(files), [path for path in files if path.endswith(".py")], seconds=300
    ).flows
    found = [
        (flow.rule, files[flow.path].split("\n")[flow.line - 1].strip())
        for flow in flows
        if confidence(flow.rule, flow.origin, certain=flow.certain) >= 0.8
    ]
    found += [
        ("secret", s.masked)
        for path, text in files.items()
        for s in find_secrets(text, path)
        if s.confidence >= 0.8
    ]
    return found


def names(file: Path) -> None:
    """The share of existing, seldom used packages that would be called look-alikes."""
    listed = file.read_text(encoding="utf-8").split()
    alike = [name for name in listed if look_alike("pypi", name)]
    print(
        f"{len(alike)} of {len(listed)} names look like a popular one: {len(alike) / len(listed):.4f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("owasp")
    one.add_argument("folder", type=Path)
    one.add_argument("--bandit")
    commands.add_parser("secrets").add_argument("--detect-secrets")
    commands.add_parser("clean").add_argument("file", type=Path)
    commands.add_parser("names").add_argument("file", type=Path)
    args = parser.parse_args()
    match args.command:
        case "owasp":
            owasp(args.folder, args.bandit)
        case "secrets":
            secrets(args.detect_secrets)
        case "clean":
            clean(args.file)
        case _:
            names(args.file)


if __name__ == "__main__":
    main()
