"""What a GitHub Actions workflow or action lets a stranger do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ruamel.yaml.comments import CommentedMap

from regreen.codebase import workflow_traffic
from regreen.codebase.workflow_document import (
    SECRET,
    Job,
    Risk,
    flat,
    jobs_of,
    line_of,
    loaded,
    triggers_of,
)

_EXPRESSION = re.compile(r"\$\{\{((?:[^}]|\}(?!\})){1,2000})\}\}")
# What a stranger writes: titles, bodies, names of branches and labels, addresses of commits.
_HOSTILE = re.compile(
    r"github\.(?:head_ref\b|event\.(?:"
    r"(?:issue|pull_request|discussion)\.(?:title|body)\b|"
    r"(?:comment|review|review_comment)\.body\b|"
    r"pull_request\.head\.(?:ref|label|repo\.(?:default_branch|description|homepage))\b|"
    r"pages(?:\.\*|\[\d+\])\.page_name\b|"
    r"(?:commits(?:\.\*|\[\d+\])|head_commit)\.(?:message|author\.(?:email|name)|committer\.(?:email|name))\b|"
    r"workflow_run\.(?:head_branch|display_title|head_commit\.(?:message|author\.(?:email|name))|"
    r"head_repository\.description|pull_requests(?:\.\*|\[\d+\])\.head\.ref)\b))|"
    r"toJSON\(\s*github(?:\.event(?:\.(?:issue|pull_request|comment|review|head_commit|discussion))?)?\s*\)",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\[\s{0,4}['\"]([\w-]+)['\"]\s{0,4}\]")
_VARIABLE = re.compile(r"\benv\.(\w+)")
_OUTPUT = re.compile(r"\bneeds\.([\w-]+)\.outputs\.([\w-]+)")
_INPUTS = re.compile(r"\b(?:github\.event\.)?inputs\.[\w-]+", re.IGNORECASE)
_CHANGED_FILES = re.compile(
    r"steps\.[\w-]+\.outputs\.(?:[\w-]*files[\w-]*|head_ref|branch|title|body|comment)\b",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"(?:contains|startsWith|endsWith|hashFiles)\([^()]{0,300}\)|[\w.\[\]*']{1,200}\s{0,4}(?:==|!=)\s{0,4}(?:'[^']{0,200}'|[\w.]{1,200})|"
    r"(?:'[^']{0,200}')\s{0,4}(?:==|!=)\s{0,4}[\w.]{1,200}",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"github\.event\.pull_request\.(?:head\.(?:sha|ref|repo\.full_name)|merge_commit_sha|number)|github\.head_ref|refs/pull/|"
    r"github\.event\.workflow_run\.head_(?:sha|branch|commit\.id)|github\.event\.(?:issue\.)?number|steps\.[\w-]+\.outputs\.(?:head_)?(?:sha|ref)|"
    r"github\.event\.workflow_run\.head_repository\.full_name|github\.event\.pull_request\.head\.repo",
    re.IGNORECASE,
)
_CHECKS_OUT = re.compile(
    r"\bgh\s+pr\s+checkout\b|git\s+(?:fetch|pull|checkout)\b[^\n]{0,200}(?:pull/|head_ref|head\.(?:ref|sha))"
)
# A command that runs what lies in the checkout.
_RUNS = re.compile(
    r"(?:^|[\s;&|(])(?:make|npm|pnpm|yarn|bun|node|python3?|pip3?|uv|tox|pytest|cargo|go|mvn|gradle|bash|sh|source|\./[\w.-]+)\b"
)
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_PRIVILEGED = frozenset(
    {
        "pull_request_target",
        "workflow_run",
        "issue_comment",
        "issues",
        "discussion",
        "discussion_comment",
    }
)
_OWN = frozenset({"actions", "github"})


def risks(text: str) -> tuple[Risk, ...]:
    """The risks in a workflow or a composite action.

    Raises:
        NotYaml: it cannot be read.
    """
    document = loaded(text)
    if not isinstance(document, CommentedMap):
        return ()
    triggers = triggers_of(document)
    lines = text.split("\n")
    found: list[Risk] = []
    found += _permissions(document, triggers)
    for job in jobs_of(document):
        found += _of_job(job, document, triggers, lines)
    found += _unsafe_commands(lines)
    return tuple(found)


def _permissions(document: CommentedMap, triggers: dict[str, int]) -> Iterator[Risk]:
    places: list[tuple[str, CommentedMap]] = [("the workflow", document)]
    jobs = document.get("jobs")
    if isinstance(jobs, CommentedMap):
        places += [
            (f"job `{name}`", job) for name, job in jobs.items() if isinstance(job, CommentedMap)
        ]
    for name, place in places:
        if str(place.get("permissions")) == "write-all":
            yield Risk(
                "broad-permissions", name, (line_of(place, "permissions"),), f"Every permission for {name}",
                "`write-all` lets any step, and any action it uses, push code and publish. Name the few permissions that are needed.",
                "high", 0.86,
            )  # fmt: skip
    if (
        "permissions" not in document
        and triggers.keys() & _PRIVILEGED
        and isinstance(jobs, CommentedMap)
    ):
        bare = [
            job
            for job in jobs.values()
            if isinstance(job, CommentedMap) and "permissions" not in job
        ]
        if bare:
            trigger = next(t for t in triggers if t in _PRIVILEGED)
            yield Risk(
                "broad-permissions", "none given", (triggers[trigger],), f"`{trigger}` runs with the default token",
                "Say `permissions:` (for most jobs `contents: read`): the default may write.", "low", 0.55,
            )  # fmt: skip


def _of_job(
    job: Job, document: CommentedMap, triggers: dict[str, int], lines: list[str]
) -> Iterator[Risk]:
    for index, step in enumerate(job.steps):
        yield from _injections(job, step, document, triggers, lines)
        yield from _unpinned(job, step, triggers)
        yield from _checkouts(job, index, triggers)
        yield from _leaks(job, step, lines)
    yield from workflow_traffic.of_job(job, triggers, lines)
    yield from _runner(job, document, triggers)


def _injections(
    job: Job,
    step: CommentedMap,
    document: CommentedMap,
    triggers: dict[str, int],
    lines: list[str],
) -> Iterator[Risk]:
    given = step.get("with")
    scripts: list[tuple[str, CommentedMap, str]] = []
    if isinstance(step.get("run"), str):
        scripts.append((str(step["run"]), step, "run"))
    if isinstance(given, CommentedMap):
        scripts += [
            (str(given[key]), given, key)
            for key in ("script", "run", "command", "inlineScript")
            if isinstance(given.get(key), str)
        ]
    for script, holder, key in scripts:
        start = line_of(holder, key)
        for match in _EXPRESSION.finditer(script):
            line = _find(lines, start, match.group().strip())
            meant = _meant(match[1], job, step, document)
            yield from _injection(job, match[1], meant, line, triggers)


def _meant(
    expression: str, job: Job, step: CommentedMap, document: CommentedMap, depth: int = 0
) -> str:
    """An expression with what it names: `env.TITLE` and another job's outputs stand for what they were set to."""
    plain = _BRACKETS.sub(r".\1", expression)
    if depth > 4:
        return plain
    jobs = document.get("jobs")
    own = jobs.get(job.name) if isinstance(jobs, CommentedMap) else None
    found: list[str] = []
    for name in _VARIABLE.findall(plain):
        for holder in (step, own, document):
            env = holder.get("env") if isinstance(holder, CommentedMap) else None
            if isinstance(env, CommentedMap) and name in env:
                found.append(str(env[name]))
                break
    for needed, name in _OUTPUT.findall(plain):
        other = jobs.get(needed) if isinstance(jobs, CommentedMap) else None
        outputs = other.get("outputs") if isinstance(other, CommentedMap) else None
        if isinstance(outputs, CommentedMap) and name in outputs:
            found.append(str(outputs[name]))
    inner = [match for text in found for match in _EXPRESSION.findall(text)]
    return " ".join([plain, *(_meant(one, job, step, document, depth + 1) for one in inner)])


