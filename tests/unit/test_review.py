from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from regreen.code.diff import Change, FileChange, parse
from regreen.code.paths import is_test
from regreen.domain.models import DIMENSIONS
from regreen.domain.repo_config import RepoConfig, ReviewConfig
from regreen.reviewers.analyzers import correctness
from regreen.reviewers.analyzers.correctness import Ruff
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport, _ReadCache
from regreen.reviewers.document import (
    fence_block,
    format_markdown,
    format_text,
    make_document,
    make_sarif,
)
from regreen.reviewers.findings import is_well_formed, trim_suggestion_or_reject
from regreen.reviewers.model.change_listing import make_portions
from regreen.reviewers.pipeline import OUT_OF_TIME, ReviewJob, review_change
from regreen.reviewers.reviewer_table import ReviewerTable
from regreen.reviewers.scope import compile_glob, select_files
from tests.unit.changes import Files, Story

GOOD = "def f(x):\n    return x\n"
BAD = "def f(x):\n    return y\n"


@dataclass(frozen=True)
class Misbehaves:
    """A reviewer that does something bad instead of reading."""

    name: str

    def run(self, context: ReviewContext) -> ReviewerReport:
        match self.name:
            case "bug":
                raise KeyError(context.head)
            case "crash":
                ctypes.string_at(0)
            case "memory":
                bytearray(4 << 30)
            case "tests":
                raise RecursionError
            case "busy":
                while True:
                    pass
            case "deaf":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os._exit(0)
            case _:
                pass
        return ReviewerReport()


@dataclass(frozen=True)
class MisbehavesInTheParent(Misbehaves):
    """The same, for one that asks a model or runs tests."""

    def calls_out(self, context: ReviewContext) -> bool:
        return context.git is not None


@dataclass(frozen=True)
class DiesOfOneFile:
    """A reviewer that is killed by what one file of the repository holds, and reports each other file."""

    name: str = "fragile"

    def run(self, context: ReviewContext) -> ReviewerReport:
        paths = [f.path for f in context.files]
        if any("bomb" in (context.head_text(entry.path) or "") for entry in context.head_tree):
            os.kill(os.getpid(), signal.SIGKILL)
        return ReviewerReport(tuple(claim(path) for path in paths))


@dataclass(frozen=True)
class SaysWhatCannotBeRanked:
    """A reviewer one of whose claims breaks the ranking."""

    name: str = "odd"

    def run(self, context: ReviewContext) -> ReviewerReport:
        paths = [f.path for f in context.files if f.path == "bomb.py"]
        return ReviewerReport(tuple(replace(claim(path), confidence=None) for path in paths))  # type: ignore[arg-type]


def claim(path: str) -> Claim:
    return Claim("correctness", "fragile/any", "high", path, 1, 1, "Bad", "Very.", 0.95)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "repo")


def rules(story: Story, before: Files, after: Files) -> list[tuple[str, int, str]]:
    story.change(before, after)
    return [(f.path, f.line, f.rule) for f in story.review().findings]


def test_a_new_fault_is_said_where_it_stands(story: Story) -> None:
    assert rules(story, {"a.py": GOOD}, {"a.py": BAD}) == [("a.py", 2, "ruff/F821")]


IMPORTED = "from shop import server  # noqa\n\n\n"


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("import pdb\n\npdb.set_trace()\n", ["ruff/T100"]),
        ("def fail(error):\n    import pdb\n\n    pdb.post_mortem(error)\n", []),
        (IMPORTED + "def test_page(server):\n    assert server.page\n", []),
        (IMPORTED + "def server(page):\n    return page\n", ["ruff/F811"]),
    ],
)
def test_an_import_that_is_used_as_meant_is_no_fault(
    story: Story, added: str, said: list[str]
) -> None:
    assert [rule for *_, rule in rules(story, {"a.py": ""}, {"a.py": added})] == said


