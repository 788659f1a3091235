"""What a workflow's steps send away, and what they take in from somebody else's run or page and then trust."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from ruamel.yaml.comments import CommentedMap

from regreen.codebase.workflow_document import Job, Risk, flat, line_of

_SENDS = re.compile(r"\b(?:curl|wget|nc|ncat|Invoke-WebRequest|Invoke-RestMethod|iwr|irm)\b")
_DUMPS = re.compile(
    r"(?:(?:^|[;&|(]\s{0,4})(?:sudo\s+)?(?:env|printenv)\b[^\n|]{0,80}\|[^\n]{0,300}\b(?:curl|wget|nc|base64)\b"
    r"|\$\((?:env|printenv)\b[^\n)]{0,80}\)|/proc/[^\s/]{1,20}/(?:mem|environ)\b|\bRunner\.Worker\b)",
    re.MULTILINE,
)
_SECRET = re.compile(r"\$\{\{\s*secrets\.(\w+)\s*\}\}")
_HEADER = re.compile(
    r"(?:-H|--header|-u|--user|--oauth2-bearer)[= ]?(?:\"[^\"\n]*\"|'[^'\n]*'|\S+)"
)
_ADDRESS = re.compile(r"https?://[^\s\"'|)]+")
_PLAIN_WORDS = frozenset({"token", "key", "secret", "password", "access", "auth", "the", "api"})
# Where anybody can put a file without saying who they are.
_NOBODYS = re.compile(
    r"(?i)https?://(?:gist\.github(?:usercontent)?\.com|pastebin\.com|paste\.\w+|transfer\.sh|bit\.ly|tinyurl\.com|t\.ly|"
    r"[\w.-]+\.ngrok(?:-free)?\.(?:io|app)|webhook\.site|\d{1,3}(?:\.\d{1,3}){3})[/:\s]"
)
_PIPED = re.compile(
    r"\b(?:curl|wget)\b[^\n|]{0,400}\|\s{0,4}(?:sudo\s+(?:-\w+\s+)?)?(?:bash|sh|zsh|python3?|node|perl|ruby)\b"
    r"|\b(?:bash|sh|source|eval)\s+(?:-c\s+)?[\"']?[<$]\(\s{0,4}(?:curl|wget)\b"
)
_DOWNLOADS = re.compile(r"(?:^|/)(?:action-)?download-(?:workflow-)?artifact$")
_RUNS_FILES = re.compile(
    r"(?:^|[\s;&|(])(?:bash|sh|source|python3?|node|ruby|perl)\s+[\w./-]+|chmod\s+\+x|(?:^|[\s;&|(])\./[\w./-]+|"
    r"\b(?:npm|pnpm|yarn|make|pip3?\s+install)\b"
)
_INTO_ENVIRONMENT = re.compile(
    r"(?:\bcat\b|\$\(|`|<)[^\n]{0,200}>>\s{0,4}[\"']?\$\{?GITHUB_(?:ENV|PATH)\b"
)
_OWN_RUN = re.compile(
    r"workflow_run\.event\s{0,4}==\s{0,4}'(?:push|schedule)'|head_repository\.full_name\s{0,4}==|head_branch\s{0,4}=="
)
_FREE_TEXT = re.compile(
    r"github\.event\.(?:issue|pull_request|discussion|comment|review|review_comment)\.body\b|"
    r"github\.event\.head_commit\.message\b"
)


def of_job(job: Job, triggers: dict[str, int], lines: Sequence[str]) -> Iterator[Risk]:
    """The risks in what a job's steps send and take in."""
    for index, step in enumerate(job.steps):
        run = step.get("run")
        if isinstance(run, str):
            yield from _sent(job, step, run, lines)
            yield from _piped(job, step, run, lines)
            yield from _into_environment(job, step, run, lines)
        if "workflow_run" in triggers:
            yield from _artifacts(job, index, triggers)


def _line(step: CommentedMap, key: str, lines: Sequence[str], text: str) -> int:
    start = line_of(step, key)
    first = text.strip().split("\n", maxsplit=1)[0][:60]
    return next(
        (n for n in range(start, min(len(lines), start + 400) + 1) if first in lines[n - 1]), start
    )


