"""The shapes of credentials that can be known by sight."""

from __future__ import annotations

import base64
import binascii
import json
import re
import string
import zlib
from collections.abc import Callable
from dataclasses import dataclass

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of credential: a cheap text that must occur, its pattern, and what else must hold.

    `group` 1 of the pattern is the value where there is a group. `check` gives the confidence, 0 to drop it.
    """

    kind: str
    hint: str
    pattern: re.Pattern[str]
    confidence: float = 0.95
    check: Callable[[str], float] | None = None


def _known(
    kind: str,
    hint: str,
    pattern: str,
    confidence: float = 0.95,
    check: Callable[[str], float] | None = None,
) -> Format:
    return Format(
        kind, hint, re.compile(rf"(?<![A-Za-z0-9_]){pattern}(?![A-Za-z0-9_])"), confidence, check
    )


def crc32_holds(token: str) -> bool:
    """Whether the last six letters are the checksum of the rest, as GitHub and npm write it."""
    body = token.rpartition("_")[2]
    number = zlib.crc32(body[:-6].encode())
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(6, "0") == body[-6:]


def _checksummed(token: str) -> float:
    """A wrong checksum still is worth a look: nobody types 36 random letters for fun."""
    return 0.99 if crc32_holds(token) else 0.89


def _decoded(part: str) -> object:
    try:
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None


def _jwt(token: str) -> float:
    """A JSON web token whose header and claims can be read, and that is not the well-known example."""
    header, claims = (_decoded(part) for part in token.split(".")[:2])
    if not isinstance(header, dict) or "alg" not in header or str(header["alg"]).lower() == "none":
        return 0.0
    if not isinstance(claims, dict):
        return 0.0
    if str(claims.get("sub")) == "1234567890" or "example" in json.dumps(claims)[:2000].lower():
        return 0.0
    return 0.88


def _app_jwt(token: str) -> float:
    return 0.97 if isinstance(_decoded(token.split("_", 2)[2].partition(".")[0]), dict) else 0.85


FORMATS: tuple[Format, ...] = (
    _known("GitHub token", "gh", r"(?:ghp|gho|ghu|ghr|ghs)_[A-Za-z0-9]{36}", check=_checksummed),
    _known("GitHub App token", "ghs_", r"ghs_\d+_[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}", check=_app_jwt),
    _known("GitHub fine-grained token", "github_pat_", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}", 0.98),
    _known("GitLab token", "gl", r"(?:glpat|gldt|glrt|glcbt|glptt|glft|glsoat)-[\w-]{20,64}"),
    _known("AWS access key id", "A", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}", 0.93),
    _known("Google API key", "AIza", r"AIza[\w-]{35}"),
    _known("Google OAuth secret", "GOCSPX-", r"GOCSPX-[\w-]{28}"),
    _known("Google access token", "ya29.", r"ya29\.[\w-]{40,400}", 0.9),
    _known("Azure storage key", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{86}==)"),
    _known("Azure shared access key", "SharedAccessKey=", r"SharedAccessKey=([A-Za-z0-9+/]{43}=)"),
    _known("Azure client secret", "Q~", r"[A-Za-z0-9_.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    _known("Slack token", "xox", r"xox[abposre]-(?:\d+-)?[A-Za-z0-9-]{20,200}"),
    _known("Slack app token", "xapp-", r"xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{64}"),
    _known("Slack webhook", "hooks.slack.com", r"https://hooks\.slack\.com/services/T\w{8,12}/B\w{8,12}/(\w{24})"),
    _known("Discord webhook", "/api/webhooks/", r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d{17,20}/([\w-]{60,80})"),
    _known("Discord bot token", ".", r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}", 0.85),
    _known("Telegram bot token", ":AA", r"\d{8,10}:AA[\w-]{33}"),
    _known("Stripe key", "k_", r"(?:sk|rk)_live_[A-Za-z0-9]{16,247}"),
    _known("Stripe test key", "k_test_", r"(?:sk|rk)_test_[A-Za-z0-9]{16,247}", 0.82),
    _known("Stripe webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/]{32,64}={0,2}", 0.88),
    _known("npm token", "npm_", r"npm_[A-Za-z0-9]{36}", check=_checksummed),
    _known("PyPI token", "pypi-AgEI", r"pypi-AgEI[\w-]{50,1000}", 0.98),
    _known("RubyGems key", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    _known("cargo registry token", "cio", r"cio[A-Za-z0-9]{32}", 0.85),
    _known("Docker Hub token", "dckr_pat_", r"dckr_pat_[\w-]{27,32}"),
    _known("OpenAI key", "sk-", r"sk-(?:proj-|svcacct-|admin-)?[\w-]{20,120}T3BlbkFJ[\w-]{20,120}"),
    _known("OpenAI key", "sk-proj-", r"sk-proj-[\w-]{40,200}", 0.93),
    _known("Anthropic key", "sk-ant-", r"sk-ant-(?:api|admin|oat|ort)\d\d-[\w-]{60,120}"),
    _known("Hugging Face token", "hf_", r"hf_[A-Za-z]{34}"),
    _known("SendGrid key", "SG.", r"SG\.[\w-]{22}\.[\w-]{43}"),
    _known("Mailgun key", "key-", r"key-[a-f0-9]{32}", 0.82),
    _known("Mailchimp key", "-us", r"[a-f0-9]{32}-us\d{1,2}", 0.9),
    _known("Twilio key", "SK", r"SK[a-f0-9]{32}", 0.82),
    _known("DigitalOcean token", "do", r"do[opr]_v1_[a-f0-9]{64}"),
    _known("Shopify token", "shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _known("Square token", "sq0", r"sq0(?:atp|csp)-[\w-]{22,43}"),
    _known("Square token", "EAAA", r"EAAA[\w-]{60}", 0.85),
    _known("Databricks token", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?"),
    _known("HashiCorp Vault token", "hv", r"hv[sbr]\.[\w-]{24,200}", 0.9),
    _known("Terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70}"),
    _known("Atlassian token", "ATATT3", r"ATATT3[\w=-]{60,300}"),
    _known("Linear key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}"),
    _known("Notion token", "ntn_", r"ntn_[A-Za-z0-9]{46}"),
    _known("Grafana token", "gl", r"glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}"),
    _known("Sentry token", "sntry", r"sntry[su]_[\w+/=-]{40,300}"),
    _known("New Relic key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _known("Heroku key", "HRKU-", r"HRKU-[\w-]{36,70}"),
    _known("Heroku key", "HEROKU_", r"HEROKU_(?:API_)?(?:KEY|TOKEN)[\"']?\s{0,4}[:=]\s{0,4}[\"']?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", 0.9),
    _known("Pulumi token", "pul-", r"pul-[a-f0-9]{40}"),
    _known("PlanetScale token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.-]{32,64}"),
    _known("Postman key", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _known("Supabase key", "sbp_", r"sbp_[a-f0-9]{40}"),
    _known("Doppler token", "dp.", r"dp\.(?:pt|st|ct|sa|scim)\.[A-Za-z0-9._-]{40,60}"),
    _known("Fly.io token", "FlyV1 ", r"FlyV1 fm\d_[\w+/=,-]{60,1000}"),
    _known("Groq key", "gsk_", r"gsk_[A-Za-z0-9]{52}"),
    _known("Replicate token", "r8_", r"r8_[A-Za-z0-9]{37}"),
    _known("age secret key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", 0.97),
    _known("Facebook token", "EAA", r"EAA[A-Z][A-Za-z0-9]{80,250}", 0.85),
    _known("Dropbox token", "sl.", r"sl\.[\w-]{130,160}", 0.9),
    _known("Netlify token", "nfp_", r"nfp_[A-Za-z0-9]{36,40}"),
    _known("Sonar token", "sq", r"sq[pua]_[a-f0-9]{40}"),
    _known("Airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _known("Figma token", "figd_", r"figd_[\w-]{38,46}"),
    _known("Dynatrace token", "dt0c01.", r"dt0[a-z]\d\d\.[A-Z2-7]{24}\.[A-Z2-7]{64}"),
    _known("Prefect key", "pn", r"pn[ub]_[a-z0-9]{36}"),
    _known("xAI key", "xai-", r"xai-[A-Za-z0-9]{70,90}"),
    _known("Perplexity key", "pplx-", r"pplx-[A-Za-z0-9]{40,60}"),
    _known("OpenRouter key", "sk-or-", r"sk-or-v1-[a-f0-9]{64}"),
    _known("NVIDIA key", "nvapi-", r"nvapi-[\w-]{60,70}"),
    _known("LangSmith key", "lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    _known("Brevo key", "xkeysib-", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _known("Resend key", "re_", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}", 0.88),
    _known("Contentful token", "CFPAT-", r"CFPAT-[\w-]{43}"),
    _known("Duffel token", "duffel_", r"duffel_live_[\w-]{43}"),
    _known("Flutterwave key", "FLWSECK", r"FLWSECK-[a-f0-9]{32}-X"),
    _known("EasyPost key", "EZAK", r"EZAK[A-Za-z0-9]{54}"),
    _known("Braintree token", "access_token$", r"access_token\$production\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    _known("Tailscale key", "tskey-", r"tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{20,40}"),
    _known("NuGet key", "oy2", r"oy2[a-z0-9]{43}", 0.9),
    _known("1Password token", "ops_eyJ", r"ops_eyJ[\w-]{80,2000}"),
    _known("Mapbox secret token", "sk.eyJ", r"sk\.eyJ[\w-]{40,200}\.[\w-]{20,30}"),
    _known("Firebase server key", "AAAA", r"AAAA[\w-]{7}:[\w-]{130,150}"),
    _known("Asana token", "1/", r"1/\d{14,18}:[a-f0-9]{32}"),
    _known("LaunchDarkly key", "sdk-", r"sdk-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", 0.85),
    _known("Clojars token", "CLOJARS_", r"CLOJARS_[a-z0-9]{60}"),
    _known("Typeform token", "tfp_", r"tfp_[\w-]{40,64}"),
    _known("Bitbucket password", "ATBB", r"ATBB[A-Za-z0-9]{24,36}"),
    _known("GitLab runner token", "GR1348941", r"GR1348941[\w-]{20}"),
    _known("Artifactory key", "AKCp", r"AKCp[58][A-Za-z0-9]{60,75}"),
    _known("Yandex Cloud key", "AQVN", r"AQVN[\w-]{35,40}", 0.9),
    _known("CircleCI token", "CCIPAT_", r"CCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    _known("Buildkite token", "bkua_", r"bkua_[a-f0-9]{40}"),
    _known("Sourcegraph token", "sgp_", r"sgp_(?:[a-f0-9]{16}_)?[a-f0-9]{40}"),
    _known("Google refresh token", "1//0", r"1//0[\w-]{40,120}", 0.88),
    _known("PostHog key", "phx_", r"phx_[A-Za-z0-9]{40,60}"),
    _known("Azure shared access signature", "sig=", r"sig=((?:[A-Za-z0-9]|%2[BF]){40,60}%3D)", 0.9),
    _known("Alibaba key", "LTAI", r"[\"']LTAI[A-Za-z0-9]{16,24}[\"']\s{0,4},\s{0,4}[\"']([A-Za-z0-9]{30})[\"']", 0.9),
    _known("key of a model's provider", "sk-", r"sk-[a-f0-9]{32}", 0.86),
    _known("JSON web token", "eyJ", r"eyJ[\w-]{8,2000}\.eyJ[\w-]{8,4000}\.[\w-]{16,1500}", 0.88, _jwt),
)  # fmt: skip