def test_a_file_of_many_redefinitions_is_parsed_once(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    find = correctness._find_arguments

    def count(text: str) -> set[tuple[str, int]]:
        parsed.append(text)
        return find(text)

    monkeypatch.setattr(correctness, "_find_arguments", count)
    story.change({"a.py": GOOD}, {"a.py": "def a():\n    return 1\n" * 20})
    Ruff().run(story.context())
    assert len(parsed) == 1


def test_a_reviewer_that_breaks_is_skipped_and_the_others_report(
    story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD})
    table: ReviewerTable = (
        *(("style", Misbehaves(how)) for how in ("bug", "crash", "memory", "deaf")),
        ("style", MisbehavesInTheParent("tests")),
        ("correctness", Ruff()),
    )
    found = review_change(story.job(), git=story.git, sandbox=None, model=None, reviewers=table)
    assert [f.rule for f in found.findings] == ["ruff/F821"]
    assert [(s.reviewer, s.reason) for s in found.skipped] == [
        ("bug", "failed: KeyError"),
        ("crash", "was ended by signal 11 (Segmentation fault)"),
        ("memory", "needed more than 400 MiB of memory"),
        ("deaf", "ended without an answer"),
        ("tests", "failed: RecursionError"),
    ]
    assert "raise KeyError(context.head)" in caplog.text
    assert "raise RecursionError" in caplog.text


def test_a_change_is_read_and_ranked_also_where_no_reviewer_had_time(story: Story) -> None:
    story.change({"shop.py": "x = 1\n"}, {"shop.py": "x = y\n"})
    table: ReviewerTable = (("correctness", Ruff()),)
    none = review_change(
        story.job(),
        git=story.git,
        sandbox=None,
        model=None,
        deadline=time.monotonic(),
        reviewers=table,
    )
    assert (none.findings, [s.reason for s in none.skipped]) == ((), [OUT_OF_TIME])
    assert none.scores["correctness"] is None
    whole = review_change(
        story.job(),
        git=story.git,
        sandbox=None,
        model=None,
        deadline=time.monotonic() + 1000,
        reviewers=table,
    )
    assert ([f.rule for f in whole.findings], whole.skipped) == (["ruff/F821"], ())


def test_what_is_not_done_within_the_cpu_time_of_a_review_is_skipped(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD})
    table: ReviewerTable = (
        ("correctness", Ruff()),
        *(("style", Misbehaves(how)) for how in ("busy", "busy", "late")),
    )
    job = replace(story.job(), cpu_seconds=2)
    found = review_change(job, git=story.git, sandbox=None, model=None, reviewers=table)
    assert [f.rule for f in found.findings] == ["ruff/F821"]
    over = "not started: the 2 s of CPU time for all of them are used up"
    assert ("late", over) in [(s.reviewer, s.reason) for s in found.skipped]


def test_a_review_without_cpu_time_says_so_and_ends(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD})
    found = review_change(
        replace(story.job(), cpu_seconds=0), git=story.git, sandbox=None, model=None
    )
    over = "not started: the 0 s of CPU time for all of them are used up"
    assert found.findings == ()
    assert ("security", over) in [(s.reviewer, s.reason) for s in found.skipped]


@pytest.mark.parametrize(("faults", "said"), [(3, 0), (2, 1)])
def test_a_file_full_of_faults_is_data_that_nobody_runs(
    story: Story, faults: int, said: int
) -> None:
    sample = "".join(f"def f{n}():\n    return a{n}\n\n\n" for n in range(faults))
    found = rules(story, {"data/s.py": sample}, {"data/s.py": sample + BAD})
    assert len([rule for _, _, rule in found if rule == "ruff/F821"]) == said


@pytest.mark.parametrize(
    ("manifest", "said"),
    [("", 0), ("requires-python = '>=2.7'", 0), ("requires-python = '>=3.9'", 1)],
)
def test_a_name_of_python_2_is_a_fault_only_where_that_is_not_meant(
    story: Story, manifest: str, said: int
) -> None:
    before: Files = {"a.py": GOOD, "pyproject.toml": f"[project]\nname = 'x'\n{manifest}\n"}
    assert len(rules(story, before, {"a.py": "def f(x):\n    return unicode(x)\n"})) == said
    story.commit({"a.py": "def f(x):\n    print x\n"})
    assert len(story.review().findings) == said


def test_two_analyzers_make_one_surer_finding(story: Story) -> None:
    sign = "\n\ndef greet(s):\n    return 'a' + s\n"  # what the type checker starts for
    story.change({"a.py": GOOD}, {"a.py": BAD + sign})
    (found,) = story.review(types=True).findings
    assert found.confidence > 0.9
    assert {e.kind for e in found.evidence} == {"analyzer", "vote"}


