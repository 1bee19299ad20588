"""`${file:…}`, `${dir:…}` and `${env:…}` in settings: values that stand elsewhere.

Owns: Kafka's three config providers, and the settings `config.providers.*` that rename or restrict
them. Never loads a class by name. Never resolves settings that arrive over the network or from a
program: only files and options of whoever runs the broker or the command.

    ${file:/etc/ottla/secrets.properties:key.password}   a key of a properties file
    ${file:/run/secrets/key-password}                    ours: a whole file
    ${dir:/run/secrets:key-password}                     a file of a directory, whole
    ${env:KEY_PASSWORD}                                  an environment variable

Of a whole file, a line break at the end is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ottla.model.errors import UserError

PREFIX: Final = "config.providers"
CLASSES: Final[Mapping[str, str]] = {
    f"org.apache.kafka.common.config.provider.{name}": kind
    for name, kind in (
        ("FileConfigProvider", "file"),
        ("DirectoryConfigProvider", "dir"),
        ("EnvVarConfigProvider", "env"),
    )
}
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z0-9_-]+):([^}]*)\}")

ParseProperties = Callable[[str], Mapping[str, str]]


class Provider(NamedTuple):
    """`kind`: file, dir or env. The rest restricts it; empty: no restriction."""

    kind: str
    allowed_paths: tuple[Path, ...] = ()
    allowed_names: str = ""


DEFAULT: Final[Mapping[str, Provider]] = {kind: Provider(kind) for kind in ("file", "dir", "env")}


def resolve(
    texts: Mapping[str, str], environment: Mapping[str, str], parse: ParseProperties
) -> dict[str, str]:
    """The same settings with the values that they refer to, without `config.providers`.

    Raises UserError with the setting and the reference if there is no such value.
    """
    providers = _providers(texts)
    own = {name for name in texts if name == PREFIX or name.startswith(f"{PREFIX}.")}

    def resolve_value(name: str, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            provider = providers.get(match[1])
            if provider is None:
                return match[0]
            try:
                return _value(provider, match[2], environment, parse)
            except (UserError, OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                if isinstance(error, UnicodeDecodeError):
                    reason = "not UTF-8"
                raise UserError(f"{name}={match[0]}: {reason}") from None

        return _REFERENCE.sub(value, text)

    return {name: resolve_value(name, text) for name, text in texts.items() if name not in own}


def _providers(texts: Mapping[str, str]) -> Mapping[str, Provider]:
    """Kafka's three under their own names, and those that the settings define."""
    providers = dict(DEFAULT)
    for name in filter(None, map(str.strip, texts.get(PREFIX, "").split(","))):
        class_name = texts.get(f"{PREFIX}.{name}.class", "")
        kind = CLASSES.get(class_name)
        if kind is None:
            raise UserError(
                f"{PREFIX}.{name}.class={class_name}: no class is loaded by name; expected one of "
                f"{', '.join(CLASSES)}"
            )
        paths = texts.get(f"{PREFIX}.{name}.param.allowed.paths", "")
        providers[name] = Provider(
            kind,
            tuple(Path(path.strip()) for path in paths.split(",") if path.strip()),
            texts.get(f"{PREFIX}.{name}.param.allowlist.pattern", ""),
        )
    return providers


def _value(
    provider: Provider, text: str, environment: Mapping[str, str], parse: ParseProperties
) -> str:
    if provider.kind == "env":
        if provider.allowed_names and not re.fullmatch(provider.allowed_names, text):
            raise UserError("not allowed by allowlist.pattern")
        if text not in environment:
            raise UserError(f"the environment variable {text} is not set")
        return environment[text]
    path, separator, key = text.rpartition(":")
    if not separator and provider.kind == "file":
        return _whole(_check_allowed(Path(key), provider))
    if provider.kind == "file":
        values = parse(_check_allowed(Path(path), provider).read_text("utf-8"))
        if key not in values:
            raise UserError(f"{path} has no key {key}")
        return values[key]
    if not separator or "/" in key or key in ("", ".", ".."):
        raise UserError("expected a directory and the name of a file in it")
    return _whole(_check_allowed(Path(path) / key, provider))


def _check_allowed(path: Path, provider: Provider) -> Path:
    actual = path.resolve()
    allowed = [each.resolve() for each in provider.allowed_paths]
    if allowed and not any(actual.is_relative_to(each) for each in allowed):
        raise UserError("not below allowed.paths")
    return path


def _whole(path: Path) -> str:
    return path.read_text("utf-8").removesuffix("\n").removesuffix("\r")
