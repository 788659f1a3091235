"""The values that every part shares: frozen, without I/O.

Names equal the keys of the JSON documents in docs/interface.md, so that `dataclasses.asdict` is the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

from regreen.domain.text_limits import format_seconds

Dimension = Literal["correctness", "security", "style", "coverage"]
Severity = Literal["critical", "high", "medium", "low"]
Side = Literal["LEFT", "RIGHT"]
Risk = Literal["low", "medium", "high"]
EvidenceKind = Literal["test", "analyzer", "coverage", "vote", "model"]
WithheldReason = Literal["confidence", "budget", "duplicate", "dismissed", "outside_diff"]
Trust = Literal["default_branch", "pull_request", "local"]
ClaimVerdict = Literal["holds", "as_before", "unsure", "refuted", "unread"]
"""What a second reader says of a claim; `as_before`: it is true, and was so before the change."""
ProofStatus = Literal["proven", "red_on_head", "not_run", "disproven"]
ClaimReach = Literal["usual", "sometimes", "rare"]
ClaimWorth = Literal["yes", "perhaps", "no", "unsaid"]

RungName = Literal["recipe", "revert", "shrink", "template", "model"]

RUNG_ORDER: tuple[RungName, ...] = get_args(RungName)
"""The rungs of a repair, from the cheapest on."""
DIMENSIONS: tuple[Dimension, ...] = ("correctness", "security", "style", "coverage")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of model calls: US dollars, calls, tokens."""

    usd: float = 0.0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def describe(self, seconds: float) -> str:
        """What some work cost: the model's calls, tokens and money, and how long it took."""
        calls = f"{self.calls} model call{'' if self.calls == 1 else 's'}"
        tokens = f"{self.input_tokens:,} tokens in, {self.output_tokens:,} out"
        model = f"{calls} ({tokens}, ${self.usd:.3f})" if self.calls else "no model"
        return f"Cost: {model}; {format_seconds(seconds)} on Regreen's machine."

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.usd + other.usd,
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """An observation, not a belief: a test run, an analyzer's message, a second reader's vote."""

    kind: EvidenceKind
    excerpt: str
    command: str | None = None
    head: str | None = None
    base: str | None = None

    @property
    def is_statement(self) -> bool:
        """Whether it is a sentence: what readers say, or why no test was run."""
        return self.kind in {"vote", "model"} or (self.kind == "test" and not self.command)


@dataclass(frozen=True, slots=True)
class Signals:
    """The support for a model's claim; its confidence is computed from these values alone.

    Attributes:
        readers: how many readings, of `readings`, made the claim: 1 of 1, but for what was stored before.
        verdict: the verdict of a second reader, who saw code and claim but not the first reader's reasons.
        certainty: the second reader's own, 0 to 1.
        sure: the claimant's own, 0 to 1.
        proof: the result of a test.
        worth: whether the second reader thinks that the maintainers would change the code for a true claim.
        reach: how often those who use the code meet the defect, as the readers say; "" for what was stored before.
    """

    readers: int
    readings: int
    verdict: ClaimVerdict = "unread"
    certainty: float = 0.5
    sure: float = 0.5
    proof: ProofStatus = "not_run"
    worth: ClaimWorth = "unsaid"
    reach: ClaimReach | Literal[""] = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect at one place of a change. Lines are 1-based, `start_line <= line`, on `side`."""

    id: str
    fingerprint: str
    dimension: Dimension
    rule: str
    severity: Severity
    blocking: bool
    confidence: float
    path: str
    start_line: int
    line: int
    side: Side
    title: str
    body: str
    suggestion: str | None = None
    evidence: tuple[Evidence, ...] = ()
    signals: Signals | None = None


@dataclass(frozen=True, slots=True)
class WithheldFinding:
    """A finding that is not posted, and why."""

    finding: Finding
    reason: WithheldReason


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file of the change that was not reviewed, and why; `by_policy`: no review reads such files."""

    path: str
    reason: str
    by_policy: bool = False


