"""Planning workflows: names, matrices, environments, conditions, actions, and what stands in the way."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regreen.actions.job_plan import Files, JobPlan, PlannedStep
from regreen.actions.step_trial import make_step_trial
from regreen.actions.workflow import default_job_name, expand_matrix, plan_workflow
from regreen.code.workflow_document import WorkflowError, load_workflow
from regreen.domain.errors import UserError


def files(content: Mapping[str, str]) -> Files:
    return lambda path: content[path].encode() if path in content else None


def job(steps: str, extra: str = "", **content: str) -> JobPlan:
    text = f"on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n{extra}    steps:\n{steps}"
    return plan_workflow(
        text, files=files({name.replace("__", "/"): body for name, body in content.items()})
    )[0]


def step(lines: str, extra: str = "") -> PlannedStep:
    return job(lines, extra).steps[-1]


def test_on_is_a_key_and_numbers_are_numbers() -> None:
    assert load_workflow("on: push\nv: 3.10\no: 010\nx: 0o17\nyes: no\nn: ~\nt: True\nq: '3.10'\n") == {
        "on": "push", "v": 3.1, "o": 10.0, "x": 15.0, "yes": "no", "n": None, "t": True, "q": "3.10",
    }  # fmt: skip


def test_an_alias_repeats_its_anchor() -> None:
    assert load_workflow("a: &x {k: 1}\nb: *x\n") == {"a": {"k": 1.0}, "b": {"k": 1.0}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\na: 2\n", 2),
        ("a: &x {k: 1}\nb:\n  <<: *x\n", 3),
        ("a:\n  - [1\nb: 2\n", 3),
        ("a: b: c\n", 1),
        ("x:\n\ty: 1\n", 2),
        ("a: &a [*a]\n", 1),
    ],
)
def test_what_github_refuses_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(WorkflowError, match=f"line {line}:"):
        load_workflow(text)


def test_aliases_of_aliases_do_not_grow_without_end() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
    )
    with pytest.raises(WorkflowError, match="too large"):
        load_workflow(bomb)


def test_a_matrix_is_a_product_less_its_excludes_plus_its_includes() -> None:
    found = expand_matrix({
        "os": ["linux", "windows"], "py": [3.9, "3.10"],
        "exclude": [{"os": "windows", "py": "3.9"}],
        "include": [{"os": "linux", "extra": True}, {"os": "mac", "py": "3.11"}, {"color": "green"}],
    })  # fmt: skip
    assert found == [
        {"os": "linux", "py": 3.9, "extra": True, "color": "green"},
        {"os": "linux", "py": "3.10", "extra": True, "color": "green"},
        {"os": "windows", "py": "3.10", "color": "green"},
        {"os": "mac", "py": "3.11"},
    ]


def test_an_include_alone_makes_cells() -> None:
    assert expand_matrix({"include": [{"a": 1.0}, {"a": 2.0}]}) == [{"a": 1.0}, {"a": 2.0}]


def test_names_are_those_that_github_shows() -> None:
    text = """
on: push
jobs:
  plain: {runs-on: ubuntu-latest, strategy: {matrix: {os: [ubuntu-latest], py: ["3.10"]}}, steps: [{run: make}]}
  named: {name: "py${{ matrix.py }}", runs-on: ubuntu-latest, strategy: {matrix: {py: ["3.10", 3.11]}}, steps: [{run: make}]}
  static: {name: Tests, runs-on: ubuntu-latest, strategy: {matrix: {py: ["3.10"]}}, steps: [{run: make}]}
"""
    assert [one.name for one in plan_workflow(text)] == [
        "plain (ubuntu-latest, 3.10)",
        "py3.10",
        "py3.11",
        "Tests (3.10)",
    ]
    assert len(default_job_name("x", {"a": "y" * 200})) == 100


def test_the_two_kinds_of_bash_are_told_apart() -> None:
    assert step("      - run: make\n").shell == "bash -e {0}"
    assert (
        step("      - run: make\n        shell: bash\n").shell
        == "bash --noprofile --norc -eo pipefail {0}"
    )
    assert step("      - run: make\n", "    defaults: {run: {shell: bash}}\n").shell.endswith(
        "pipefail {0}"
    )
    assert step("      - run: print(1)\n        shell: python\n").shell == "python {0}"
    assert step("      - run: ls\n        shell: sh\n").shell == "sh -e {0}"
    assert step("      - run: ls\n        shell: bash -l {0}\n").shell == "bash -l {0}"


def test_the_nearest_environment_wins() -> None:
    text = """
