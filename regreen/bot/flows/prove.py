"""Says whether the tests of a pull request prove its change: unasked with a review, or by `/prove`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from pydantic import TypeAdapter

from regreen.bot import messages
from regreen.bot.flows.trials import complete_tests
from regreen.bot.jobs.runner import Job
from regreen.bot.messages.markup import format_time
from regreen.bot.replies import CommandReply
from regreen.bot.services import Services
from regreen.bot.trust import refuse_command_for_old_head, require_clearance
from regreen.code.path_settings import find_changed_paths
from regreen.code.paths import is_document, is_test
from regreen.domain.errors import AnalysisFailed, Cancelled, NoSandbox, OutsideError, UserError
from regreen.domain.events import ProofRequest
from regreen.domain.github import (
    COMMENT_SCOPE,
    CheckRun,
    GitHub,
    PullRequest,
    RateLimited,
    Repository,
    after_fetch,
)
from regreen.domain.ports import Mirror
from regreen.domain.records import ResultDocument
from regreen.domain.repo_config import RepoConfig
from regreen.domain.state_records import FinishedWork
from regreen.environment.preparation import CompletedTrial
from regreen.packages.python_version import choose_python_version
from regreen.proofs.prove import ProofJob, ProofResult, prove_change


def prove_on_request(services: Services, job: Job, ask: ProofRequest) -> str:
    """Carry out `/prove`."""
    github = services.github_client(ask.where, COMMENT_SCOPE)
    repository = github.repository()
    config = services.load_repo_config(ask.where, github, repository).config
    services.require_job_minutes(repository.full_name, config)
    pull = github.pull(ask.number)
    refuse_command_for_old_head("prove", ask.sha, pull)
    reply = CommandReply(github, services.store, ask.number, ask.comment, job.record.id)
    git = services.mirrors.fetch(github, repository, [f"refs/pull/{pull.number}/head"], job.cancel)
    try:
        check = _ProofFlow(services, job, github, repository, config, pull, git).judge_tests(
            asked_by=ask.asked_by
        )
    except Cancelled:
        reply.post_text(messages.job_cancelled(services.store.job(job.record.id)))
        raise
    reply.post_text(messages.format_as_comment(check.summary))
    reply.show_reaction("rocket")
    return check.title


def prove_reviewed(
    services: Services,
    job: Job,
    git: Mirror,
    *,
    github: GitHub,
    repository: Repository,
    pull: PullRequest,
    config: RepoConfig,
    find_tests: Callable[[], CompletedTrial | None],
) -> None:
    """Judge the tests of a pull request that was reviewed, where it changes any, or where the check run is required.

    `find_tests` gives how they ran in the review; None: they could not.
    """
    settings = config.prove
    if not settings.enabled:
        return
    try:
        changed = find_changed_paths(git, pull.base_sha, pull.head_sha)
    except AnalysisFailed:
        return
    tests = find_tests() if settings.required or any(is_test(path) for path in changed) else None
    if settings.required or tests is not None:
        _ProofFlow(services, job, github, repository, config, pull, git).judge_tests(tests)


@dataclass(frozen=True)
class _ProofFlow:
    """One pull request whose tests are judged."""

    services: Services
    job: Job
    github: GitHub
    repository: Repository
    config: RepoConfig
    pull: PullRequest
    git: Mirror

    def judge_tests(self, tests: CompletedTrial | None = None, *, asked_by: str = "") -> CheckRun:
        """Post the check run, and return it. What a push does not change is not run again."""
        head, began = self.pull.head_sha, self.services.clock.now()
        base = self.git.merge_base(self.pull.base_sha, head) or self.pull.base_sha
        again = f"regreen prove --base {base[:12]} --head {head[:12]}"
        again = after_fetch(self.pull.fetch_command, again)
        try:
            result, repeat, earlier = self._find_proof(tests, asked_by)
            page = self.services.job_page_url(self.job.record.id)
            failing = self._list_failing_tests()
            check = messages.proof_check(
                head,
                result,
                required=self.config.prove.required,
                repeat=repeat or again,
                page=page,
                failing=failing,
                earlier=earlier,
            )
            self._save_proof(messages.judge_at_commit(result, failing), check, failing)
        except NoSandbox:
            check = messages.unproven_check(
                head, "no sandbox works here, and nothing runs outside of one", again
            )
        except RateLimited:
            raise
        except (UserError, OutsideError) as error:
            check = messages.unproven_check(head, str(error), again)
        self.job.check_cancelled()
        self.github.post_check_run(replace(check, started=began))
        return check

    def _list_failing_tests(self) -> list[str]:
        """The tests that failed in the latest review of this head, or its command where none was named."""
        repo, number, head = self.repository.full_name, self.pull.number, self.pull.head_sha
        reviews = self.services.store.documents(kind="review", repo=repo, number=number, limit=20)
        latest = next((one.body for one in reviews if one.body.get("head") == head), {})
        run = latest.get("tests") or {}
        if not run or run["exit_code"] == 0:
            return []
        named = [one["test"] for one in run["failures"] if one["test"]]
        return list(dict.fromkeys(named)) or [run["command"]]

    def _find_proof(
        self, tests: CompletedTrial | None, asked_by: str
    ) -> tuple[ProofResult, str, str]:
        """The result, the command that repeats it, and at which commit and when another job made it ("" if none did)."""
        services, job, git, pull = self.services, self.job, self.git, self.pull
        cleared = require_clearance(services.store, git, self.repository, pull, pull.head_sha)
        base = git.merge_base(pull.base_sha, pull.head_sha)
        if base is None:
            message = f"it has no common history with {pull.base_ref}"
            raise UserError(message)
        tests = tests or complete_tests(
            services,
            job,
            git,
            self.config,
            cleared,
            github=self.github,
            rev=pull.head_sha,
            base=pull.base_sha,
            asked_by=asked_by,
        )
        if tests.reason_unproven:
            raise UserError(tests.reason_unproven)
        python = tests.trial.python or choose_python_version(
            git, pull.head_sha, services.sandbox().pythons()
        )
        settings = self.config.prove
        work = ProofJob(
            replace(tests.trial, python=python),
            base,
            pull.head_sha,
            pull.title,
            pull.body,
            settings.mutants,
            settings.minutes,
        )
        key = _digest_inputs(git, work)
        if stored := services.store.find(FinishedWork, kind="prove", id=key):
            data = json.loads(stored.body)
            earlier = data.get("made", "") if data.get("job") != job.record.id else ""
            result = TypeAdapter(ProofResult).validate_python(data["result"])
            return result, data["repeat"], earlier
        job.report_progress("running the tests with and without the change")
        result = prove_change(
            work, git=git, sandbox=services.sandbox(), say=job.report_progress, cancel=job.cancel
        )
        repeat = ""
        if result.capsule:
            fetch = pull.fetch_command
            repeat = services.store_capsule(self.repository, result.capsule, fetch=fetch)
        result = replace(result, capsule=None)
        made = f"`{pull.head_sha[:12]}` on {format_time(services.clock.now())}"
        body = {"result": asdict(result), "repeat": repeat, "job": job.record.id, "made": made}
        services.store.save(FinishedWork("prove", key, json.dumps(body)))
        return result, repeat, ""

    def _save_proof(self, result: ProofResult, check: CheckRun, failing: Sequence[str]) -> None:
        """Save for the dashboard what the check run says."""
        pull = self.pull
        body = {
            "version": 1,
            **asdict(replace(result, capsule=None)),
            "head": pull.head_sha,
            "title": pull.title,
            "author": pull.author,
            "headline": check.title,
            "conclusion": check.conclusion,
            "failing": list(failing[:20]),
        }
        self.services.store.save_document(
            ResultDocument(
                "prove",
                self.repository.full_name,
                pull.number,
                pull.head_sha,
                self.job.record.id,
                self.services.clock.now(),
                body,
            )
        )


def _digest_inputs(git: Mirror, work: ProofJob) -> str:
    """The same for heads of one base that differ in nothing but documents."""
    changed = find_changed_paths(git, work.base, work.head)
    trees = [
        (path, git.tree_id(work.head, path)) for path in sorted(changed) if not is_document(path)
    ]
    trial = work.trial
    parts = [
        work.base,
        trees,
        work.title,
        work.body,
        work.mutants,
        work.minutes,
        trial.command,
        trial.setup,
        trial.python,
        trial.image,
    ]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "replace")).hexdigest()
