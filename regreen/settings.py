"""What the operator sets, by environment variables or a `.env` file. Read once and passed on as a value."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from regreen.errors import ConfigError, Problem

_MONTH = 31


class Settings(BaseSettings):
    """What the operator sets, by environment variables or a `.env` file."""

    model_config = SettingsConfigDict(
        env_prefix="REGREEN_", env_file=".env", extra="ignore", frozen=True, populate_by_name=True
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
        "https://api.github.com",
        description="GitHub's REST API; for Enterprise Server https://HOST/api/v3.",
    )
    model: str = Field("claude-sonnet-5-5", description="The model's name.")
    fallback_model: str | None = Field(
        None, description="The model asked when the first one is overloaded."
    )
    anthropic_api_key: SecretStr | None = Field(
        None,
        validation_alias="ANTHROPIC_API_KEY",
        description="Key of the model endpoint; none: no model.",
    )
    anthropic_base_url: str | None = Field(
        None, validation_alias="ANTHROPIC_BASE_URL", description="An Anthropic-compatible endpoint."
    )
    sandbox: Literal["auto", "docker", "bwrap"] = Field(
        "auto", description="Where foreign code runs."
    )
    sandbox_runtime: str | None = Field(
        None, description="OCI runtime for Docker boxes (runsc, kata)."
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
        None, description="Token that opens the dashboard; none: from this machine only."
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
    review_delay_s: float = Field(
        60.0, ge=0, description="Seconds after the last push before a review starts."
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
    def _a_month(cls, value: int) -> int:
        if 0 < value < _MONTH:
            message = f"at least {_MONTH} days (budgets count a month), or 0: for ever"
            raise ValueError(message)
        return value

    @field_validator("home")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        return value.expanduser()

    @property
    def database(self) -> str:
        """The database's URL, the default included."""
        return self.database_url or f"sqlite:///{self.home / 'regreen.sqlite'}"

    @property
    def has_model(self) -> bool:
        """Whether there is a model to ask: a key, or an endpoint that may need none."""
        return self.anthropic_api_key is not None or self.anthropic_base_url is not None

    def secrets(self) -> tuple[str, ...]:
        """Every value among them that must not be shown anywhere, whatever it looks like."""
        given = (
            self.webhook_secret,
            self.anthropic_api_key,
            self.dashboard_auth,
            self.client_secret,
        )
        # while it is rotated the webhook has two
        found = [
            part for one in given if one is not None for part in one.get_secret_value().split()
        ]
        password = urlsplit(self.database_url or "").password or ""
        key = [line for line in (self.private_key_pem() or "").splitlines() if "-----" not in line]
        return (*found, password, unquote(password), *key)

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
            raise ConfigError((Problem(0, "REGREEN_PRIVATE_KEY_PATH", message),)) from error