on: push
env: {A: wf, B: wf, C: wf}
jobs:
  a:
    runs-on: ubuntu-latest
    env: {B: job, C: job, D: "${{ env.A }}-x"}
    steps: [{run: make, env: {C: step, E: "${{ env.B }}"}}]
"""
    assert plan_workflow(text)[0].steps[0].env == {
        "A": "wf",
        "B": "job",
        "C": "step",
        "D": "wf-x",
        "E": "job",
    }


def test_directories_come_from_the_step_or_the_defaults() -> None:
    assert (
        step(
            "      - run: make\n", "    defaults: {run: {working-directory: ./sub/}}\n"
        ).working_directory
        == "sub"
    )
    assert (
        step(
            "      - run: make\n        working-directory: ${{ github.workspace }}/x\n"
        ).working_directory
        == "x"
    )


def test_what_only_the_run_knows_stays() -> None:
    steps = "      - id: v\n        run: echo a=1 >> $GITHUB_OUTPUT\n      - run: use ${{ steps.v.outputs.a }} ${{ github.event_name }} ${{ secrets.T }}.\n"
    assert step(steps).run == "use ${{ steps.v.outputs.a }} push ."


def test_a_condition_that_is_false_leaves_the_step_out() -> None:
    planned = job(
        "      - if: github.event_name == 'schedule'\n        run: nightly\n      - run: make\n"
    )
    assert [one.kind for one in planned.steps] == ["skip", "run"]


def test_a_condition_on_the_repository_is_taken_to_have_held() -> None:
    assert (
        step(
            "      - if: github.repository == 'a/b' && github.actor != 'bot'\n        run: make\n"
        ).kind
        == "run"
    )


def test_a_condition_on_a_secret_does_not_hold() -> None:
    assert step("      - if: secrets.TOKEN != ''\n        run: make\n").kind == "skip"


def test_python_comes_from_the_action_or_its_file() -> None:
    use = "      - uses: actions/setup-python@v5\n        with: {python-version: %s}\n      - run: pytest\n"
    assert job(use % "'3.12'").python == "3.12"
    assert job(use % "3.x").python == "3"
    assert job(use % "'>=3.9 <3.13'").python == "3.12"
    planned = job(
        "      - uses: actions/setup-python@v5\n        with: {python-version-file: .python-version}\n      - run: pytest\n",
        **{".python-version": "3.11.4\n"},
    )
    assert planned.python == "3.11"


def test_a_cache_never_hits() -> None:
    steps = "      - {id: c, uses: actions/cache@v4, with: {path: x, key: y}}\n      - {if: \"steps.c.outputs.cache-hit != 'true'\", run: make deps}\n"
    assert step(steps).kind == "run"


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        ("      - uses: someone/unknown@v1\n      - run: pytest\n", "someone/unknown@v1"),
        (
            "      - uses: docker/setup-buildx-action@v3\n      - run: pytest\n",
            "docker/setup-buildx-action@v3",
        ),
        ("      - uses: docker://alpine\n      - run: pytest\n", "docker://alpine"),
        ("      - run: pytest ${{ needs.build.outputs.flags }}\n", "needs.build.outputs.flags"),
        ("      - run: pytest\n        shell: pwsh\n", "shell: pwsh"),
        ("      - uses: ./nowhere\n      - run: pytest\n", "./nowhere"),
    ],
)
def test_what_stands_in_the_way_is_named(steps: str, what: str) -> None:
    planned = job(steps)
    assert not planned.supported
    assert [one.what for one in planned.unsupported] == [what]
    assert planned.unsupported[0].why


def test_what_stands_behind_the_tests_is_no_matter() -> None:
    assert job("      - run: pytest\n      - uses: someone/unknown@v1\n").supported


@pytest.mark.parametrize(
    "runner", ["windows-latest", "macos-14", "ubuntu-24.04-arm", "self-hosted"]
)
def test_other_machines_are_refused_by_name(runner: str) -> None:
    planned = plan_workflow(
        f"on: push\njobs: {{a: {{runs-on: {runner}, steps: [{{run: make}}]}}}}"
    )[0]
    assert planned.unsupported[0].what == f"runs-on: {runner}"


def test_a_matrix_of_another_job_is_said() -> None:
    text = "on: push\njobs: {a: {runs-on: ubuntu-latest, strategy: {matrix: '${{ fromJSON(needs.x.outputs.m) }}'}, steps: [{run: make}]}}"
    assert plan_workflow(text)[0].unsupported[0].what == "matrix"


def test_services_are_named_and_those_no_box_can_have_are_refused() -> None:
    services = "{cache: {image: 'redis:7', ports: ['6380:6379']}, db: {image: 'mongo:8'}}"
    planned = job(
        "      - run: pytest\n        env: {PORT: \"${{ job.services.cache.ports['6379'] }}\"}\n",
        f"    services: {services}\n",
    )
    assert [one.image for one in planned.services] == ["redis:7", "mongo:8"]
    assert [one.what for one in planned.unsupported] == ["service db (mongo:8)"]
    assert planned.steps[0].env["PORT"] == "6380"


def test_services_of_a_job_in_a_container_are_refused_with_the_reason() -> None:
    more = "    container: python:3.12\n    services: {db: {image: 'postgres:16'}, cache: {image: 'redis:7'}}\n"
    planned = job("      - run: pytest\n", more)
    assert [one.why for one in planned.unsupported] == [
        "a job in a container of its own (python:3.12) finds them as the hosts db, cache; "
        "a box has no name but localhost, and the servers are this machine's, not that image's"
    ]


def test_a_job_with_services_gets_a_box_with_this_machines_programs() -> None:
    services = "    services: {cache: {image: 'redis:7'}}\n"
    assert make_step_trial(job("      - run: pytest\n", services)).host_programs
    assert not make_step_trial(job("      - run: pytest\n")).host_programs


ACTION = """
name: prepare
inputs: {python: {default: "3.11"}, extra: {required: false}}
outputs: {flag: {value: "${{ steps.f.outputs.flag }}"}}
runs:
  using: composite
  steps:
    - uses: actions/setup-python@v5
      with: {python-version: "${{ inputs.python }}"}
    - {id: f, shell: bash, run: "echo flag=1 >> $GITHUB_OUTPUT"}
    - {if: inputs.extra == 'yes', shell: bash, run: echo extra}
