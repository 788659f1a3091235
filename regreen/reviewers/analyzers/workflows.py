"""Workflow files: what a change of them lets people without access do. `workflow_risks.toml` holds patterns and texts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from urllib.parse import urlsplit

from regreen.code.diff import FileChange
from regreen.code.workflow_document import (
    SECRET_REFERENCE,
    ParsedJob,
    WorkflowError,
    WorkflowMapping,
    find_key_line,
    flatten_text,
    is_workflow,
    load_workflow,
    read_jobs,
    read_triggers,
)
from regreen.domain.models import Severity, UnreadFile
from regreen.domain.text_limits import without_long_lines
from regreen.reviewers.analyzers.baseline import make_analyzer_claim
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun

_PRIVILEGED_EVENTS = frozenset(
    "pull_request_target workflow_run issue_comment issues discussion discussion_comment".split()  # noqa: SIM905
)
_GITHUB_OWNERS = frozenset({"actions", "github"})
_MOVING_REFS = frozenset({"main", "master", "develop", "dev", "latest", "trunk", "head", ""})
_SCRIPT_INPUTS = ("script", "run", "command", "inlineScript")
_PLAIN_WORDS = frozenset({"token", "key", "secret", "password", "access", "auth", "the", "api"})
_MAX_REFERENCES = 4


@dataclass(frozen=True, slots=True)
class WorkflowRisk:
    """One risk. `lines` (1-based) all have a part in it, the most telling first; `key` identifies it within its rule."""

    rule: str
    key: str
    lines: tuple[int, ...]
    title: str
    body: str
    severity: Severity
    confidence: float


@dataclass(frozen=True, slots=True)
class _RiskRow:
    """A row of the table, which explains its fields."""

    rule: str
    title: str
    body: str
    severity: Severity
    confidence: float


@cache
def _load_table() -> tuple[dict[str, _RiskRow], dict[str, re.Pattern[str]]]:
    text = resources.files("regreen.reviewers.analyzers").joinpath("workflow_risks.toml")
    table = tomllib.loads(text.read_text("utf-8"))
    rows = {name: _RiskRow(**row) for name, row in table["risks"].items()}
    return rows, {name: re.compile(pattern) for name, pattern in table["patterns"].items()}


def _get_pattern(name: str) -> re.Pattern[str]:
    return _load_table()[1][name]


def _make_risk(
    name: str,
    key: str,
    /,
    *lines: int,
    severity: Severity | None = None,
    confidence: float | None = None,
    **fields: str,
) -> WorkflowRisk:
    row = _load_table()[0][name]
    return WorkflowRisk(
        row.rule,
        key,
        lines,
        row.title.format_map(fields),
        row.body.format_map(fields),
        severity or row.severity,
        row.confidence if confidence is None else confidence,
    )


@dataclass(frozen=True, slots=True)
class WorkflowRisks:
    """Compares the risks of each changed workflow before and after."""

    name: str = "workflows"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report the risks that this change brings."""
        claims: list[Claim] = []
        unread: list[UnreadFile] = []
        files = [f for f in context.change.files if f.status != "deleted" and is_workflow(f.path)]
        for file in files:
            after = context.head_text(file.path)
            if after is None:
                unread.append(UnreadFile(file.path, "workflow not readable"))
                continue
            try:
                risks = find_risks(after)
            except WorkflowError as error:
                unread.append(UnreadFile(file.path, str(error)))
                continue
            known = _base_risk_keys(context, file)
            claims += [_make_claim(file, r) for r in risks if (r.rule, r.key) not in known]
        return ReviewerReport(
            tuple(claims),
            read=count_noun(len(files), "workflow file") if files else "",
            unread=tuple(unread),
        )


def _base_risk_keys(context: ReviewContext, file: FileChange) -> set[tuple[str, str]]:
    before = context.base_text(file.old_path) if file.status != "added" else None
    try:
        return {(risk.rule, risk.key) for risk in find_risks(before or "")}
    except WorkflowError:
        return set()


def _make_claim(file: FileChange, risk: WorkflowRisk) -> Claim:
    line = next((n for n in risk.lines if file.touches_lines(n, n)), risk.lines[0])
    return make_analyzer_claim(
        f"workflows/{risk.rule}",
        risk.severity,
        file.path,
        (line, line),
        dimension="security",
        title=risk.title,
        body=risk.body,
        confidence=risk.confidence,
        excerpt=risk.title,
        source="regreen workflows",
        code=f"{risk.rule} {risk.key}",
    )