def _injection(
    job: Job, expression: str, meant: str, line: int, triggers: dict[str, int]
) -> Iterator[Risk]:
    bare = _HARMLESS.sub("", meant)
    hostile = _HOSTILE.search(bare)
    shown = expression.strip()[:80]
    mend = 'Put it into `env:` and use the variable in the script (`"$TITLE"`): then it is data.'
    if hostile is not None:
        privileged = bool(triggers.keys() & _PRIVILEGED)
        sure = 0.95 if privileged else 0.88 if "pull_request" in triggers else 0.82
        yield Risk(
            "script-injection", shown, (line,), f"Script injection: `{shown}` becomes part of the script",
            f"A stranger chooses this text, and the shell runs what is in it. {mend}",
            "critical" if privileged or job.has_secrets or job.writes else "high", sure,
        )  # fmt: skip
    elif _CHANGED_FILES.search(bare):
        yield Risk(
            "script-injection", shown, (line,), f"Script injection: `{shown}` becomes part of the script",
            f"File and branch names are chosen by whoever opens the pull request. {mend}", "medium", 0.7,
        )  # fmt: skip
    elif _INPUTS.search(bare):
        sure = 0.6 if job.name == "action" or "workflow_call" in triggers else 0.45
        yield Risk(
            "script-injection", shown, (line,), f"An input becomes part of the script: `{shown}`",
            f"Whoever starts the workflow, or the workflow that calls it, chooses this text. {mend}", "medium", sure,
        )  # fmt: skip