@dataclass(frozen=True, slots=True)
class SkippedReviewer:
    """A reviewer that did not run, and why; `by_policy`: nobody asked for it, so the review is complete without it.

    `tests_not_run`: the change's tests should have run for it, and did not.
    """

    reviewer: str
    reason: str
    by_policy: bool = False
    tests_not_run: bool = False


@dataclass(frozen=True, slots=True)
class UncoveredLines:
    """New lines of one file that no test executed."""

    path: str
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """How many of the executable lines that this change adds are run by the tests; `measured` are the files looked at."""

    new_lines: int
    covered: int
    uncovered: tuple[UncoveredLines, ...]
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReviewTestRun:
    """How the change's tests ended in the review's sandbox; `failures` are those that the output names.

    `fail_on_base` names those that fail at the merge base too; "" stands for the command, where no failure has a name.
    `others_on_base` says what is known there of each other one: "passes", "fails otherwise" or "not run".
    """

    command: str
    exit_code: int | None
    failures: tuple[Failure, ...]
    fail_on_base: tuple[str, ...] = ()
    others_on_base: Mapping[str, str] = field(default_factory=dict)

    @property
    def failing(self) -> tuple[str, ...]:
        """The failing tests by name, each once; "" for the command, where no failure has a name."""
        named = tuple(dict.fromkeys(one.test for one in self.failures if one.test))
        return () if self.passed else named or ("",)

    @property
    def failing_count(self) -> int:
        """How many tests are known by name to fail."""
        return len(list(filter(None, self.failing)))

    @property
    def fails_without_change(self) -> bool:
        """Whether all that fails was seen to fail at the merge base too."""
        return not self.passed and set(self.failing) <= set(self.fail_on_base)

    @property
    def passed(self) -> bool:
        """The command exited 0."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class WalkthroughStep:
    """What a change does to one file, and how many lines it adds and removes there."""

    path: str
    text: str
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class Review:
    """The complete result of a review; `findings` are posted on their lines, in their order.

    `environment` says how the tests were set up and where that is known from; None where nothing was run.
    """

    base: str
    head: str
    merge_base: str
    summary: str
    risk: Risk
    scores: dict[Dimension, int | None]
    findings: tuple[Finding, ...]
    withheld: tuple[WithheldFinding, ...]
    not_reviewed: tuple[UnreadFile, ...]
    skipped: tuple[SkippedReviewer, ...]
    coverage: CoverageReport | None
    cost: Cost
    seconds: float
    score_notes: dict[Dimension, str] = field(default_factory=dict)
    environment: dict[str, Any] | None = None
    tests: ReviewTestRun | None = None
    walkthrough: tuple[WalkthroughStep, ...] = ()

    @property
    def gaps(self) -> tuple[str, ...]:
        """What should have been read or run and was not: reviewers, then files."""
        return self.list_left_out(by_policy=False)

    def list_left_out(self, *, by_policy: bool) -> tuple[str, ...]:
        """What was not read or run, by policy or for another reason: reviewers, then files."""
        names = [s.reviewer for s in self.skipped if s.by_policy is by_policy]
        return (*names, *(u.path for u in self.not_reviewed if u.by_policy is by_policy))


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One stack frame of a failure; `line` is 1-based."""

    path: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failing test, lint finding or build error, read from a tool's output.

    `kind` is the exception's type for a test ("AssertionError"), the rule for a linter ("F401"), else the
    tool's own word ("error").
    """

    test: str
    kind: str
    message: str
    path: str | None = None
    line: int | None = None
    frames: tuple[StackFrame, ...] = ()

    @property
    def names_test(self) -> bool:
        """Whether it is a test: what is named by its place is a linter's finding or a compiler's error."""
        return not (self.path and self.line and self.test.startswith(f"{self.path}:{self.line}"))

    @property
    def summary(self) -> str:
        """Kind and message, the kind only once."""
        named = self.message.startswith(self.kind)
        return self.message if named else f"{self.kind}: {self.message}".strip(": ")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a range, as `git rev-list --parents` knows it."""

    sha: str
    parents: tuple[str, ...]
    tree: str
    author: str
    email: str
    date: datetime
    subject: str


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a tree: `mode` as git prints it ("100644", "120000", "160000"), `size` in bytes or None."""

    path: str
    mode: str
    sha: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept: nothing unused for `days`, at most this many bytes and environments."""

    days: float = 14.0
    most_bytes: int = 20 * 1024**3
    count: int = 200


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One line of `regreen doctor`: the check, its result, the remedy."""

    name: str
    group: Literal["sandbox", "database", "github", "model", "config", "git"]
    ok: bool
    required: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """What one box may use at most: bytes, processes, cores; a network only if a trusted caller allows it.

    A new limit begins here, and each sandbox backend enforces it.
    """

    memory: int = 2 * 1024**3
    disk: int = 1024**3
    tmp: int = 256 * 1024**2
    pids: int = 512
    cpus: float = 2.0
    output: int = 64 * 1024
    flood: int = 64 * 1024**2
    network: bool = False


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """What a box must offer besides the tree: an interpreter, and whatever `setup` installs.

    `inputs` is a digest of everything in the tree that the setup's result depends on (lock and manifest
    bytes, or the whole tree if the setup copies it); `scope` (repository) and `trust` keep prepared
    environments apart, so that a pull request never writes what the default branch will run.
    `timeout_s` bounds the setup. `checked`: the dependency guard has judged the setup together with its tree, so
    the sandbox need not judge the command alone. `host_programs`: if no `image` is named, a box with
    this machine's own programs (servers that a CI job needs beside it) is preferred to an image with a Python.
    """

    image: str | None = None
    python: str | None = None
    setup: str | None = None
    inputs: str = ""
    trust: Trust = "local"
    scope: str = "local"
    env: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 900.0
    checked: bool = False
    host_programs: bool = False


@dataclass(frozen=True, slots=True)
class PreparedEnv:
    """A prepared environment: opaque except to the backend that made it."""

    key: str
    backend: Literal["docker", "bwrap", "e2b"]
    python: str | None
    image: str
    setup_output: str = ""


RunEnding = Literal["exit", "timeout", "oom", "flood", "cancelled", "infra"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """How one command in a box ended. `exit_code` is None unless `ended` is "exit".

    Output is text (UTF-8, undecodable bytes replaced), head and tail kept when `truncated`.
    """

    ended: RunEnding
    exit_code: int | None
    stdout: str
    stderr: str
    truncated: bool
    seconds: float
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether the command ran to its end and exited 0."""
        return self.ended == "exit" and self.exit_code == 0


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the model may call; `schema` is the JSON schema of its input."""

    name: str
    description: str
    schema: dict[str, object]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool. `input` obeys the tool's schema only after the caller has checked it."""

    id: str
    name: str
    input: dict[str, object]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool, returned to the model."""

    id: str
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class SentPart:
    """A part of a request to a model: what it is and, where it is of a file, which lines of which."""

    what: str
    path: str = ""
    lines: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with a model.

    `raw` holds the provider's own blocks of an assistant turn: a thinking model needs its thoughts back,
    unchanged, with the results of the tools it called. Make such a turn with `ModelAnswer.as_message`.
    `sent` names what of the repository the texts hold.
    """

    role: Literal["user", "assistant"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    raw: tuple[dict[str, object], ...] = ()
    sent: tuple[SentPart, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model.

    `purpose` names it in the ledger ("review/intent"); `force` names the one tool that must be called, for
    a structured answer; `cache_messages` is how many leading messages are a stable prefix worth caching;
    `salt` distinguishes samples that repeat a request on purpose; `masked` counts the lines in which the client has
    hidden a credential.
    """

    purpose: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    force: str | None = None
    max_tokens: int = 4096
    cache_messages: int = 0
    salt: str = ""
    masked: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The answer of a model. `stop` "length" means truncated, "refusal" means declined."""

    text: str
    calls: tuple[ToolCall, ...]
    stop: Literal["end", "tool", "length", "refusal"]
    cost: Cost
    model: str
    raw: tuple[dict[str, object], ...] = ()

    def as_message(self) -> Message:
        """This answer as the assistant's turn of a longer conversation."""
        return Message("assistant", self.text, self.calls, raw=self.raw)
