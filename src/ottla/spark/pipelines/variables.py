"""`${env:NAME}` and `${file:PATH}` in the values of a pipeline file.

Owns: how they are resolved, and the error for one that cannot be. Pure: the environment and the way
to read a file are handed in. What they stand for is never part of an error.

    password: ${env:DB_PASSWORD}            the environment variable; an error if it is not set
    bootstrap: ${env:BROKERS:-localhost:9092}   with a default
    token: ${file:/run/secrets/token}       the text of a file, without the line break at its end

Spark has variables of its own (`${spark.…}`): in `sql` and below `spark` those are left to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.model.errors import UserError

VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
ENVIRONMENT: Final = "env:"
FILE: Final = "file:"
DEFAULT: Final = ":-"
OF_SPARK: Final = ("sql", "spark")

ReadText = Callable[[str], str]


def resolve(value: Any, environment: Mapping[str, str], read_text: ReadText, path: str = "") -> Any:
    """The same values, with what their variables stand for; UserError with the place of one that
    is unknown."""
    if isinstance(value, Mapping):
        return {
            name: resolve(inner, environment, read_text, f"{path}.{name}" if path else str(name))
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [
            resolve(inner, environment, read_text, f"{path}[{index}]")
            for index, inner in enumerate(value)
        ]
    if not isinstance(value, str):
        return value
    return VARIABLE.sub(lambda match: _text(match, environment, read_text, path), value)


def _text(
    match: re.Match[str], environment: Mapping[str, str], read_text: ReadText, path: str
) -> str:
    name = match[1]
    if name.startswith(ENVIRONMENT):
        variable, separator, default = name.removeprefix(ENVIRONMENT).partition(DEFAULT)
        text = environment.get(variable)
        if text is None and not separator:
            raise UserError(f"{path}: {match[0]}: the environment variable {variable} is not set")
        return default if text is None else text
    if name.startswith(FILE):
        try:
            return read_text(name.removeprefix(FILE)).removesuffix("\n")
        except OSError as error:
            raise UserError(f"{path}: {match[0]}: {error.strerror}") from None
    steps = re.split(r"[.\[]", path)
    if OF_SPARK[1] == steps[0] or OF_SPARK[0] == steps[-1]:
        return match[0]
    raise UserError(
        f"{path}: {match[0]}: unknown variable; expected ${{env:NAME}} or ${{file:PATH}}"
    )
