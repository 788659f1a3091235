"""Security figures: OWASP's Python benchmark beside ruff S and bandit, secrets beside detect-secrets, noise, speed.

    python benchmarks/security.py owasp DIR [--masked] [--bandit PATH]
    python benchmarks/security.py secrets [--detect-secrets PYTHON]
    python benchmarks/security.py clean FILE.jsonl.gz
    python benchmarks/security.py names NAMES.txt
    python benchmarks/security.py workflows [--zizmor PATH] [FOLDER]

DIR is a checkout of OWASP-Benchmark/BenchmarkPython; the result is a markdown table on standard output. `--masked`
renames what could give a case away by its words (`MASKS`) in a copy before anything reads it. `workflows` counts the
files of the unit tests, or of FOLDER, in which something is found at the strength of posting.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from regreen.code.workflow_document import WorkflowError
from regreen.packages.popular_names import find_confusable_package
from regreen.reviewers.analyzers.workflows import WorkflowRisk, find_risks
from regreen.secrets.credential_detection import find_secrets
from regreen.taint.analysis import analyse_program, flow_confidence
from regreen.taint.program import Program
from tests.unit.credentials import negatives, positives
from tests.unit.test_workflow_advisories import HONEST, HOSTILE

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
# Every word of the benchmark that hints at its answer: helper modules and functions, the name of the dictionary that
# stands for a session, file names, messages, cookie names, session keys, local names, the class in each route.
MASKS = {
    r"\bmysession\b": "visitors", r"passwordFile": "entries", r"Sensitive value": "Value", r"hash_value=": "v=",
    r"hashed and stored": "taken", r"rememberMe": "mark", r"has been remembered with cookie": "is listed under",
    r"'userid": "'thing", r"someSecret|my_user_id": "value", r"saved in session": "kept", r"Cannot generate hash": "No",
    r"Welcome back": "Hello", r"\bcookie\b(?!=)": "label", r"\buser\b(?!=)": "person", r"\bhash\b(?!lib)": "made",
    r"\bresult\b": "r1", r"\binput\b": "given", r"\bparam\b": "p1", r"\bhelpers\b": "parts", r"\butils\b": "part1",
    r"ThingFactory": "part2", r"separate_request": "part3", r"db_sqlite": "part4", r"escape_for_html": "f1",
    r"get_parameter_list": "f2", r"get_parameter": "f3", r"commandOutput": "f4", r"request_wrapper": "C1",
    r"get_form_parameter": "f5", r"get_query_parameter": "f6", r"get_safe_value": "f7", r"TESTFILES_DIR": "D1",
    r"RES_DIR": "D2", r"(?:cmdi|codeinj|deserialization|hash|ldapi|pathtraver|redirect|securecookie|sqli|trustbound|weakrand|xpathi|xss|xxe)-\d\d": "group",
}  # fmt: skip


def owasp(folder: Path, bandit: str | None, *, masked: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        _compare(_masked(folder, Path(name)) if masked else folder, bandit)


def _masked(folder: Path, copy: Path) -> Path:
    """A copy of the benchmark without the words that hint at its answers."""
    for kind in ("*.py", "expectedresults-*.csv"):
        for path in folder.rglob(kind):
            text = path.read_text(encoding="utf-8")
            name = path.relative_to(folder).as_posix()
            if path.suffix == ".py":
                for word, neutral in MASKS.items():
                    text, name = re.sub(word, neutral, text), re.sub(word, neutral, name)
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_text(text, encoding="utf-8")
    return copy


def _compare(folder: Path, bandit: str | None) -> None:
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
    return Program.from_files(
        {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    )


def _flows(folder: Path, labels: Iterable[str], least: float) -> Hits:
    by_rule = {rule: kind for kind, (rule, _) in CLASSES.items()}
    hits: Hits = defaultdict(set)
    for flow in analyse_program(_program(folder), sorted(labels), seconds=3600).flows:
        if (
            flow.rule in by_rule
            and flow_confidence(flow.rule, flow.origin, certain=flow.certain) >= least
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
    flows = analyse_program(
        Program.from_files(files), [path for path in files if path.endswith(".py")], seconds=300
    ).flows
    found = [
        (flow.rule, files[flow.path].split("\n")[flow.line - 1].strip())
        for flow in flows
        if flow_confidence(flow.rule, flow.origin, certain=flow.certain) >= 0.8
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
    alike = [name for name in listed if find_confusable_package("pypi", name)]
    print(
        f"{len(alike)} of {len(listed)} names look like a popular one: {len(alike) / len(listed):.4f}"
    )


def workflows(zizmor: str | None, folder: Path | None) -> None:
    """Workflow files with a finding: ours at .8 and more, zizmor's of high severity, and those of high confidence."""
    sets = {"hostile": HOSTILE, "honest": HONEST}
    if folder:
        paths = [p for p in sorted(folder.rglob("*.y*ml")) if "jobs:" in p.read_text("utf-8")]
        sets = {folder.name: {str(p): p.read_text("utf-8") for p in paths}}
    for title, texts in sets.items():
        start = time.process_time()
        ours = sum(any(r.confidence >= 0.8 for r in _risks(text)) for text in texts.values())
        row = f"{title}: {len(texts)} files, Regreen {ours} ({time.process_time() - start:.1f} s)"
        if zizmor:
            high, sure, audits = _zizmor(zizmor, list(texts.values()))
            row += f", zizmor high {high}, high and confident {sure}; {dict(audits.most_common(8))}"
        print(row)


def _risks(text: str) -> tuple[WorkflowRisk, ...]:
    try:
        return find_risks(text)
    except WorkflowError:
        return ()


def _zizmor(tool: str, texts: list[str]) -> tuple[int, int, Counter[str]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / ".github/workflows"
        folder.mkdir(parents=True)
        for number, text in enumerate(texts):
            (folder / f"w{number:05}.yml").write_text(text, encoding="utf-8")
        command = [tool, "--offline", "--no-config", "--no-exit-codes", "--format", "json", "."]
        done = subprocess.run(command, cwd=name, capture_output=True, check=True)
    high, sure, audits = set[str](), set[str](), Counter[str]()
    for row in json.loads(done.stdout):
        graded = row["determinations"]
        if graded["severity"] == "High":
            file = re.findall(r"w\d{5}\.yml", json.dumps(row))[0]
            high.add(file)
            sure |= {file} if graded["confidence"] == "High" else set()
            audits[row["ident"]] += 1
    return len(high), len(sure), audits


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("owasp")
    one.add_argument("folder", type=Path)
    one.add_argument("--bandit")
    one.add_argument("--masked", action="store_true")
    commands.add_parser("secrets").add_argument("--detect-secrets")
    commands.add_parser("clean").add_argument("file", type=Path)
    commands.add_parser("names").add_argument("file", type=Path)
    files = commands.add_parser("workflows")
    files.add_argument("--zizmor")
    files.add_argument("folder", type=Path, nargs="?")
    args = parser.parse_args()
    match args.command:
        case "owasp":
            owasp(args.folder, args.bandit, masked=args.masked)
        case "secrets":
            secrets(args.detect_secrets)
        case "clean":
            clean(args.file)
        case "workflows":
            workflows(args.zizmor, args.folder)
        case _:
            names(args.file)


if __name__ == "__main__":
    main()
