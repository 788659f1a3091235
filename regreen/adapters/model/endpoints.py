"""Where a model is asked: Anthropic's endpoint or a compatible one, Amazon Bedrock, Google Vertex AI, Azure's Foundry.

Each is spoken to by the anthropic SDK's own client. Credentials, regions and addresses of the clouds are found as their
own SDKs find them: in the environment, in their configuration files, or from the machine's role.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from regreen.adapters.model.prices import ModelPrice, find_listed_model, load_table, parse_price
from regreen.domain.errors import UserError
from regreen.domain.settings import Effort, ModelProvider, Settings

if TYPE_CHECKING:
    from anthropic import Anthropic, AnthropicBedrock, AnthropicVertex

ModelOption = Literal["effort", "strict"]

# What an endpoint's refusal (400, 422) of an option speaks of.
_OPTION_WORDS: dict[ModelOption, tuple[str, ...]] = {
    "effort": ("effort", "output_config"),
    "strict": ("strict", "schema", "grammar", "structured_output", "structured output"),
}
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_AZURE_SCOPE = "https://ai.azure.com/.default"


@dataclass(frozen=True, slots=True)
class _Cloud:
    """What a provider's client needs: the module of its extra, and what an operator sets."""

    module: str
    remedy: str
    errors: tuple[str, ...]
    stream_errors: tuple[str, ...] = ()


