"""eslint, prettier and biome of a small repository's own versions, installed in the box by npm from its lock."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from regreen.reviewers.analyzers.own_linters import OwnLinters
from regreen.reviewers.pipeline import review_change
from regreen.runs.trial import Trial
from tests.contract.sandboxes import sandbox_or_skip
from tests.unit.changes import Story

pytestmark = [pytest.mark.soak, pytest.mark.sandbox]

PACKAGE = {
    "name": "shop",
    "version": "1.0.0",
    "private": True,
    "devDependencies": {"eslint": "8.57.1", "prettier": "3.3.3", "@biomejs/biome": "1.9.4"},
}
ESLINT = {
    "root": True,
    "parserOptions": {"ecmaVersion": 2022, "sourceType": "module"},
    "rules": {"no-unused-vars": "error", "eqeqeq": "error"},
}
BIOME = {"formatter": {"enabled": False}, "organizeImports": {"enabled": False}}
CART = """export function total(items) {
  const old = 1;
  let sum = 0;
  for (const item of items) {
    if (item.price == null) continue;
    sum += item.price;
  }
  return sum;
}
"""


@pytest.fixture
def story(tmp_path: Path) -> Story:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    (tmp_path / "package.json").write_text(json.dumps(PACKAGE))
    locked = subprocess.run(
        ["npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if locked.returncode != 0:
        pytest.skip(f"npm reaches no registry: {locked.stderr[-200:]}")
    story = Story(tmp_path / "repo")
    base = {
        "package.json": json.dumps(PACKAGE),
        "package-lock.json": (tmp_path / "package-lock.json").read_text(),
        ".eslintrc.json": json.dumps(ESLINT),
        ".prettierrc.json": json.dumps({"singleQuote": True}),
        "biome.json": json.dumps(BIOME),
        "src/cart.js": CART,
        "src/odd.js": "export const x = {a: 1,\n   b: 2}\n",
        "src/fine.js": "export const y = { a: 1 };\n",
    }
    story.change(
        base,
        {
            # one new error of eslint, one of biome; the unused name and the loose comparison stood before
            "src/cart.js": CART.replace(
                "  return sum;", "  const fee = 2;\n  debugger;\n  return sum;"
            ),
            "src/odd.js": base["src/odd.js"] + "export const z = 3;\n",  # odd before, odd now
            "src/fine.js": "export const y = {a: 1};\n",  # fine before, odd now
        },
    )
    return story


def test_each_says_what_is_new_and_nothing_old(story: Story) -> None:
    job = story.job(tests=Trial(("true",), timeout=60), run_tests=True)
    result = review_change(
        job, git=story.git, sandbox=sandbox_or_skip("docker"), model=None,
        reviewers=(("style", OwnLinters()),),
    )  # fmt: skip
    said = [(w.finding.rule, w.finding.path, w.finding.line) for w in result.withheld]
    said += [(f.rule, f.path, f.line) for f in result.findings]
    unsaid = [s.reason for s in result.skipped if "linters" in s.reviewer]
    if any("could not be installed" in reason for reason in unsaid):
        pytest.skip(f"the box reaches no registry: {unsaid}")
    assert not unsaid
    assert sorted(said) == [
        ("own-biome/lint/suspicious/noDebugger", "src/cart.js", 9),
        ("own-eslint/no-unused-vars", "src/cart.js", 8),
        ("own-prettier/format", "src/fine.js", 1),
    ]
