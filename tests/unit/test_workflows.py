"""Workflow files: what they let a stranger do."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from regreen.code.workflow_document import WorkflowError, is_workflow
from regreen.reviewers.analyzers.workflows import find_risks
from tests.unit.changes import Story


def workflow(
    steps: str, on: str = "pull_request", job: str = "", top: str = "permissions: {contents: read}"
) -> str:
    indented = "\n".join(f"      {line}" for line in steps.split("\n"))
    return (
        f"on: {on}\n{top}\njobs:\n  a:\n    runs-on: ubuntu-latest\n{job}    steps:\n{indented}\n"
    )


def sure(text: str) -> set[str]:
    return {risk.rule for risk in find_risks(text) if risk.confidence >= 0.8}


@pytest.mark.parametrize(
    "expression",
    ["github.event.pull_request.title", "github.head_ref", "github.event.comment.body", "github.event.pull_request.head.ref",
     "github.event.issue.title || 'x'", "github.event.head_commit.message", "github.event.commits[0].message",
     "toJSON(github.event)", "format('{0}', github.event.review.body)"],
)  # fmt: skip
def test_a_stranger_s_text_in_a_script_is_found(expression: str) -> None:
    assert sure(workflow(f"- run: echo ${{{{ {expression} }}}}")) == {"script-injection"}
    assert "script-injection" in sure(
        workflow(
            f"- uses: actions/github-script@v7\n  with:\n    script: f('${{{{ {expression} }}}}')"
        )
    )


@pytest.mark.parametrize(
    "steps",
    ["- run: echo \"$TITLE\"\n  env:\n    TITLE: ${{ github.event.pull_request.title }}",
     "- run: echo ${{ github.sha }} ${{ github.event.pull_request.number }} ${{ github.repository }}",
     "- run: echo ${{ contains(github.event.pull_request.title, 'x') }}",
     "- run: echo ${{ github.head_ref == 'main' }}",
     "- if: github.event.comment.body == '/go'\n  run: echo go"],
)  # fmt: skip
def test_text_that_stays_data_is_left_alone(steps: str) -> None:
    assert sure(workflow(steps)) == set()


def test_the_line_of_the_expression_is_named() -> None:
    text = workflow("- run: |\n    echo one\n    echo ${{ github.head_ref }}")
    (risk,) = find_risks(text)
    assert text.split("\n")[risk.lines[0] - 1].strip() == "echo ${{ github.head_ref }}"


CHECKOUT = "- uses: actions/checkout@v4\n  with:\n    ref: ${{ github.event.pull_request.head.sha }}\n- run: make"


def test_a_privileged_event_must_not_check_out_the_head() -> None:
    assert "untrusted-checkout" in sure(workflow(CHECKOUT, on="pull_request_target"))
    assert "untrusted-checkout" in sure(
        workflow("- run: gh pr checkout 1\n- run: make", on="issue_comment")
    )
    assert "untrusted-checkout" not in sure(workflow(CHECKOUT, on="pull_request"))
    assert "untrusted-checkout" not in sure(
        workflow("- uses: actions/checkout@v4\n- run: make", on="pull_request_target")
    )


def test_moving_actions_broad_permissions_and_secrets_are_found() -> None:
    assert "unpinned-action" in sure(workflow("- uses: someone/action@main"))
    assert "unpinned-action" not in sure(
        workflow(f"- uses: someone/action@{'a' * 40}\n- uses: actions/checkout@v4\n- uses: ./local")
    )
    assert "broad-permissions" in sure(workflow("- run: make", top="permissions: write-all"))
    assert "secrets-exposed" in sure(
        workflow("- run: make\n  env:\n    ALL: ${{ toJSON(secrets) }}")
    )


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "a: &a [*a",
        "[" * 5000,
        "\t- x",
        "a: b: c",
        "!!python/object:os.system x\n: {",
        "{{ x }}: 1",
    ],
)
def test_what_is_no_workflow_raises_one_error_or_gives_nothing(text: str) -> None:
    with contextlib.suppress(WorkflowError):
        assert find_risks(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "jobs: 1",
        "jobs: {a: 1}",
        "on: [push]\njobs: {a: {steps: [1, null]}}",
        "- 1",
        "on:\njobs:\n",
    ],
)
def test_odd_shapes_are_taken_calmly(text: str) -> None:
    assert find_risks(text) == ()


def test_lines_of_over_4000_characters_are_named_and_the_others_searched(tmp_path: Path) -> None:
    unsafe = "- run: echo ${{ github.head_ref }}"
    story = Story(tmp_path / "repo")
    path = ".github/workflows/a.yml"
    story.change(
        {path: workflow("- run: make")}, {path: workflow(f"{unsafe} {'x' * 4_000}\n{unsafe}")}
    )
    review = story.review()
    assert [(f.rule, f.line) for f in review.findings] == [("workflows/script-injection", 8)]
    assert [(u.path, u.reason) for u in review.not_reviewed] == [
        (path, "lines of over 4000 characters: searched for known formats of secrets alone")
    ]


def test_only_workflows_and_actions_are_looked_at() -> None:
    assert is_workflow(".github/workflows/ci.yml")
    assert is_workflow("tools/action.yaml")
    assert not is_workflow("docs/ci.yml")