def test_what_was_there_before_is_never_said(story: Story) -> None:
    assert rules(story, {"a.py": BAD}, {"a.py": BAD + "\n\nz = 1\n"}) == []


def test_a_fault_that_only_moved_is_not_blamed_on_the_mover(story: Story) -> None:
    filler = "".join(f"x{n} = {n}\n" for n in range(40))
    assert (
        rules(
            story,
            {"a.py": BAD + filler, "b.py": "z = 1\n"},
            {"a.py": filler, "b.py": "z = 1\n" + BAD},
        )
        == []
    )


def test_a_second_copy_of_an_old_fault_is_new(story: Story) -> None:
    twice = BAD + "\n\ndef g(x):\n    return y\n"
    assert rules(story, {"a.py": BAD}, {"a.py": twice}) == [("a.py", 6, "ruff/F821")]


def test_a_clean_change_is_met_with_silence_and_scores(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": GOOD + "\n\ndef g(x):\n    return f(x)\n"})
    result = story.review()
    assert (result.findings, result.withheld) == ((), ())
    assert result.scores["correctness"] == 100
    assert result.scores["coverage"] is None
    assert "ruff" in result.score_notes["correctness"]


def test_a_score_names_what_it_rests_on_and_what_nothing_read(story: Story) -> None:
    before = {"a.py": "def f(a):\n    return a\n", "b.rb": "x = 1\n"}
    story.change(before, {"a.py": "def f(a):\n    return a + 1\n", "b.rb": "x = 2\n"})
    result = story.review()
    assert result.scores["security"] == 100
    note = result.score_notes["security"]
    assert note.startswith("no finding; 2 analyzers, no model: taint analysis and ruff's S rules on 1 Python file; ")  # fmt: skip
    assert note.endswith("; not read: b.rb")


def test_what_no_analyzer_reads_has_no_score(story: Story) -> None:
    story.change({"b.rb": "x = 1\n"}, {"b.rb": "x = 2\n"})
    result = story.review()
    assert (result.scores["correctness"], result.scores["security"]) == (None, None)
    assert result.score_notes["correctness"] == "only the syntax of 1 file, no model"
    assert result.score_notes["security"] == "only secrets looked for in 1 file, no model"


def test_what_no_model_read_is_said(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": GOOD + "\nz = 1\n"})
    (skipped,) = [s for s in story.review().skipped if s.reviewer == "model"]
    assert skipped.reason.startswith("not configured")


def test_a_file_that_does_not_parse_is_reported_as_not_read(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": "def f(:\n"})
    result = story.review()
    assert [(u.path, u.reason) for u in result.not_reviewed] == [
        ("a.py", "does not parse as Python")
    ]
    assert "Reviewed 0 of 1 file (1 only in part)" in result.summary


def test_a_file_too_large_to_read_is_named(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": GOOD + "z = 1\n" * 200_000})
    assert [u.path for u in story.review().not_reviewed] == ["a.py"]


def test_a_language_that_only_a_model_would_read_is_named(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.rb": "A = 1\n"})
    (skipped,) = [s for s in story.review().skipped if s.reviewer == "correctness"]
    assert "a.rb" in skipped.reason


@pytest.mark.parametrize(
    ("after", "reasons"),
    [
        ({"a.ts": "let x = 2;\n", "c.go": "package c\n", "d.py": GOOD}, ["not followed in Go"]),
        ({"a.test.ts": "let x = 2;\n", "d.py": GOOD}, []),
    ],
)  # fmt: skip
def test_languages_whose_data_flow_is_not_followed_are_named_once(
    story: Story, after: dict[str, str], reasons: list[str]
) -> None:
    story.change({"README.md": "x"}, after)
    skipped = story.review().skipped
    assert [s.reason for s in skipped if s.reviewer == "data flow"] == reasons


def test_the_same_fault_keeps_its_name_when_lines_move(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD})
    (before,) = story.review().findings
    story.commit({"a.py": "import os\n\nprint(os)\n\n\n" + BAD})
    (after,) = [f for f in story.review().findings if f.rule == "ruff/F821"]
    assert (before.line, after.line) == (2, 7)
    assert before.fingerprint == after.fingerprint


def test_only_wanted_dimensions_are_read(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD})
    config = RepoConfig(review=ReviewConfig(dimensions=("style",)))
    result = story.review(config)
    assert result.findings == ()
    assert {s.reviewer for s in result.skipped} >= {"correctness", "security", "coverage"}


def test_blocking_follows_the_configuration(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD})
    config = RepoConfig(review=ReviewConfig(blocking="high"))
    assert [f.blocking for f in story.review(config).findings] == [True]


def test_an_empty_change_is_no_error(story: Story) -> None:
    story.change({"a.py": GOOD}, {})
    result = story.review()
    assert (result.findings, result.summary) == ((), "Nothing changes between base and head.")


def test_hostile_names_and_bytes_are_only_names_and_bytes(story: Story) -> None:
    odd: Files = {
        "ünï ☃.py": BAD,
        "new\nline.py": BAD,
        "-rf.py": BAD,
        "pyrightconfig.json": '{"venvPath": "/"}',
        "ruff.toml": "nonsense [",
        "caf.py": b"x = '\xe9'\ny = undefined1\n",
        "nul.py": b"x = 1\0\n",
        "deep.py": "x = " + "(" * 3000 + ")" * 3000 + "\n",
    }
    story.change({"a.py": GOOD}, odd)
    result = story.review(types=True, max_comments=50)
    said = {f.path for f in result.findings}
    assert {"ünï ☃.py", "new\nline.py", "-rf.py"} <= said
    json.dumps(make_document(result)).encode("ascii")
    make_document(result)["summary"].encode("utf-8")
    format_text(result).encode("utf-8")
    format_markdown(result).encode("utf-8")


def test_every_comment_can_be_placed(story: Story) -> None:
    body = "".join(f"def f{n}():\n    return missing{n}\n\n\n" for n in range(30))
    story.change({"a.py": GOOD}, {"a.py": GOOD + body, "b.py": body})
    result, change = story.review(max_comments=100), story.context().change
    assert len(result.findings) == 60
    assert all(change.can_anchor(f.path, f.start_line, f.line, f.side) for f in result.findings)


def test_the_risk_is_never_below_the_worst_finding(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD})
    review = story.review()
    assert [f.severity for f in review.findings] == ["high"]
    assert review.risk == "high"


def test_a_file_that_kills_a_reviewer_costs_no_report_on_the_others(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD, "b.py": "x = 1\n", "bomb.py": "bomb = 1\n" * 2000})
    table: ReviewerTable = (("correctness", DiesOfOneFile()),)
    found = review_change(story.job(), git=story.git, sandbox=None, model=None, reviewers=table)
    assert {f.path for f in (*found.findings, *(w.finding for w in found.withheld))} >= {"b.py"}
    assert [(u.path, u.reason) for u in found.not_reviewed] == [
        (
            "bomb.py",
            "large, and fragile failed on the change with it: was killed, perhaps because memory ran out",
        )
    ]


def test_a_claim_that_breaks_the_ranking_costs_no_finding_in_other_files(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD, "bomb.py": "bomb = 1\n" * 2000})
    table: ReviewerTable = (("correctness", Ruff()), ("correctness", SaysWhatCannotBeRanked()))
    found = review_change(story.job(), git=story.git, sandbox=None, model=None, reviewers=table)
    assert [f.path for f in found.findings] == ["a.py"]
    assert [(u.path, u.reason) for u in found.not_reviewed] == [
        (
            "bomb.py",
            "large, and the findings could not be ranked with those in it: failed: TypeError",
        )
    ]


