"""`${env:NAME}` and `${file:PATH}` in the values of a pipeline file.

Owns: how they are resolved, the mistakes for those that cannot be, and what is printed instead of
their values. Pure: the environment and the way to read a file are handed in.

    password: ${env:DB_PASSWORD}            the environment variable; an error if it is not set
    bootstrap: ${env:BROKERS:-localhost:9092}   with a default
    token: ${file:/run/secrets/token}       the text of a file, without the line break at its end
    password: ${secret:env:DB_PASSWORD}     the same, and masked in everything that is printed

Spark has variables of its own (`${spark.…}`): in `sql` and below `spark` those are left to it.

A message shows `***` for a secret, and the variable for what another one stands for, which may be a
password, too. Words of the file itself are shown, and so is what has fewer than four characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.model.errors import UserError

VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
ENVIRONMENT: Final = "env:"
FILE: Final = "file:"
SECRET: Final = "secret:"
MASK: Final = "***"
DEFAULT: Final = ":-"
OF_SPARK: Final = ("sql", "spark")
SHORT: Final = 4
"""Values of `${env:…}` with fewer characters are no passwords, and part of many words."""

ReadText = Callable[[str], str]
YamlValue: TypeAlias = Any
"""A value of a file in YAML: text, a number, a date, a list, a mapping or nothing."""
YamlMapping: TypeAlias = dict[str, YamlValue]


class Masks(NamedTuple):
    """What is never printed: secrets, and values of other variables with what is shown instead."""

    secrets: tuple[str, ...] = ()
    variables: Mapping[str, str] = MappingProxyType({})

    def mask(self, text: str) -> str:
        text = mask(text, self.secrets)
        for value in sorted(self.variables, key=len, reverse=True):
            shown = self.variables[value].replace("\\", r"\\")
            for form in dict.fromkeys((value, repr(value)[1:-1])):
                text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", shown, text)
        return text

    def joined(self, other: Masks) -> Masks:
        secrets = dict.fromkeys((*self.secrets, *other.secrets))
        return Masks((*secrets,), {**self.variables, **other.variables})


@dataclass
class Resolved:
    """What was found out while the variables of a file were resolved."""

    secrets: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    """Values, and what stands for them in the file."""
    mistakes: dict[str, str] = field(default_factory=dict)
    """By the path of the value whose variable is unknown, which is left as it stands."""

    def masks(self, written: YamlValue) -> Masks:
        """For a file with these values before they were resolved."""
        known = set(_scalars(written))
        shown = {
            value: variable
            for value, variable in self.variables.items()
            if len(value) >= SHORT and value not in known
        }
        return Masks(tuple(sorted(self.secrets)), shown)


def resolve(
    value: YamlValue, environment: Mapping[str, str], read_text: ReadText, resolved: Resolved
) -> YamlValue:
    """The same values, with what their variables stand for; what is known then is added to
    `resolved`, the mistakes included."""
    return Resolver(environment, read_text, resolved).resolve(value, "")


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
    resolved: Resolved

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
        try:
            text = VARIABLE.sub(lambda match: self._text(match, path), value)
        except UserError as mistake:
            self.resolved.mistakes[path] = f"{path}: {mistake}"
            return value
        if any(written in value for written in self.resolved.variables.values()):
            self.resolved.variables[text] = value  # with what is around the variable, too
        return text

    def _text(self, match: re.Match[str], path: str) -> str:
        name = match[1].removeprefix(SECRET)
        is_secret = name != match[1]
        if name.startswith(ENVIRONMENT):
            variable, separator, default = name.removeprefix(ENVIRONMENT).partition(DEFAULT)
            found = self.environment.get(variable)
            if found is None and not separator:
                raise UserError(f"{match[0]}: the environment variable {variable} is not set")
            if found is None and not is_secret:
                return default  # the file has it
            text = default if found is None else found
        elif name.startswith(FILE):
            try:
                text = self.read_text(name.removeprefix(FILE)).removesuffix("\n")
            except OSError as error:
                raise UserError(f"{match[0]}: {error.strerror}") from None
        else:
            steps = re.split(r"[.\[]", path)
            if OF_SPARK[1] == steps[0] or OF_SPARK[0] == steps[-1]:
                return match[0]
            raise UserError(
                f"{match[0]}: unknown variable; expected ${{env:NAME}} or ${{file:PATH}}"
            )
        if is_secret:
            self.resolved.secrets.add(text)
        else:
            self.resolved.variables[text] = match[0]
        return text


def _scalars(value: YamlValue) -> Iterator[str]:
    """The keys and values of a file, as text."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _scalars(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(inner)
    else:
        yield str(value)