def _find(lines: list[str], start: int, text: str) -> int:
    first = text.split("\n", maxsplit=1)[0]
    for number in range(start, min(len(lines), start + 400) + 1):
        if first in lines[number - 1]:
            return number
    return start


def _unpinned(job: Job, step: CommentedMap, triggers: dict[str, int]) -> Iterator[Risk]:
    uses = step.get("uses")
    if not isinstance(uses, str) or uses.startswith("./"):
        return
    name, _, ref = uses.strip().partition("@")
    owner = name.partition("/")[0].lower()
    if uses.startswith("docker://"):
        if "@sha256:" not in uses:
            yield Risk(
                "unpinned-action",
                name,
                (line_of(step, "uses"),),
                f"The image of `{uses[:80]}` can change",
                "Pin it by digest (`@sha256:...`).",
                "low",
                0.5,
            )
        return
    if owner in _OWN or _SHA.match(ref) or "/" not in name:
        return
    moving = ref.lower() in {"main", "master", "develop", "dev", "latest", "trunk", "head", ""}
    trusted = job.has_secrets or job.writes or "pull_request_target" in triggers
    sure = 0.85 if moving else 0.72 if trusted and SECRET.search(flat(step)) else 0.5
    what = f"the branch `{ref}`" if moving else f"the tag `{ref}`"
    yield Risk(
        "unpinned-action", name, (line_of(step, "uses"),), f"`{name}` is not pinned",
        f"Whoever controls {what} of `{name}` runs code here{', with this job’s secrets or write token' if trusted else ''}. Pin the full commit id, with the version as a comment.",
        "high" if moving and trusted else "medium" if trusted else "low", sure,
    )  # fmt: skip