def test_a_huge_file_does_not_keep_the_others_from_being_read(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD, "data.py": "x = 1\n" * 200_000})
    review = story.review()
    assert [f.path for f in review.findings] == ["a.py"]
    assert [(u.path, u.reason) for u in review.not_reviewed] == [
        ("data.py", "could not be read: larger than 1 MiB, or no text")
    ]


def test_what_is_left_out_on_purpose_may_be_of_any_size(story: Story) -> None:
    rows = "x = 1\n" * 200_000
    story.change(
        {"a.py": GOOD}, {"a.py": BAD, "uv.lock": rows, "third_party/a.py": rows, "notes.md": rows}
    )
    review = story.review()
    assert {u.path: u.reason for u in review.not_reviewed} == {
        "notes.md": "prose",
        "uv.lock": "lock file",
        "third_party/a.py": "vendored",
    }


def test_the_analyzers_read_all_of_a_large_change(story: Story) -> None:
    files: Files = {f"m{n}.py": "x = 1\n" * 50 for n in range(99)}
    story.change({"a.py": GOOD}, {**files, "zz.py": BAD, "test_z.py": "x = 1\n" * 3100 + BAD})
    result = story.review()
    assert [u for u in result.not_reviewed if u.reason != "out of time"] == []
    assert sorted(f.path for f in result.findings) == ["test_z.py", "zz.py"]
    assert f"Reviewed {101 - len(result.not_reviewed)} of 101" in result.summary


