"""`${env:NAME}` and `${file:PATH}` in the values of a pipeline file.

Owns: how they are resolved, and the error for one that cannot be. Pure: the environment and the way
to read a file are handed in. What they stand for is never part of an error.

    password: ${env:DB_PASSWORD}            the environment variable; an error if it is not set
    bootstrap: ${env:BROKERS:-localhost:9092}   with a default
    token: ${file:/run/secrets/token}       the text of a file, without the line break at its end
    password: ${secret:env:DB_PASSWORD}     the same, and masked in everything that is printed

Spark has variables of its own (`${spark.…}`): in `sql` and below `spark` those are left to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.model.errors import UserError

VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
ENVIRONMENT: Final = "env:"
FILE: Final = "file:"
SECRET: Final = "secret:"
MASK: Final = "***"
DEFAULT: Final = ":-"
OF_SPARK: Final = ("sql", "spark")

ReadText = Callable[[str], str]
YamlValue: TypeAlias = Any
"""A value of a file in YAML: text, a number, a date, a list, a mapping or nothing."""
YamlMapping: TypeAlias = dict[str, YamlValue]


def resolve(
    value: YamlValue,
    environment: Mapping[str, str],
    read_text: ReadText,
    path: str = "",
    *,
    secrets: set[str] | None = None,
) -> YamlValue:
    """The same values, with what their variables stand for; UserError with the place of one that
    is unknown. What stands for a `${secret:…}` is added to `secrets`."""
    found = Resolver(environment, read_text, set() if secrets is None else secrets)
    return found.resolve(value, path)


def mask(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets in it; of one of several lines, without each of its lines."""
    lines = {line for secret in secrets for line in (secret, *secret.splitlines())}
    for line in sorted(lines, key=len, reverse=True):
        if line.strip():
            text = text.replace(line, MASK)
    return text


class Resolver(NamedTuple):
    """What variables stand for, and which of it is secret."""

    environment: Mapping[str, str]
    read_text: ReadText
    secrets: set[str]

    def resolve(self, value: YamlValue, path: str) -> YamlValue:
        if isinstance(value, Mapping):
            return {
                name: self.resolve(inner, f"{path}.{name}" if path else str(name))
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self.resolve(inner, f"{path}[{at}]") for at, inner in enumerate(value)]
        if not isinstance(value, str):
            return value
        return VARIABLE.sub(lambda match: self._text(match, path), value)

    def _text(self, match: re.Match[str], path: str) -> str:
        name = match[1].removeprefix(SECRET)
        if name.startswith(ENVIRONMENT):
            text = self._of_environment(name.removeprefix(ENVIRONMENT), match[0], path)
        elif name.startswith(FILE):
            try:
                text = self.read_text(name.removeprefix(FILE)).removesuffix("\n")
            except OSError as error:
                raise UserError(f"{path}: {match[0]}: {error.strerror}") from None
        else:
            steps = re.split(r"[.\[]", path)
            if OF_SPARK[1] == steps[0] or OF_SPARK[0] == steps[-1]:
                return match[0]
            raise UserError(
                f"{path}: {match[0]}: unknown variable; expected ${{env:NAME}} or ${{file:PATH}}"
            )
        if name != match[1]:
            self.secrets.add(text)
        return text

    def _of_environment(self, name: str, written: str, path: str) -> str:
        variable, separator, default = name.partition(DEFAULT)
        text = self.environment.get(variable)
        if text is None and not separator:
            raise UserError(f"{path}: {written}: the environment variable {variable} is not set")
        return default if text is None else text
