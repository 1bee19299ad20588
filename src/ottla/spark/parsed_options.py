"""What a user said in options, by name.

Owns: the names Spark adds by itself, the refusal of names nobody knows, the settings of Kafka's
Java clients that have no effect here, and how a text becomes a number, a flag or a time, each with
an error that names the option. Never: knows what they mean.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

from ottla.config.client import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from ottla.model.errors import UserError

log = logging.getLogger(__name__)

T = TypeVar("T")

SPARKS_OWN: Final = frozenset(
    {
        "checkpointlocation", "queryname", "path", "mergeschema",
        "collation", "comment", "external", "is_managed_location", "location", "owner", "provider",
    }
)  # fmt: skip
"""What Spark hands to every sink, and to a table of its catalogue, with the options."""
OF_A_TABLE: Final = "provider"
"""Among the options of `CREATE TABLE … USING ottla`, where Spark adds the table's properties."""
CLIENT_PREFIX: Final = "kafka."
JAVA_ONLY: Final = frozenset(
    {
        "auto.include.jmx.reporter", "client.dns.lookup", "enable.metrics.push",
        "exclude.internal.topics", "group.protocol", "group.remote.assignor",
        "interceptor.classes", "key.deserializer.encoding", "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy",
        "metric.reporters", "partition.assignment.strategy",
        "partitioner.availability.timeout.ms", "partitioner.class", "security.providers",
        "socket.connection.setup.timeout.max.ms",
    }
)  # fmt: skip
JAVA_ONLY_PREFIXES: Final = ("ssl.", "sasl.", "metrics.", "config.providers")
"""Settings of Kafka's Java clients without effect here: metrics, class names, and what the client's
own settings for TLS and SASL do not include."""
TYPO: Final = 0.8
"""How like a known name an unknown setting must be to be taken for a mistake."""


class ParsedOptions:
    """What a user said, by name in any case."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._names = {name.lower(): name for name in known}
        self._texts = {name.lower(): text.strip() for name, text in options.items()}
        for name in self._texts:
            if not self._is_known(name):
                near = get_close_matches(name, self._names, n=1, cutoff=self._cutoff())
                if not near and OF_A_TABLE in self._texts:
                    continue  # a property of the table
                advice = f"; did you mean {self._names[near[0]]}?" if near else ""
                raise UserError(f"{name}: unknown option of format ottla{advice}")

    def _cutoff(self) -> float:
        return TYPO if OF_A_TABLE in self._texts else 0.6

    def _is_known(self, name: str) -> bool:
        mine = name in self._names or name.startswith(CLIENT_PREFIX)
        return mine or name.startswith(("spark.", "__", "option.")) or name in SPARKS_OWN

    def text(self, name: str) -> str | None:
        return self._texts.get(name.lower())

    def number(self, name: str, *, least: int = 1, most: int = 2**63 - 1) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if re.fullmatch(r"[+-]?[0-9]+", text) is None or not least <= int(text) <= most:
            raise UserError(f"{name}={text!r}: expected a whole number, at least {least}")
        return int(text)

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise UserError(f"{name}={text!r}: expected true or false")
        return text.lower() == "true"

    def read(self, name: str, parse: Callable[[str, str], T]) -> T | None:
        text = self.text(name)
        return None if text is None else parse(name, text)

    def client(
        self, owned: Mapping[str, str], who: str, kind: type[ClientConfig]
    ) -> dict[str, str]:
        """Settings for the client, without those that we decide and those without effect."""
        settings = {
            name.removeprefix(CLIENT_PREFIX): text
            for name, text in self._texts.items()
            if name.startswith(CLIENT_PREFIX)
        }
        for name, instead in owned.items():
            if name in settings:
                raise UserError(f"kafka.{name} is set by the {who} itself: {instead}")
        if not settings.get("bootstrap.servers"):
            raise UserError("kafka.bootstrap.servers is missing: expected host:port,…")
        return {name: text for name, text in settings.items() if not _is_without_effect(name, kind)}


def _is_without_effect(name: str, kind: type[ClientConfig]) -> bool:
    """Whether a client's setting is ignored, as Kafka's clients ignore what they do not know.

    A name that is nearly a known one is not: the client's error suggests the right one.
    """
    if name in kind.SETTINGS:
        return False
    others = {**ConsumerConfig.SETTINGS, **ProducerConfig.SETTINGS, **AdminConfig.SETTINGS}
    if name in others or name in JAVA_ONLY or name.startswith(JAVA_ONLY_PREFIXES):
        return True
    if get_close_matches(name, kind.SETTINGS, n=1, cutoff=TYPO):
        return False
    log.warning("kafka.%s: unknown setting, ignored", name)
    return True


_UNITS_MS: Final = {
    "us": 0.001,
    "ms": 1,
    "": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


def parse_duration_ms(option: str, text: str) -> int:
    """`15m`, `30s`, `2h`, or milliseconds, as Spark writes them."""
    match = re.fullmatch(r"([0-9]+)\s*([a-z]*)", text.lower())
    if match is None or match[2] not in _UNITS_MS:
        raise UserError(f"{option}={text!r}: expected a time such as 15m, 30s or 500ms")
    return int(int(match[1]) * _UNITS_MS[match[2]])