"""


def test_a_composite_action_is_inlined() -> None:
    steps = "      - {id: p, uses: ./.github/actions/prepare, with: {python: '3.12'}}\n      - run: pytest\n"
    planned = job(steps, **{".github__actions__prepare__action.yml": ACTION})
    assert planned.supported
    assert planned.python == "3.12"
    assert [one.kind for one in planned.steps] == ["setup", "run", "skip", "run"]
    assert planned.steps[1].id == "p.f"


def test_a_reusable_workflow_is_inlined() -> None:
    called = "on: {workflow_call: {inputs: {py: {type: string, default: '3.9'}}}}\njobs: {t: {name: 'T ${{ inputs.py }}', runs-on: ubuntu-latest, steps: [{run: pytest}]}}"
    text = "on: push\njobs: {a: {uses: ./.github/workflows/t.yml, with: {py: '3.13'}}, b: {uses: x/y/.github/workflows/t.yml@v1}}"
    first, second = plan_workflow(text, files=files({".github/workflows/t.yml": called}))
    assert (first.id, first.name, first.supported) == ("a/t", "a / T 3.13", True)
    assert second.unsupported[0].why == "a reusable workflow of another repository"


def test_an_artifact_is_made_by_the_job_that_makes_it() -> None:
    text = """
on: push
jobs:
  build:
    runs-on: ubuntu-latest
    steps: [{uses: actions/checkout@v4}, {run: python -m build}, {uses: actions/upload-artifact@v4, with: {name: dist, path: dist/}}]
  test:
    needs: build
    runs-on: ubuntu-latest
    steps: [{uses: actions/download-artifact@v4, with: {name: dist, path: dist}}, {run: pytest}]
"""
    test = plan_workflow(text, job="test")[0]
    assert test.supported
    assert "python -m build" in test.steps[0].run


def test_an_unknown_job_is_answered_with_those_there_are() -> None:
    with pytest.raises(WorkflowError, match="the file has a"):
        plan_workflow("on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: x}]}}", job="b")


_YAML = st.recursive(
    st.none()
    | st.booleans()
    | st.text(max_size=12)
    | st.sampled_from(
        [
            "${{ matrix.x }}",
            "${{ fromJSON('x') }}",
            "ubuntu-latest",
            "push",
            "${{ secrets.a && needs.b }}",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "on",
                    "jobs",
                    "a",
                    "runs-on",
                    "steps",
                    "run",
                    "uses",
                    "with",
                    "env",
                    "if",
                    "strategy",
                    "matrix",
                    "include",
                    "name",
                    "shell",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(_YAML, _YAML, _YAML)
def test_no_document_crashes_the_planner(matrix: object, steps: object, env: object) -> None:
    import json

    document = {
        "on": "push",
        "env": env,
        "jobs": {
            "a": {
                "runs-on": "ubuntu-latest",
                "strategy": {"matrix": matrix},
                "steps": steps,
                "env": env,
            }
        },
    }
    try:
        plan_workflow(json.dumps(document))
    except UserError:
        return
