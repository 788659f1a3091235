"""The operator's settings: environment variables, and a file if a command names one. Read once, passed as a value."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from regreen.domain.errors import ConfigError, ConfigProblem
from regreen.domain.github import GitHubServer

_DAYS_PER_MONTH = 31

ModelProvider = Literal["anthropic", "bedrock", "vertex", "foundry"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]


class Settings(BaseSettings):
    """The operator's settings, from environment variables or a named file."""

    model_config = SettingsConfigDict(
        env_prefix="REGREEN_", extra="ignore", frozen=True, populate_by_name=True
    )

    app_id: int | None = Field(None, description="The GitHub App's id.")
    private_key: SecretStr | None = Field(None, description="The App's private key, PEM.")
    private_key_path: Path | None = Field(
        None, description="A file that holds the App's private key."
    )
    webhook_secret: SecretStr | None = Field(
        None,
        description="The webhook's secret; while rotating, both, separated by a space: new one first.",
    )
    home: Path = Field(
        Path("~/.regreen"), description="Where databases, mirrors and logs are kept."
    )
    database_url: str | None = Field(
        None, description="SQLAlchemy URL; default: SQLite under `REGREEN_HOME`."
    )
    github_api_url: str = Field(
        GitHubServer().api_url,
        description="GitHub's REST API; for GHE.com https://api.SUBDOMAIN.ghe.com, for Enterprise Server https://HOST/api/v3.",
    )
    model: str = Field(
        "claude-sonnet-5-5", description="The model's name, as its provider calls it."
    )
    model_provider: ModelProvider = Field(
        "anthropic",
        description="Who serves the model: Anthropic or a compatible endpoint, or Amazon Bedrock, Google Vertex AI, Azure's Foundry (extras of these names; docs/models.md).",
    )
    model_effort: Effort | None = Field(
        None,
        description="How much the model spends on an answer, where it takes such a setting; default: as the model does by itself.",
    )
    fallback_model: str | None = Field(
        None, description="The model asked when the first one is overloaded."
    )
    anthropic_api_key: SecretStr | None = Field(
        None,
        validation_alias="ANTHROPIC_API_KEY",
        description="Key of the model endpoint; none: no model.",
    )
    anthropic_auth_token: SecretStr | None = Field(
        None,
        validation_alias="ANTHROPIC_AUTH_TOKEN",
        description="A bearer token for the model endpoint in place of the key.",
    )
    aws_bearer_token_bedrock: SecretStr | None = Field(
        None,
        validation_alias="AWS_BEARER_TOKEN_BEDROCK",
        description="Key of Amazon Bedrock, in place of AWS credentials.",
    )
    anthropic_foundry_api_key: SecretStr | None = Field(
        None,
        validation_alias="ANTHROPIC_FOUNDRY_API_KEY",
        description="Key of Azure's Foundry, in place of Microsoft Entra ID.",
    )
    model_price: str | None = Field(
        None,
        description="Price of `REGREEN_MODEL` as INPUT,OUTPUT in dollars per million tokens (`0,0`: free); required for a model that the table of prices does not list.",
    )
    anthropic_base_url: str | None = Field(
        None, validation_alias="ANTHROPIC_BASE_URL", description="An Anthropic-compatible endpoint."
    )
    sandbox: Literal["auto", "docker", "bwrap", "e2b"] = Field(
        "auto", description="Where foreign code runs; `e2b`: remotely, with `E2B_API_KEY`."
    )
    e2b_api_key: SecretStr | None = Field(
        None,
        validation_alias="E2B_API_KEY",
        description="Key of the remote sandbox; its SDK reads it from the environment.",
    )
    sandbox_runtime: str | None = Field(
        None, description="OCI runtime for Docker boxes (runsc, kata); for `e2b` the template."
    )
    sandbox_approximate: bool = Field(
        False,
        description="Also take a sandbox whose limits are approximate, where `REGREEN_GITHUB_API_URL` is this machine's loopback, as in the demo.",
    )
    setup_hosts: str = Field(
        "",
        description="Private hosts (`host` or `host:port`, separated by commas) that a setup may reach, besides the configured package indexes.",
    )
    environment_days: float = Field(
        14.0, gt=0, description="Days after which a prepared environment goes that nobody used."
    )
    environment_gigabytes: int = Field(
        20, ge=1, description="What prepared environments may take together; the longest unused go."
    )
    environment_count: int = Field(200, ge=1, description="How many of them are kept.")
    public_url: str | None = Field(None, description="Where people reach the dashboard.")
    dashboard_auth: SecretStr | None = Field(
        None,
        description="Token that opens the dashboard; none: one is made and kept in `REGREEN_HOME/dashboard-token`.",
    )
    client_id: str | None = Field(
        None,
        description="The App's client id: people sign in to the dashboard with GitHub, and see what they may read there.",
    )
    client_secret: SecretStr | None = Field(None, description="The App's client secret.")
    log_format: Literal["text", "json"] = Field(
        "text", description="Log lines for people, or as JSON with job, repository and number."
    )
    otlp_endpoint: str | None = Field(
        None,
        validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        description="OpenTelemetry collector (OTLP over HTTP) that traces are sent to; needs `regreen[traces]`.",
    )
    otlp_headers: SecretStr | None = Field(
        None,
        validation_alias="OTEL_EXPORTER_OTLP_HEADERS",
        description="Headers for that collector, `NAME=VALUE,...`; OpenTelemetry reads them from the environment.",
    )
    review_delay_s: float = Field(
        60.0, ge=0, description="Seconds after the last push before a review starts."
    )
    digest_url: SecretStr | None = Field(
        None,
        description='Webhook (Slack, Mattermost, Teams or your own, as `{"text": ...}`) that gets what needs a person, each Monday at 7 UTC.',
    )
    observe: str = Field(
        "",
        description="Repositories (`owner/name`, `owner/*` or `*`, separated by commas) where nothing is written, whatever `mode` says.",
    )
    history_days: int = Field(
        90, ge=7, description="Days for which deliveries, ended jobs and model answers are kept."
    )
    results_days: int = Field(
        730,
        ge=0,
        description="Days for which reviews, repairs, bisections and what they cost are kept; 0: for ever.",
    )
    jobs_per_installation: int = Field(
        16,
        ge=1,
        description="How many reviews, and how many repairs and bisections, of one installation run at once.",
    )

    @field_validator("results_days")
    @classmethod
    def _require_a_month_or_forever(cls, value: int) -> int:
        if 0 < value < _DAYS_PER_MONTH:
            message = f"at least {_DAYS_PER_MONTH} days (budgets count a month), or 0: for ever"
            raise ValueError(message)
        return value

    @field_validator("home")
    @classmethod
    def _expand_path(cls, value: Path) -> Path:
        return value.expanduser()

    @field_validator("github_api_url")
    @classmethod
    def _check_api_address(cls, value: str) -> str:
        parts = urlsplit(value)
        host = parts.hostname or ""
        if parts.scheme not in {"https", "http"} or not host:
            raise ValueError("write an address, such as https://HOST/api/v3")
        if host == "github.com" or (host.endswith(".ghe.com") and not host.startswith("api.")):
            message = f"that is where people go; the API is at https://api.{host}"
            raise ValueError(message)
        return value.rstrip("/")

    def is_observed(self, repo: str) -> bool:
        """Whether the operator lets nothing be written to a repository."""
        patterns = (pattern.strip().lower() for pattern in self.observe.split(","))
        return any(fnmatchcase(repo.lower(), pattern) for pattern in patterns if pattern)

    @property
    def github(self) -> GitHubServer:
        """The GitHub that the App belongs to."""
        return GitHubServer(self.github_api_url)

    @property
    def needs_exact_sandbox(self) -> bool:
        """Whether a sandbox with approximate limits is refused: wherever other people's code may come from."""
        is_local = urlsplit(self.github_api_url).hostname in {"127.0.0.1", "::1", "localhost"}
        return not (self.sandbox_approximate and is_local)

    @property
    def database(self) -> str:
        """The database's URL, or the default."""
        return self.database_url or f"sqlite:///{self.home / 'regreen.sqlite'}"

    @property
    def has_model(self) -> bool:
        """Whether a model is configured: a cloud's, or a key, a token, or an endpoint that may need none."""
        if self.model_provider != "anthropic":
            return True
        given = (self.anthropic_api_key, self.anthropic_auth_token, self.anthropic_base_url)
        return any(given)  # an empty variable is none

    def secret_values(self) -> tuple[str, ...]:
        """Every secret value in the settings, whatever it looks like."""
        secrets = (
            self.webhook_secret,
            self.anthropic_api_key,
            self.anthropic_auth_token,
            self.aws_bearer_token_bedrock,
            self.anthropic_foundry_api_key,
            self.e2b_api_key,
            self.dashboard_auth,
            self.client_secret,
            self.digest_url,
        )
        # during a rotation the webhook has two secrets
        values = [
            part
            for secret in secrets
            if secret is not None
            for part in secret.get_secret_value().split()
        ]
        headers = self.otlp_headers.get_secret_value() if self.otlp_headers else ""
        for pair in headers.split(","):
            value = pair.partition("=")[2].strip()
            # "Bearer TOKEN": the token too
            values += [
                value,
                unquote(value),
                *unquote(value).split()[1:],
            ]
        password = urlsplit(self.database_url or "").password or ""
        key = [line for line in (self.private_key_pem() or "").splitlines() if "-----" not in line]
        return (*values, password, unquote(password), *key)

    def private_key_pem(self) -> str | None:
        """The App's private key, from the setting or the file it names.

        Raises:
            ConfigError: the file cannot be read.
        """
        if self.private_key is not None:
            return self.private_key.get_secret_value().replace("\\n", "\n")
        if self.private_key_path is None:
            return None
        try:
            return self.private_key_path.expanduser().read_text()
        except OSError as error:
            message = f"cannot read {self.private_key_path}: {error.strerror}"
            raise ConfigError((ConfigProblem(0, "REGREEN_PRIVATE_KEY_PATH", message),)) from error