def test_a_model_reads_the_riskiest_part_and_the_rest_is_named(story: Story) -> None:
    files: Files = {f"m{n}.py": "x = 1\n" for n in range(70)}
    story.change({"a.py": GOOD}, {**files, "auth.py": "x = 1\n"})
    portions, unread = make_portions(story.context(), None)
    read = {f.path for p in portions for f in p.files}
    assert (len(read), len(unread)) == (60, 11)
    assert "auth.py" in read
    assert not read & {u.path for u in unread}
    assert all("the analyzers read this file, a model only the 60" in u.reason for u in unread)


def test_what_there_is_no_room_to_keep_is_read_again(story: Story) -> None:
    story.change({"a.py": GOOD, "b.py": GOOD}, {"a.py": BAD, "b.py": None, "c.py": b"\0\1"})
    context = story.context()
    for room in (64 * 1024 * 1024, len(GOOD) + 1, 0):
        again = replace(context, _read=_ReadCache(room=room))
        again.read_ahead()
        assert [again.base_text(p) for p in ("a.py", "b.py", "c.py")] == [GOOD, GOOD, None]
        assert [again.head_text(p) for p in ("a.py", "b.py", "c.py")] == [BAD, None, None]


def test_a_huge_change_is_read_by_risk_and_the_rest_is_named() -> None:
    rows = "+x\n" * 30_000
    files = [changed(name, rows) for name in ("b.py", "c.py", "auth.py", "d.py")]
    scope = select_files(Change((*files, changed("e.py"))))
    assert [f.path for f in scope.files] == ["auth.py", "b.py", "c.py", "e.py"]
    assert [u.path for u in scope.unread] == ["d.py"]
    assert "the change is huge" in scope.unread[0].reason
    many = Change(tuple(changed(f"m{n}.py") for n in range(3100)))
    assert len(select_files(many).files) == 3000
    heavy = Change(tuple(changed(f"m{n}.py") for n in range(100)))
    assert len(select_files(heavy, sizes={f"m{n}.py": 1024 * 1024 for n in range(100)}).files) == 64


def test_a_patch_alone_is_read_and_says_what_it_lacks() -> None:
    diff = "diff --git a/n.py b/n.py\nnew file mode 100644\n--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,2 @@\n+def f(x):\n+    return y\n"
    result = review_change(ReviewJob(diff=diff), git=None, sandbox=None, model=None)
    assert [(f.path, f.line) for f in result.findings] == [("n.py", 2)]
    assert "repository" in {s.reviewer for s in result.skipped}


def test_the_document_has_the_interfaces_keys(story: Story) -> None:
    story.change({"a.py": GOOD}, {"a.py": BAD})
    data = make_document(story.review(max_comments=0))
    assert data["version"] == 1
    assert set(data) >= {
        "base", "head", "merge_base", "summary", "risk", "scores", "findings", "withheld", "not_reviewed",
        "skipped", "coverage", "cost", "seconds",
    }  # fmt: skip
    assert set(data["scores"]) == set(DIMENSIONS)
    (withheld,) = [w for w in data["withheld"] if w["reason"] == "budget"]
    assert set(withheld) == {
        "id", "fingerprint", "dimension", "rule", "severity", "blocking", "confidence", "path", "start_line",
        "line", "side", "title", "body", "suggestion", "evidence", "signals", "reason",
    }  # fmt: skip
    assert set(withheld["evidence"][0]) == {"kind", "command", "head", "base", "excerpt"}


