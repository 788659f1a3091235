"""Actions that may be left out, with what they are taken to have said, and those that cannot be had, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

_CACHE = "caches start empty"
_REPORT = "reports to a service"
_GITHUB = "talks to GitHub"
SKIPPED: dict[str, str] = {
    "peter-evans/create-pull-request": _GITHUB, "tiangolo/pr-submit": _GITHUB, "stefanzweifel/git-auto-commit-action": _GITHUB,
    "pypa/gh-action-pypi-publish": "publishes", "softprops/action-gh-release": "publishes", "casperdcl/deploy-pypi": "publishes",
    "peaceiris/actions-gh-pages": "publishes", "actions/deploy-pages": "publishes", "actions/configure-pages": "publishes",
    "samuelcolvin/check-python-version": "checks a release's tag", "ncipollo/release-action": "publishes",
    "actions/cache": _CACHE, "actions/cache/restore": _CACHE, "actions/cache/save": _CACHE,
    "swatinem/rust-cache": _CACHE, "useblacksmith/cache": _CACHE, "hendrikmuhs/ccache-action": _CACHE,
    "mozilla-actions/sccache-action": _CACHE, "awalsh128/cache-apt-pkgs-action": "system packages come with the image",
    "codecov/codecov-action": _REPORT, "codecov/test-results-action": _REPORT, "coverallsapp/github-action": _REPORT,
    "codspeedhq/action": _REPORT, "deepsourcelabs/test-coverage-action": _REPORT, "qltysh/qlty-action/coverage": _REPORT,
    "paambaati/codeclimate-action": _REPORT, "sonarsource/sonarcloud-github-action": _REPORT,
    "sonarsource/sonarqube-scan-action": _REPORT, "datadog/test-visibility-github-action": _REPORT,
    "5monkeys/cobertura-action": _REPORT, "irongut/codecoveragesummary": _REPORT, "mikepenz/action-junit-report": _REPORT,
    "dorny/test-reporter": _REPORT, "enricomi/publish-unit-test-result-action": _REPORT, "test-summary/action": _REPORT,
    "py-cov-action/python-coverage-comment-action": _REPORT, "insightsengineering/coverage-action": _REPORT,
    "pmeier/pytest-results-action": _REPORT, "bencherdev/bencher": _REPORT, "benchmark-action/github-action-benchmark": _REPORT,
    "actions/upload-artifact": "keeps files for people", "actions/upload-pages-artifact": "keeps files for people",
    "step-security/harden-runner": "guards GitHub's runner", "actions/github-script": _GITHUB, "actions/labeler": _GITHUB,
    "marocchino/sticky-pull-request-comment": _GITHUB, "peter-evans/create-or-update-comment": _GITHUB,
    "peter-evans/find-comment": _GITHUB, "thollander/actions-comment-pull-request": _GITHUB,
    "rlespinasse/github-slug-action": "names for GitHub's refs", "styfle/cancel-workflow-action": _GITHUB,
    "tj-actions/changed-files": "everything counts as changed", "dorny/paths-filter": "everything counts as changed",
    "jlumbroso/free-disk-space": "frees GitHub's disk", "easimon/maximize-build-space": "frees GitHub's disk",
    "endbug/add-and-commit": _GITHUB, "slackapi/slack-github-action": "tells people", "8398a7/action-slack": "tells people",
    "crazy-max/ghaction-dump-context": "prints", "hmarr/debug-action": "prints", "mxschmitt/action-tmate": "a shell for people",
    "reviewdog/action-setup": _REPORT, "rui314/setup-mold": "a faster linker", "github/codeql-action/upload-sarif": _REPORT,
    "liskin/gh-problem-matcher-wrap": "marks lines", "pre-commit-ci/lite-action": _GITHUB,
    "pyvista/setup-headless-display-action": "a display", "aganders3/headless-gui": "a display", "re-actors/alls-green": _GITHUB,
    "technote-space/get-diff-action": "everything counts as changed", "actions/attest-build-provenance": "signs",
    "kenchan0130/actions-system-info": "prints", "sebastian-palma/show-actions-summary": "prints",
    "google-github-actions/release-please-action": _GITHUB, "googleapis/release-please-action": _GITHUB, "actions/stale": _GITHUB,
    "amannn/action-semantic-pull-request": _GITHUB, "actions/dependency-review-action": _GITHUB, "ossf/scorecard-action": _REPORT,
    "wagoid/commitlint-github-action": "reads the history", "jamesives/github-pages-deploy-action": "publishes",
    "gradle/wrapper-validation-action": "checks a download", "gradle/actions/wrapper-validation": "checks a download",
    "changesets/action": "publishes", "release-drafter/release-drafter": _GITHUB, "actions/first-interaction": _GITHUB,
    "actions/add-to-project": _GITHUB, "dependabot/fetch-metadata": _GITHUB, "rustsec/audit-check": _REPORT,
    "shogo82148/actions-goveralls": _REPORT, "preactjs/compressed-size-action": _REPORT, "andresz1/size-limit-action": _REPORT,
    "lycheeverse/lychee-action": "follows links", "gaurav-nelson/github-action-markdown-link-check": "follows links",
    "trufflesecurity/trufflehog": _REPORT, "gitleaks/gitleaks-action": _REPORT, "actions/attest": "signs", "sigstore/cosign-installer": "signs",
    "kolpav/purge-artifacts-action": _GITHUB, "c-hive/gha-yarn-cache": _CACHE, "stellar/actions/rust-cache": _CACHE,
    "actions/upload-artifact/merge": "keeps files for people", "mishakav/pytest-coverage-comment": _REPORT, "orgoro/coverage": _REPORT,
    "davelosert/vitest-coverage-report-action": _REPORT, "artiomtr/jest-coverage-report-action": _REPORT,
    "jwgmeligmeyling/checkstyle-github-action": _REPORT, "actions-rs/audit-check": _REPORT, "actions-rs/grcov": _REPORT,
    "mheap/github-action-required-labels": _GITHUB, "peter-evans/repository-dispatch": _GITHUB, "zomzog/changelog-checker": _GITHUB,
    "fkirc/skip-duplicate-actions": _GITHUB, "dangoslen/dependabot-changelog-helper": _GITHUB, "actions-js/push": _GITHUB,
    "insightsengineering/disk-space-reclaimer": "frees GitHub's disk", "lhotari/action-upterm": "a shell for people",
    "crazy-max/ghaction-github-runtime": "names of GitHub's caches", "simenb/github-actions-cpu-cores": "counts processors",
    "nrwl/nx-set-shas": "names for GitHub's refs", "crate-ci/committed": "reads the history", "hendrikmuis/ccache-action": _CACHE,
}  # fmt: skip
SKIPPED_OUTPUTS: dict[str, Mapping[str, str]] = {
    "tj-actions/changed-files": {
        "any_changed": "true",
        "any_modified": "true",
        "only_changed": "true",
    },
    "dorny/paths-filter": {},
    "simenb/github-actions-cpu-cores": {"count": "2"},  # as many as a box has
    "fkirc/skip-duplicate-actions": {"should_skip": "false"},
    "actions/cache": {"cache-hit": ""},
    "actions/cache/restore": {"cache-hit": ""},
}

_DOCKER = "needs a container engine inside the sandbox"
REFUSED: dict[str, str] = {
    "actions/download-artifact": "needs what another job made", "dawidd6/action-download-artifact": "needs what another run made",
    "useblacksmith/setup-docker-builder": _DOCKER, "taiki-e/setup-cross-toolchain-action": "builds for another processor",
    "super-linter/super-linter": _DOCKER, "github/super-linter": _DOCKER, "aquasecurity/trivy-action": _DOCKER,
    "homebrew/actions/setup-homebrew": "Homebrew is not to be had in the sandbox", "microsoft/setup-msbuild": "another operating system",
    "docker/setup-buildx-action": _DOCKER, "docker/build-push-action": _DOCKER, "docker/login-action": _DOCKER,
    "docker/setup-qemu-action": _DOCKER, "docker/metadata-action": _DOCKER, "docker/bake-action": _DOCKER,
    "pypa/cibuildwheel": _DOCKER, "pyo3/maturin-action": "builds in a container of its own",
    "conda-incubator/setup-miniconda": "conda's channels are not reached from the sandbox",
    "mamba-org/setup-micromamba": "conda's channels are not reached from the sandbox",
    "mamba-org/provision-with-micromamba": "conda's channels are not reached from the sandbox",
    "cypress-io/github-action": "needs a browser",
    "github/codeql-action/init": "CodeQL is not to be had in the sandbox",
    "github/codeql-action/analyze": "CodeQL is not to be had in the sandbox",
        "google-github-actions/auth": "needs a credential", "aws-actions/configure-aws-credentials": "needs a credential",
    "azure/login": "needs a credential", "webfactory/ssh-agent": "needs a credential", "tibdex/github-app-token": "needs a credential",
    "crazy-max/ghaction-setup-docker": _DOCKER, "cross-platform-actions/action": "another operating system",
    "determinatesystems/nix-installer-action": "Nix is not to be had in the sandbox",
    "actions/create-github-app-token": "needs a credential",
    "cachix/install-nix-action": "Nix is not to be had in the sandbox", "vmactions/freebsd-vm": "another operating system",
    "supercharge/redis-github-action": _DOCKER, "supercharge/mongodb-github-action": _DOCKER,
    "uraimo/run-on-arch-action": "another processor", "r-lib/actions/setup-r": "R is not to be had in the sandbox",
}  # fmt: skip
