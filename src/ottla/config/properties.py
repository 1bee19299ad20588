"""server.properties, the environment and `--set`, combined into one `BrokerConfig`.

Owns: the syntax of a Java properties file and the precedence: `--set`, then the environment, then
the file; values may stand elsewhere (`providers`). Never logs: warnings are returned as text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ottla.config.broker import BrokerConfig
from ottla.config.listener_settings import base_name, is_of_listener
from ottla.config.listeners import WITH_LOGIN, Listeners
from ottla.config.providers import resolve
from ottla.config.retired import translate
from ottla.config.tls import UNSAFE_VERSIONS
from ottla.model.errors import UserError

PREFIX: Final = "OTTLA_"
JAAS_FILE: Final = "java.security.auth.login.config"
NO_SETTINGS: Final = frozenset(
    {
        "OTTLA_BOOTSTRAP_SERVER",
        "OTTLA_CACHE",
        "OTTLA_COMPLETION_TIMEOUT_MS",
        "OTTLA_PROFILE",
    }
)
"""Variables with the same prefix that are for other commands or the project's own tools."""

_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY: Final = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)


class Loaded(NamedTuple):
    config: BrokerConfig
    texts: dict[str, str]
    """The settings as text, under their current names."""
    warnings: list[str]


def load(
    path: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    sets: Iterable[str] = (),
) -> Loaded:
    """Combine the sources and check the result; a UserError names the invalid setting."""
    combined = {
        **from_kafka_opts(environment or {}),
        **(read_file(path) if path else {}),
        **from_environment(environment or {}),
        **from_sets(sets),
    }
    combined = resolve(combined, environment or {}, parse)
    listener_names = filter(is_of_listener, combined)
    texts, warnings = translate(combined, [*BrokerConfig.SETTINGS, *listener_names])
    config = BrokerConfig.parse(texts)
    warnings += [*warnings_of_no_effect(texts), *warnings_of_access(config)]
    return Loaded(config, texts, warnings)


def warnings_of_no_effect(texts: Mapping[str, str]) -> Iterator[str]:
    """A line for each setting that was changed from its default and has no effect."""
    for name, text in texts.items():
        setting = BrokerConfig.SETTINGS[base_name(name)]
        if setting.no_effect and setting.read(text) != setting.default:
            yield f"{name} has no effect: {setting.no_effect}"
        if setting.name.endswith("ssl.enabled.protocols"):
            versions = {word.strip() for word in text.split(",")}
            unsafe = [version for version in UNSAFE_VERSIONS if version in versions]
            if unsafe:
                yield f"{name}: {', '.join(unsafe)} have no effect: unsafe, and not offered"


def warnings_of_access(config: BrokerConfig) -> Iterator[str]:
    """A line where secrets stand in a place that everybody may read."""
    protocols = {endpoint.protocol for endpoint in Listeners.of(config).bound}
    mechanisms = config.sasl_enabled_mechanisms
    with_scram = protocols & set(WITH_LOGIN) and any("SCRAM" in name for name in mechanisms)
    if config.zookeeper_connect and not config.zookeeper_set_acl and with_scram:
        yield (
            "zookeeper.set.acl=false: everybody who reaches ZooKeeper can read and change the "
            "credentials of users; log in to it and set zookeeper.set.acl=true"
        )


def read_client_file(path: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in a client's file, with the values that they refer to."""
    texts = {**from_kafka_opts(environment), **read_file(path)}
    return resolve(texts, environment, parse)


def read_file(path: Path) -> dict[str, str]:
    try:
        return parse(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8") from error


def parse(text: str) -> dict[str, str]:
    """Java's properties: comments, continued lines, escapes; the last of a repeated key wins."""
    pairs: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        assert match is not None  # the pattern takes any text
        pairs[_unescape(match[1])] = _unescape(match[2])
    return pairs


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """OTTLA_LOG_DIRS is log.dirs."""
    return {
        name.removeprefix(PREFIX).lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and name not in NO_SETTINGS
    }


def from_kafka_opts(environment: Mapping[str, str]) -> dict[str, str]:
    """The JAAS file that `KAFKA_OPTS` names: where Kafka's scripts look for Java's properties."""
    try:
        words = shlex.split(environment.get("KAFKA_OPTS", ""))
    except ValueError as error:
        raise UserError(f"KAFKA_OPTS: {error}") from None
    options = (word.removeprefix("-D").partition("=") for word in words if word.startswith("-D"))
    return {name: value for name, _, value in options if name == JAAS_FILE}


def from_sets(sets: Iterable[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in sets:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise UserError(f"--set {item}: expected key=value")
        pairs[key.strip()] = value.strip()
    return pairs


def _logical_lines(text: str) -> Iterator[str]:
    """Lines joined where one ends in an odd number of backslashes; no comments, no blanks."""
    joined = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not joined and (not line or line[0] in "#!"):
            continue
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            joined += line[:-1]
            continue
        yield joined + line
        joined = ""
    if joined:
        yield joined


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _CONTROLS.get(code, code)

    return _ESCAPE.sub(character, text)