def _checkouts(job: Job, index: int, triggers: dict[str, int]) -> Iterator[Risk]:
    risky = [t for t in ("pull_request_target", "workflow_run", "issue_comment") if t in triggers]
    if not risky:
        return
    step = job.steps[index]
    given = step.get("with")
    uses, run = str(step.get("uses") or ""), str(step.get("run") or "")
    line, rest = 0, ""
    if "checkout" in uses and isinstance(given, CommentedMap):
        for key in ("ref", "repository"):
            if _HEAD.search(str(given.get(key, ""))):
                line = line_of(given, key)
                break
    elif (taken := _CHECKS_OUT.search(run)) is not None:
        line = line_of(step, "run")
        rest = re.sub(r"^[^\n&;]*", "", run[taken.end() :])
    if not line:
        return
    later = job.steps[index + 1 :]
    runs_code = _RUNS.search(rest) is not None or any(
        "run" in s
        or str(s.get("uses") or "").startswith("./")
        or "setup-" in str(s.get("uses") or "")
        for s in later
    )
    guarded = (
        re.search(
            r"author_association|permission|github\.actor\s*==|labeled|environment",
            job.condition + flat(step.get("if", "")),
        )
        is not None
    )
    sure = 0.93 if runs_code else 0.7
    if guarded:
        sure -= 0.25
    elif risky[0] == "issue_comment":
        sure -= 0.05
    yield Risk(
        "untrusted-checkout", f"{job.name} {line}", (line, triggers[risky[0]]), f"`{risky[0]}` checks out what a stranger wrote",
        f"`{risky[0]}` runs with the repository’s secrets and a token that may write"
        + (", and later steps run what was checked out." if runs_code else ".")
        + " Use `pull_request`, or keep this job away from the head’s code.",
        "critical" if runs_code else "high", sure,
    )  # fmt: skip


def _leaks(job: Job, step: CommentedMap, lines: list[str]) -> Iterator[Risk]:
    text = flat(step)
    start = line_of(step, next(iter(step), None))
    if re.search(r"toJSON\(\s*secrets\s*\)", text, re.IGNORECASE):
        yield Risk(
            "secrets-exposed",
            f"{job.name} toJSON",
            (_find(lines, start, "secrets"),),
            "All secrets are handed over at once",
            "`toJSON(secrets)` gives this step every secret. Name the one that is needed.",
            "high",
            0.9,
        )
    run = str(step.get("run") or "")
    printed = re.search(
        r"(?:echo|printf|print)\b[^\n|>]{0,200}\$\{\{\s*secrets\.\w+[^\n|>]*$", run, re.MULTILINE
    )
    if printed is not None:
        yield Risk(
            "secrets-exposed",
            f"{job.name} printed",
            (_find(lines, start, printed.group().strip()[:60]),),
            "A secret is printed to the log",
            "Masking fails as soon as the value is changed by a letter. Do not print it.",
            "medium",
            0.7,
        )


def _runner(job: Job, document: CommentedMap, triggers: dict[str, int]) -> Iterator[Risk]:
    jobs = document.get("jobs")
    data = jobs.get(job.name) if isinstance(jobs, CommentedMap) else None
    if not isinstance(data, CommentedMap) or "self-hosted" not in flat(data.get("runs-on", "")):
        return
    asked = [t for t in ("pull_request", "pull_request_target", "issue_comment") if t in triggers]
    if asked:
        yield Risk(
            "self-hosted-runner", job.name, (line_of(data, "runs-on"), triggers[asked[0]]), "Pull requests run on a self-hosted runner",
            "In a public repository anybody can run code on that machine, and leave something behind for the next job.", "high", 0.6,
        )  # fmt: skip
    if str(data.get("secrets", "")) == "inherit" and "pull_request_target" in triggers:
        yield Risk(
            "secrets-exposed",
            f"{job.name} inherit",
            (line_of(data, "secrets"),),
            "Every secret is passed on",
            "Name the secrets that the called workflow needs.",
            "medium",
            0.7,
        )


def _unsafe_commands(lines: list[str]) -> Iterator[Risk]:
    for number, line in enumerate(lines, 1):
        if re.search(
            r"ACTIONS_ALLOW_UNSECURE_COMMANDS['\"]?\s{0,4}:\s{0,4}['\"]?(?:true|1)",
            line,
            re.IGNORECASE,
        ):
            yield Risk(
                "unsafe-commands",
                "commands",
                (number,),
                "Old workflow commands are switched on",
                "What a step prints can then set variables of the next one.",
                "high",
                0.9,
            )
        if re.search(
            r"allow-unsafe-pr-checkout['\"]?\s{0,4}:\s{0,4}['\"]?true", line, re.IGNORECASE
        ):
            yield Risk(
                "untrusted-checkout",
                "allowed",
                (number,),
                "The checkout’s own guard is switched off",
                "A stranger’s code is then checked out next to the repository’s secrets.",
                "critical",
                0.9,
            )