_CLOUDS: dict[ModelProvider, _Cloud] = {
    "bedrock": _Cloud(
        "boto3",
        "set AWS_REGION, and credentials: AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role of the machine",
        ("botocore.exceptions.BotoCoreError",),
        ("botocore.eventstream.ParserError", "botocore.parsers.ResponseParserError"),
    ),
    "vertex": _Cloud(
        "google.auth.transport.requests",
        "set CLOUD_ML_REGION and ANTHROPIC_VERTEX_PROJECT_ID, and credentials: GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login`, or a service account of the machine",
        ("google.auth.exceptions.GoogleAuthError",),
    ),
    "foundry": _Cloud(
        "azure.identity",
        "set ANTHROPIC_FOUNDRY_RESOURCE, and credentials: ANTHROPIC_FOUNDRY_API_KEY, or those of Microsoft Entra ID (`az login`, AZURE_CLIENT_ID and its like, a managed identity)",
        ("azure.core.exceptions.AzureError",),
    ),
}


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """Which model is asked, where and at what price.

    Attributes:
        name: the model's name, as the provider calls it; `fallback` is asked when the first is overloaded or gone.
        api_key: the endpoint's key; an endpoint on loopback may take any.
        auth_token: a bearer token in place of the key, as gateways want it.
        base_url: an Anthropic-compatible endpoint; None: the provider's own.
        price: the price of `name`, and of a fallback that is not listed; None: the table's.
        effort: how much the model should spend on an answer; None: the model's own default.
        refused: options that a model turned out to refuse; shared by all who hold this endpoint.
    """

    name: str
    fallback: str | None = None
    provider: ModelProvider = "anthropic"
    api_key: str | None = field(default=None, repr=False)
    auth_token: str | None = field(default=None, repr=False)
    base_url: str | None = None
    price: ModelPrice | None = None
    effort: Effort | None = None
    refused: set[tuple[str, ModelOption]] = field(default_factory=set, compare=False)

    @classmethod
    def from_settings(cls, settings: Settings) -> ModelEndpoint | None:
        """The endpoint that the operator configured; None: no model.

        Raises:
            UserError: the price is invalid or missing, or the provider's extra is not installed.
        """
        if not settings.has_model:
            return None
        provider = settings.model_provider
        key = {
            "anthropic": settings.anthropic_api_key,
            "bedrock": settings.aws_bearer_token_bedrock,
            "foundry": settings.anthropic_foundry_api_key,
        }.get(provider)
        token = settings.anthropic_auth_token
        endpoint = cls(
            name=settings.model,
            fallback=settings.fallback_model,
            provider=provider,
            api_key=key.get_secret_value() if key else None,
            auth_token=token.get_secret_value() if token else None,
            base_url=settings.anthropic_base_url,
            price=parse_price(settings.model_price) if settings.model_price else None,
            effort=settings.model_effort,
        )
        for name in filter(None, (endpoint.name, endpoint.fallback)):
            endpoint.price_of(name)
        return endpoint

    @property
    def place(self) -> str:
        """The endpoint in one word or address, for people and for keeping answers apart."""
        return (self.base_url or "") if self.provider == "anthropic" else self.provider

    def price_of(self, name: str) -> ModelPrice:
        """The price of a model at this endpoint.

        Raises:
            UserError: the model is not listed, and no price is set.
        """
        listed = find_listed_model(name)
        if self.price is not None and (name == self.name or listed is None):
            return self.price
        if listed is None:
            message = (
                f"no price is known for the model {name!r} (table of {load_table().date}), and budgets need one; "
                "set REGREEN_MODEL_PRICE=INPUT,OUTPUT in dollars per million tokens (0,0: free)"
            )
            raise UserError(message)
        return listed.price * (load_table().regional_factor if self._is_regional(name) else 1.0)

    def _is_regional(self, name: str) -> bool:
        if self.provider == "vertex":
            return os.environ.get("CLOUD_ML_REGION") != "global"
        return self.provider == "bedrock" and "global." not in name

    def options_for(self, name: str) -> set[ModelOption]:
        """What to send beyond the plain request: what is documented for the model here, and was not refused."""
        listed = find_listed_model(name)
        wanted: set[ModelOption] = set()
        if self.effort is not None and (listed is None or listed.effort):
            wanted.add("effort")
        if listed is not None and listed.strict and self.provider in load_table().strict_providers:
            wanted.add("strict")
        return {option for option in wanted if (name, option) not in self.refused}

    def refuse(self, name: str, sent: set[ModelOption], reason: str) -> bool:
        """Remember the options of a request that its refusal speaks of; whether there are any."""
        lowered = reason.lower()
        named = {o for o in sent if any(word in lowered for word in _OPTION_WORDS[o])}
        self.refused.update((name, option) for option in named)
        return bool(named)

    @property
    def remedy(self) -> str:
        """What to look at when the endpoint does not take the credentials."""
        cloud = _CLOUDS.get(self.provider)
        return cloud.remedy if cloud is not None else "check ANTHROPIC_API_KEY"

    @property
    def address_remedy(self) -> str:
        """What to look at when nobody answers as a model does."""
        if self.provider == "anthropic":
            return "check ANTHROPIC_BASE_URL"
        return f"check the region and ANTHROPIC_{self.provider.upper()}_BASE_URL"

    def credential_errors(self) -> tuple[type[Exception], ...]:
        """What the provider's own SDK raises when credentials cannot be had or renewed."""
        cloud = _CLOUDS.get(self.provider)
        return _load_errors(cloud.errors) if cloud is not None else ()

    def stream_errors(self) -> tuple[type[Exception], ...]:
        """What the provider's own SDK raises on a body that is no stream of its events."""
        cloud = _CLOUDS.get(self.provider)
        return _load_errors(cloud.stream_errors) if cloud is not None else ()

    def open_client(self, **options: Any) -> Anthropic | AnthropicBedrock | AnthropicVertex:
        """The SDK's client, with credentials at hand; nothing is sent to the model.

        Args:
            options: the client's timeout, retries and HTTP client.

        Raises:
            UserError: the extra, credentials, a region or a project is missing.
        """
        if self.provider == "anthropic":
            from anthropic import Anthropic

            # The client sends no key beside a token, and refuses to work with neither.
            key = self.api_key or (None if self.auth_token else "none")
            return Anthropic(
                api_key=key, auth_token=self.auth_token, base_url=self.base_url, **options
            )
        cloud = _CLOUDS[self.provider]
        self._require_extra(cloud)
        missing: tuple[type[Exception], ...] = (ValueError, *self.credential_errors())
        for name in ("google.auth", "azure.identity"):  # the error says what they warn of, and once
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            return self._open_cloud_client(options)
        except missing as error:
            reason = " ".join(str(error).split()).rstrip(".")[:200]
            message = f"REGREEN_MODEL_PROVIDER={self.provider}: {reason}; {cloud.remedy}"
            raise UserError(message) from error

    def _require_extra(self, cloud: _Cloud) -> None:
        if self.provider == "foundry" and self.api_key is not None:
            return  # a key needs no SDK of Azure's
        try:
            import_module(cloud.module)
        except ImportError as error:
            message = f"REGREEN_MODEL_PROVIDER={self.provider} needs {cloud.module.partition('.transport')[0]}: install regreen[{self.provider}]"
            raise UserError(message) from error

    def _open_cloud_client(
        self, options: dict[str, Any]
    ) -> Anthropic | AnthropicBedrock | AnthropicVertex:
        import anthropic

        match self.provider:
            case "bedrock":
                import boto3

                if self.api_key is None and boto3.Session().get_credentials() is None:
                    raise ValueError("there are no AWS credentials")
                return anthropic.AnthropicBedrock(api_key=self.api_key, **options)
            case "vertex":
                import google.auth

                credentials, project = google.auth.default(scopes=[_GOOGLE_SCOPE])
                if not (project := os.environ.get("ANTHROPIC_VERTEX_PROJECT_ID") or project):
                    raise ValueError("there is no project")
                return anthropic.AnthropicVertex(
                    project_id=project, credentials=credentials, **options
                )
            case "foundry" if self.api_key is not None:
                return anthropic.AnthropicFoundry(api_key=self.api_key, **options)
            case "foundry":
                from azure.identity import DefaultAzureCredential, get_bearer_token_provider

                token = get_bearer_token_provider(DefaultAzureCredential(), _AZURE_SCOPE)
                token()
                return anthropic.AnthropicFoundry(azure_ad_token_provider=token, **options)
            case "anthropic":
                raise AssertionError("it has a client of its own")


def _load_errors(names: tuple[str, ...]) -> tuple[type[Exception], ...]:
    places = (name.rpartition(".") for name in names)
    try:
        return tuple(getattr(import_module(module), name) for module, _, name in places)
    except ImportError:  # what is not installed raises nothing
        return ()
