"""ruff's security rules we listen to, and how far: without dataflow most of them only point at a place."""

from __future__ import annotations

from dataclasses import dataclass

from regreen.models import Severity


@dataclass(frozen=True, slots=True)
class SecurityRule:
    """How bad a rule's finding is, how often it is right on a new line, and what goes wrong."""

    severity: Severity
    confidence: float
    cwe: int
    why: str


RULES: dict[str, SecurityRule] = {
    "S102": SecurityRule("high", 0.4, 94, "`exec` runs whatever text it is given."),
    "S103": SecurityRule("medium", 0.6, 732, "Everybody on this machine may then change the file."),
    "S104": SecurityRule("low", 0.3, 605, "The server listens on every interface."),
    "S113": SecurityRule("low", 0.5, 400, "Without `timeout` the call can wait for ever."),
    "S201": SecurityRule("high", 0.82, 94, "The debugger lets every visitor run Python."),
    "S202": SecurityRule("high", 0.6, 22, "A member's path can lead outside the folder: pass `filter=\"data\"`."),
    "S301": SecurityRule("medium", 0.35, 502, "Loading a pickle can run any code."),
    "S302": SecurityRule("medium", 0.35, 502, "Loading marshalled data can crash or run code."),
    "S304": SecurityRule("high", 0.6, 327, "This cipher is broken."),
    "S305": SecurityRule("high", 0.7, 327, "In ECB mode equal blocks stay equal."),
    "S306": SecurityRule("medium", 0.82, 377, "Between the name and the file somebody else can make it: use `mkstemp`."),
    "S307": SecurityRule("medium", 0.4, 95, "`eval` runs whatever text it is given."),
    "S310": SecurityRule("low", 0.25, 918, "The address may begin with `file:`."),
    "S312": SecurityRule("medium", 0.6, 319, "Telnet sends everything in the clear."),
    "S314": SecurityRule("low", 0.3, 611, "A small document can expand to fill the memory."),
    "S321": SecurityRule("medium", 0.5, 319, "FTP sends everything in the clear."),
    "S323": SecurityRule("high", 0.75, 295, "Certificates are not checked: anybody in between can read along."),
    "S324": SecurityRule("medium", 0.4, 328, "Collisions can be computed: pass `usedforsecurity=False` if nothing depends on it."),
    "S501": SecurityRule("high", 0.85, 295, "Certificates are not checked: anybody in between can read along."),
    "S502": SecurityRule("high", 0.8, 327, "This protocol version is broken."),
    "S503": SecurityRule("high", 0.8, 327, "This protocol version is broken."),
    "S506": SecurityRule("high", 0.82, 502, "This loader makes any object a document names: use `yaml.safe_load`."),
    "S507": SecurityRule("high", 0.8, 295, "Any host key is accepted: anybody in between can read along."),
    "S508": SecurityRule("medium", 0.8, 319, "SNMP before version 3 sends everything in the clear."),
    "S509": SecurityRule("medium", 0.8, 319, "SNMPv3 without both keys is not encrypted."),
    "S602": SecurityRule("medium", 0.4, 78, "The shell interprets whatever the text holds."),
    "S604": SecurityRule("low", 0.3, 78, "The shell interprets whatever the text holds."),
    "S605": SecurityRule("medium", 0.4, 78, "The shell interprets whatever the text holds."),
    "S608": SecurityRule("medium", 0.45, 89, "A value inside the statement can change it: pass it as a parameter."),
    "S609": SecurityRule("medium", 0.6, 78, "A file whose name begins with `-` becomes an option."),
    "S610": SecurityRule("medium", 0.5, 89, "`extra` puts text into the statement."),
    "S611": SecurityRule("medium", 0.5, 89, "`RawSQL` puts text into the statement."),
    "S612": SecurityRule("medium", 0.7, 94, "`logging.config.listen` runs what it receives."),
    "S701": SecurityRule("high", 0.6, 79, "Without `autoescape` values become markup."),
    "S702": SecurityRule("medium", 0.5, 79, "Mako does not escape by default."),
    "S704": SecurityRule("medium", 0.4, 79, "`Markup` declares the text safe without escaping it."),
}  # fmt: skip