def test_sarif_names_rule_place_and_fingerprint(story: Story) -> None:
    story.change({"a b.py": GOOD}, {"a b.py": BAD})
    (run,) = make_sarif(story.review())["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == "ruff/F821"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.py"
    assert [r["id"] for r in run["tool"]["driver"]["rules"]] == ["ruff/F821"]
    assert list(result["partialFingerprints"]) == ["regreen/v1"]


def test_a_fence_is_longer_than_any_inside() -> None:
    assert fence_block("a ```` b").startswith("`````\n")


def changed(path: str, body: str = "+x\n") -> FileChange:
    count = body.count("\n")
    (file,) = parse(f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{count} @@\n{body}").files
    return file


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("a.py", "+x\n", None),
        ("vendor/x/a.py", "+x\n", "vendored"),
        ("web/node_modules/x.js", "+x\n", "vendored"),
        ("package-lock.json", "+x\n", "lock file"),
        ("sub/poetry.lock", "+x\n", "lock file"),
        ("api_pb2.py", "+x\n", "generated"),
        ("dist/app.js", "+x\n", "generated"),
        ("app.min.js", "+x\n", "generated"),
        ("a.go", "+// Code generated by protoc. DO NOT EDIT.\n", "generated"),
        ("a.py", "+# @generated by tool\n", "generated"),
        ("a.js", "+" + "x" * 6000 + "\n", "minified"),
        ("README.md", "+x\n", "prose"),
        ("requirements.txt", "+x\n", None),
        ("odd/secret.txt", "+x\n", "prose"),
        ("gen/a.py", "+x\n", "ignored by the configuration"),
    ],
)
def test_what_nobody_wants_reviewed_is_left_out_with_its_reason(
    path: str, body: str, reason: str | None
) -> None:
    scope = select_files(parse("").__class__((changed(path, body),)), ignore=("gen/**",))
    assert [u.reason for u in scope.unread] == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("vendor/**", "vendor/a/b.py", True),
        ("vendor/**", "x/vendor/a.py", False),
        ("**/gen/*.py", "a/b/gen/x.py", True),
        ("**/gen/*.py", "gen/x.py", True),
        ("**/foo/bar.py", "x/foo/bar.py", True),
        ("*.py", "a/b.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a?.py", "ab.py", True),
        ("docs/", "docs/x/y.md", True),
        ("a.b", "axb", False),
    ],
)
def test_path_patterns(pattern: str, path: str, matches: bool) -> None:
    assert (compile_glob(pattern).fullmatch(path) is not None) == matches


@pytest.mark.parametrize(
    ("path", "expected"),
    [("tests/a.py", True), ("test_a.py", True), ("a_test.go", True), ("x.spec.ts", True), ("contest.py", False), ("latest/a.py", False)],
)  # fmt: skip
def test_what_counts_as_a_test(path: str, expected: bool) -> None:
    assert is_test(path) == expected


SOURCE = "def f():\n    a = 1\n    b = 2\n    return a\n"


@pytest.mark.parametrize(
    ("suggestion", "start", "line", "kept"),
    [
        ("    b = 3", 3, 3, "    b = 3"),
        ("    b = 3\n", 3, 3, "    b = 3"),
        ("    b = 2", 3, 3, None),
        ("    b = 3\n    return a", 3, 3, "    b = 3"),
        ("    a = 1\n    b = 3", 3, 3, "    b = 3"),
        ("    b = (", 3, 3, None),
        ("b = 3", 3, 3, None),
        ("\n".join(f"    x = {n}" for n in range(6)), 3, 3, None),
        ("    b = 3", 9, 9, None),
        ("", 3, 3, ""),
    ],
)
def test_a_suggestion_is_kept_only_when_it_can_be_committed(
    suggestion: str, start: int, line: int, kept: str | None
) -> None:
    body = "".join(f"+{row}\n" for row in SOURCE.splitlines())
    assert trim_suggestion_or_reject(suggestion, changed("a.py", body), SOURCE, start, line) == kept


@pytest.mark.parametrize(
    ("path", "content", "well"),
    [
        ("a.json", "{", False), ("a.json", "{}", True), ("a.toml", "a = ", False), ("a.yml", "a: [", False),
        ("a.yml", "a: [1]", True), ("a.py", "x =", False), ("a.bin", "\x00", True), ("a.py", "(" * 100_000, False),
    ],
)  # fmt: skip
def test_what_parses(path: str, content: str, well: bool) -> None:
    assert is_well_formed(path, content) == well