def _sent(job: Job, step: CommentedMap, run: str, lines: Sequence[str]) -> Iterator[Risk]:
    dumped = _DUMPS.search(run)
    if dumped is not None and (
        _SENDS.search(run) or "/proc/" in dumped[0] or "Runner" in dumped[0]
    ):
        yield Risk(
            "secrets-exposed", f"{job.name} environment", (_line(step, "run", lines, dumped[0]),), "The whole environment is sent away",
            "Every secret that this job was given is in it, and the token too. No build needs that.", "critical", 0.9,
        )  # fmt: skip
    for command in re.split(r"(?<!\\)\n|&&|;", run):
        if not _SENDS.search(command):
            continue
        body = _HEADER.sub("", command)
        hosts = [urlsplit(address).hostname or "" for address in _ADDRESS.findall(body)]
        for match in _SECRET.finditer(body) if hosts else ():
            words = {word for word in match[1].lower().split("_") if len(word) > 2} - _PLAIN_WORDS
            strange = bool(words) and not any(word in host for word in words for host in hosts)
            yield Risk(
                "secrets-exposed", f"{job.name} sends {match[1]}", (_line(step, "run", lines, match[0]),),
                f"The secret `{match[1]}` is sent to `{hosts[0][:80]}`",
                "Make sure that this host is the one it belongs to: whoever answers there has it now.",
                "critical" if strange else "medium", 0.84 if strange else 0.5,
            )  # fmt: skip


def _piped(job: Job, step: CommentedMap, run: str, lines: Sequence[str]) -> Iterator[Risk]:
    for match in _PIPED.finditer(run):
        end = run.find("\n", match.start())
        command = run[match.start() : end if end >= 0 else len(run)]
        if _NOBODYS.search(command):
            yield Risk(
                "downloaded-script", f"{job.name} {command[:60]}", (_line(step, "run", lines, match[0]),), "A script from a page of nobody's is run",
                "Whoever can change that page runs code here, with this job’s token. Keep the script in the repository, or check its hash.",
                "critical" if job.has_secrets or job.writes else "high", 0.86,
            )  # fmt: skip


def _into_environment(
    job: Job, step: CommentedMap, run: str, lines: Sequence[str]
) -> Iterator[Risk]:
    env = step.get("env")
    for name, value in env.items() if isinstance(env, CommentedMap) else ():
        used = rf"\$\{{?{re.escape(str(name))}\b[^\n]{{0,200}}>>\s{{0,4}}[\"']?\$\{{?GITHUB_(?:ENV|PATH)\b"
        written = re.search(used, run)
        if written is not None and _FREE_TEXT.search(str(value)):
            yield Risk(
                "script-injection", f"{job.name} {name} to environment", (_line(step, "run", lines, written[0]),),
                f"A stranger’s text is written into the environment: `{name}`",
                "With a line break in it the sender sets any variable of the later steps (`BASH_ENV`, `NODE_OPTIONS`), and so runs code. "
                "Keep it in `env:` of the step that needs it.", "critical", 0.85,
            )  # fmt: skip


def _artifacts(job: Job, index: int, triggers: dict[str, int]) -> Iterator[Risk]:
    step = job.steps[index]
    uses = str(step.get("uses") or "").partition("@")[0]
    if not _DOWNLOADS.search(uses) or "workflow_run" not in flat(step):
        return
    if _OWN_RUN.search(job.condition + flat(step.get("if", ""))):
        return
    has_code = any("checkout" in str(one.get("uses") or "") for one in job.steps)
    later = "\n".join(str(one.get("run") or "") for one in job.steps[index + 1 :])
    into = _INTO_ENVIRONMENT.search(later) is not None
    # Without a checkout there is nothing to run but what the artifact brought.
    runs = _RUNS_FILES.search(later) is not None and not has_code
    if into or runs:
        what = "and writes it into the environment" if into else "and runs what is in it"
        yield Risk(
            "untrusted-artifact", f"{job.name} artifact", (line_of(step, "uses"), triggers["workflow_run"]),
            f"`workflow_run` takes an artifact from a stranger’s run {what}",
            "A pull request from a fork made that artifact, and this job has the repository’s secrets. Read only plain values from it, and check "
            "them; take nothing that is run.", "critical", 0.85,
        )  # fmt: skip