def find_risks(text: str) -> tuple[WorkflowRisk, ...]:
    """The risks in a workflow or a composite action, its long lines left out.

    Raises:
        WorkflowError: it cannot be read.
    """
    text = without_long_lines(text)
    document = load_workflow(text)
    if not isinstance(document, WorkflowMapping):
        return ()
    return tuple(_RiskFinder(document, text.split("\n")).find_risks())


@dataclass
class _RiskFinder:
    """Finds the risks of one document; `lines` are those of its text."""

    document: WorkflowMapping
    lines: list[str]
    triggers: dict[str, int] = field(init=False)
    jobs: WorkflowMapping = field(init=False)

    def __post_init__(self) -> None:
        self.triggers = read_triggers(self.document)
        self.jobs = _as_mapping(self.document.get("jobs"))

    def find_risks(self) -> Iterator[WorkflowRisk]:
        yield from self._permission_risks()
        for job in read_jobs(self.document):
            for index, step in enumerate(job.steps):
                yield from self._injection_risks(job, step)
                yield from self._unpinned_action_risks(job, step)
                yield from self._checkout_risks(job, index)
                yield from self._leak_risks(job, step)
            for index, step in enumerate(job.steps):
                run = step.get("run")
                if isinstance(run, str):
                    yield from self._exfiltration_risks(job, step, run)
                    yield from self._download_risks(job, step, run)
                    yield from self._environment_file_risks(job, step, run)
                yield from self._artifact_risks(job, index)
            yield from self._runner_risks(job)
        for number, line in enumerate(self.lines, 1):
            if _get_pattern("unsecure_commands").search(line):
                yield _make_risk("unsafe-commands", "commands", number)
            if _get_pattern("unsafe_checkout").search(line):
                yield _make_risk("checkout-guard-off", "allowed", number)

    def _find_line(self, holder: WorkflowMapping, key: str | None, text: str) -> int:
        """The line (1-based) at which a text begins that stands under a key."""
        start = find_key_line(holder, key)
        first = text.strip().split("\n", maxsplit=1)[0]
        end = min(len(self.lines), start + 400)
        return next((n for n in range(start, end + 1) if first in self.lines[n - 1]), start)

    def _permission_risks(self) -> Iterator[WorkflowRisk]:
        jobs = [
            (f"job `{name}`", job)
            for name, job in self.jobs.items()
            if isinstance(job, WorkflowMapping)
        ]
        for name, place in (("the workflow", self.document), *jobs):
            if str(place.get("permissions")) == "write-all":
                yield _make_risk("write-all", name, find_key_line(place, "permissions"), place=name)
        trigger = next((t for t in self.triggers if t in _PRIVILEGED_EVENTS), "")
        is_default = trigger and "permissions" not in self.document
        if is_default and any("permissions" not in job for _, job in jobs):
            line = self.triggers[trigger]
            yield _make_risk("default-token", "none given", line, trigger=trigger)

    def _injection_risks(self, job: ParsedJob, step: WorkflowMapping) -> Iterator[WorkflowRisk]:
        given = _as_mapping(step.get("with"))
        holders = [(step, "run"), *((given, key) for key in _SCRIPT_INPUTS)]
        for holder, key in holders:
            script = holder.get(key)
            for match in _get_pattern("expression").finditer(
                script if isinstance(script, str) else ""
            ):
                line = self._find_line(holder, key, match.group())
                meaning = self._expand_expression(match[1], job, step)
                yield from self._injection_risk(job, match[1].strip()[:80], meaning, line)

    def _expand_expression(
        self, expression: str, job: ParsedJob, step: WorkflowMapping, depth: int = 0
    ) -> str:
        """An expression with what it refers to: the values of `env.TITLE` and of other jobs' outputs."""
        plain = _get_pattern("bracket_key").sub(r".\1", expression)
        if depth > _MAX_REFERENCES:
            return plain
        values: list[str] = []
        for name in _get_pattern("env_reference").findall(plain):
            environments = (
                _as_mapping(holder.get("env"))
                for holder in (step, _as_mapping(self.jobs.get(job.name)), self.document)
            )
            values += [str(env[name]) for env in environments if name in env][:1]
        for needed, name in _get_pattern("output_reference").findall(plain):
            other = _as_mapping(self.jobs.get(needed))
            outputs = _as_mapping(other.get("outputs"))
            values += [str(outputs[name])] if name in outputs else []
        inner = [match for text in values for match in _get_pattern("expression").findall(text)]
        return " ".join(
            [plain, *(self._expand_expression(text, job, step, depth + 1) for text in inner)]
        )

    def _injection_risk(
        self, job: ParsedJob, shown: str, meaning: str, line: int
    ) -> Iterator[WorkflowRisk]:
        used = _get_pattern("harmless_call").sub("", meaning)
        if _get_pattern("untrusted_value").search(used):
            privileged = bool(self.triggers.keys() & _PRIVILEGED_EVENTS)
            confidence = 0.95 if privileged else 0.88 if "pull_request" in self.triggers else None
            severity: Severity = "high"
            if privileged or job.has_secrets or job.writes:
                severity = "critical"
            yield _make_risk(
                "untrusted-expression",
                shown,
                line,
                severity=severity,
                confidence=confidence,
                shown=shown,
            )
        elif _get_pattern("changed_files").search(used):
            yield _make_risk("file-names", shown, line, shown=shown)
        elif _get_pattern("input_reference").search(used):
            is_called = job.name == "action" or "workflow_call" in self.triggers
            yield _make_risk(
                "input", shown, line, confidence=0.6 if is_called else None, shown=shown
            )

    def _unpinned_action_risks(
        self, job: ParsedJob, step: WorkflowMapping
    ) -> Iterator[WorkflowRisk]:
        uses = step.get("uses")
        if not isinstance(uses, str) or uses.startswith("./"):
            return
        name, _, ref = uses.strip().partition("@")
        line = find_key_line(step, "uses")
        if uses.startswith("docker://"):
            if "@sha256:" not in uses:
                yield _make_risk("unpinned-image", name, line, uses=uses[:80])
            return
        owner = name.partition("/")[0].lower()
        if owner in _GITHUB_OWNERS or _get_pattern("commit_sha").match(ref) or "/" not in name:
            return
        is_moving = ref.lower() in _MOVING_REFS
        is_trusted = job.has_secrets or job.writes or "pull_request_target" in self.triggers
        gets_secret = is_trusted and SECRET_REFERENCE.search(flatten_text(step))
        yield _make_risk(
            "unpinned-action",
            name,
            line,
            severity="high" if is_moving and is_trusted else "medium" if is_trusted else "low",
            confidence=0.85 if is_moving else 0.72 if gets_secret else None,
            name=name,
            what=f"the branch `{ref}`" if is_moving else f"the tag `{ref}`",
            rights=", with this job’s secrets or write token" if is_trusted else "",
        )

    def _checkout_risks(self, job: ParsedJob, index: int) -> Iterator[WorkflowRisk]:
        events = ("pull_request_target", "workflow_run", "issue_comment")
        trigger = next((event for event in events if event in self.triggers), None)
        if trigger is None:
            return
        step = job.steps[index]
        given = _as_mapping(step.get("with"))
        uses, run = str(step.get("uses") or ""), str(step.get("run") or "")
        line, rest = 0, ""
        if "checkout" in uses:
            keys = (k for k in ("ref", "repository") if k in given)
            line = next(
                (
                    find_key_line(given, key)
                    for key in keys
                    if _get_pattern("head_reference").search(str(given[key]))
                ),
                0,
            )
        elif (taken := _get_pattern("checks_out").search(run)) is not None:
            line = find_key_line(step, "run")
            rest = re.sub(r"^[^\n&;]*", "", run[taken.end() :])
        if not line:
            return
        runs_code = _get_pattern("runs_code").search(rest) is not None or any(
            "run" in later
            or str(later.get("uses") or "").startswith("./")
            or "setup-" in str(later.get("uses") or "")
            for later in job.steps[index + 1 :]
        )
        confidence = 0.93 if runs_code else 0.7
        if _get_pattern("guard").search(job.condition + flatten_text(step.get("if", ""))):
            confidence -= 0.25
        elif trigger == "issue_comment":
            confidence -= 0.05
        yield _make_risk(
            "untrusted-checkout",
            f"{job.name} {line}",
            line,
            self.triggers[trigger],
            severity="critical" if runs_code else "high",
            confidence=confidence,
            trigger=trigger,
            later=", and later steps run what was checked out." if runs_code else ".",
        )

    def _leak_risks(self, job: ParsedJob, step: WorkflowMapping) -> Iterator[WorkflowRisk]:
        first = next(iter(step), None)
        if _get_pattern("every_secret").search(flatten_text(step)):
            line = self._find_line(step, first, "secrets")
            yield _make_risk("every-secret", f"{job.name} toJSON", line)
        printed = _get_pattern("printed_secret").search(str(step.get("run") or ""))
        if printed is not None:
            line = self._find_line(step, first, printed.group().strip()[:60])
            yield _make_risk("printed-secret", f"{job.name} printed", line)

    def _exfiltration_risks(
        self, job: ParsedJob, step: WorkflowMapping, run: str
    ) -> Iterator[WorkflowRisk]:
        sending = _get_pattern("sending_command")
        dumped = _get_pattern("environment_dump").search(run)
        if dumped and (sending.search(run) or "/proc/" in dumped[0] or "Runner" in dumped[0]):
            line = self._find_line(step, "run", dumped[0][:60])
            yield _make_risk("sent-environment", f"{job.name} environment", line)
        for command in re.split(r"(?<!\\)\n|&&|;", run):
            if not sending.search(command):
                continue
            body = _get_pattern("credential_option").sub("", command)
            hosts = [urlsplit(url).hostname or "" for url in _get_pattern("address").findall(body)]
            for match in _get_pattern("secret_expression").finditer(body) if hosts else ():
                words = {w for w in match[1].lower().split("_") if len(w) > 2} - _PLAIN_WORDS
                is_other = words and not any(word in host for word in words for host in hosts)
                yield _make_risk(
                    "sent-secret",
                    f"{job.name} sends {match[1]}",
                    self._find_line(step, "run", match[0][:60]),
                    severity="critical" if is_other else None,
                    confidence=0.84 if is_other else None,
                    secret=match[1],
                    host=hosts[0][:80],
                )

    def _download_risks(
        self, job: ParsedJob, step: WorkflowMapping, run: str
    ) -> Iterator[WorkflowRisk]:
        for match in _get_pattern("piped_download").finditer(run):
            command = run[match.start() :].split("\n", maxsplit=1)[0]
            if _get_pattern("anonymous_host").search(command):
                yield _make_risk(
                    "downloaded-script",
                    f"{job.name} {command[:60]}",
                    self._find_line(step, "run", match[0][:60]),
                    severity="critical" if job.has_secrets or job.writes else None,
                )

    def _environment_file_risks(
        self, job: ParsedJob, step: WorkflowMapping, run: str
    ) -> Iterator[WorkflowRisk]:
        for name, value in _as_mapping(step.get("env")).items():
            used = rf"\$\{{?{re.escape(str(name))}\b[^\n]{{0,200}}>>\s{{0,4}}[\"']?\$\{{?GITHUB_(?:ENV|PATH)\b"
            written = re.search(used, run)
            if written is not None and _get_pattern("free_text").search(str(value)):
                yield _make_risk(
                    "untrusted-environment",
                    f"{job.name} {name} to environment",
                    self._find_line(step, "run", written[0][:60]),
                    name=str(name),
                )

    def _artifact_risks(self, job: ParsedJob, index: int) -> Iterator[WorkflowRisk]:
        step = job.steps[index]
        uses = str(step.get("uses") or "").partition("@")[0]
        if "workflow_run" not in self.triggers or "workflow_run" not in flatten_text(step):
            return
        if not _get_pattern("artifact_download").search(uses):
            return
        if _get_pattern("own_run").search(job.condition + flatten_text(step.get("if", ""))):
            return
        has_code = any("checkout" in str(s.get("uses") or "") for s in job.steps)
        later = "\n".join(str(s.get("run") or "") for s in job.steps[index + 1 :])
        sets_environment = _get_pattern("environment_write").search(later) is not None
        # Without a checkout there is nothing to run but what the artifact brought.
        runs_artifact = _get_pattern("runs_files").search(later) is not None and not has_code
        if sets_environment or runs_artifact:
            yield _make_risk(
                "untrusted-artifact",
                f"{job.name} artifact",
                find_key_line(step, "uses"),
                self.triggers["workflow_run"],
                what="and writes it into the environment"
                if sets_environment
                else "and runs what is in it",
            )

    def _runner_risks(self, job: ParsedJob) -> Iterator[WorkflowRisk]:
        data = _as_mapping(self.jobs.get(job.name))
        if "self-hosted" not in flatten_text(data.get("runs-on", "")):
            return
        events = ("pull_request", "pull_request_target", "issue_comment")
        if trigger := next((event for event in events if event in self.triggers), None):
            lines = find_key_line(data, "runs-on"), self.triggers[trigger]
            yield _make_risk("self-hosted-runner", job.name, *lines)
        if str(data.get("secrets", "")) == "inherit" and "pull_request_target" in self.triggers:
            line = find_key_line(data, "secrets")
            yield _make_risk("inherited-secrets", f"{job.name} inherit", line)


def _as_mapping(value: object) -> WorkflowMapping:
    return value if isinstance(value, WorkflowMapping) else WorkflowMapping(0)
