"""Untrusted values in JavaScript and TypeScript: each pattern beside its safe twin, and what a change is blamed for."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.reviewers.analyzers.script_security import ScriptSecurity
from regreen.taint.script.flows import find_script_flows
from tests.unit.changes import Story

SAMPLES = sorted((Path(__file__).parents[1] / "data" / "script_flows").iterdir())


@pytest.mark.parametrize("sample", SAMPLES, ids=[s.name for s in SAMPLES])
def test_a_sample_has_the_flow_that_its_name_says(sample: Path) -> None:
    flows = find_script_flows(sample.name, sample.read_text())
    assert flows is not None
    expected = [sample.name.split(".")[2]] if ".bad." in sample.name else []
    assert [f.rule for f in flows] == expected


def test_hostile_nesting_is_refused() -> None:
    assert find_script_flows("a.js", "function f(req) { x = " + "(" * 20_000 + ")" * 20_000) is None
    assert find_script_flows("a.js", f"function f(req) {{ x = {'[' * 5000}{']' * 5000} }}") is None


def test_only_a_flow_that_the_change_brings_is_said(tmp_path: Path) -> None:
    old = "app.get('/a', (req, res) => res.redirect(req.query.to));\n"
    new = "app.get('/b', (req, res) => {\n  eval(req.body.code);\n});\n"
    story = Story(tmp_path / "repo")
    story.change({"src/app.js": old}, {"src/app.js": old + new})
    (claim,) = ScriptSecurity().run(story.context()).claims
    assert (claim.rule, claim.line) == ("taint/code-injection", 3)
    assert claim.confidence >= 0.8


APPS = sorted((Path(__file__).parents[1] / "data" / "script_apps").iterdir())


@pytest.mark.parametrize("app", APPS, ids=[a.name for a in APPS])
def test_values_are_followed_through_the_modules_of_an_application(
    app: Path, tmp_path: Path
) -> None:
    files = {
        str(p.relative_to(app)): p.read_text()
        for p in app.rglob("*")
        if p.is_file() and p.suffix != ".safe"
    }
    (safe,) = app.rglob("*.safe")
    at_fault = str(safe.relative_to(app)).removesuffix(".safe")
    rule = f"taint/{app.suffix.removeprefix('.')}"
    base = files | {at_fault: "// nothing yet\n"}
    story = Story(tmp_path / "repo")
    story.change(base, {at_fault: files[at_fault]})
    claims = ScriptSecurity().run(story.context()).claims
    assert {(c.rule, c.path) for c in claims} == {(rule, at_fault)}
    story.commit({at_fault: safe.read_text()})
    assert ScriptSecurity().run(story.context()).claims == ()
