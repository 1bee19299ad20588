"""A mapping of a file as a model: types of values, short forms, and the text of errors.

Owns: the wording of mistakes: where (`sinks[2].topic.name`), the value there, what was expected.
Never: knows what a pipeline is made of.

pydantic collects every mistake of a file. Validators raise ValueError with the text that a user
sees; `mistake_at` names the key that it is about. A key without a value counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, ClassVar, Final, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError

from ottla.model.errors import UserError
from ottla.spark.parsed_options import parse_duration_ms
from ottla.spark.pipelines.variables import YamlValue

OWN: Final = "mistake"
"""The type of errors whose text is final."""
TAG: Final = "kind "
"""In front of the kind of a source or step, which pydantic puts into a path; no key has a space."""

Place = tuple[int | str, ...]


class FileModel(BaseModel):
    """A mapping of the file. Unknown keys are mistakes, with the nearest known one suggested."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=lambda name: name.removesuffix("_"),
        model_title_generator=lambda model: model.__name__.removesuffix("Keys"),
    )
    SHORT: ClassVar[str | None] = None
    """The key that a text alone, instead of a mapping, stands for."""
    WORDS: ClassVar[Mapping[str, Mapping[str, YamlValue]]] = {}
    """Texts that stand for a whole mapping."""

    @model_validator(mode="wrap")
    @classmethod
    def _described(cls, value: YamlValue, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(value, str) and value in cls.WORDS:
            value = cls.WORDS[value]
        if cls.SHORT is not None and isinstance(value, str):
            value = {cls.SHORT: value}
        if not isinstance(value, Mapping):
            raise ValueError(f"expected a mapping, got {describe(value)}")
        for name in value:
            if not isinstance(name, str):
                raise ValueError(f"the key {name!r} is not text; quote it")
        try:
            return handler({name: inner for name, inner in value.items() if inner is not None})
        except ValidationError as error:
            raise _reword(cls, error) from None

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, YamlValue]:
        schema = handler(core)
        if cls.SHORT is not None:
            return {"anyOf": [{"type": "string"}, schema]}
        return {"anyOf": [{"enum": [*cls.WORDS]}, schema]} if cls.WORDS else schema


M = TypeVar("M", bound=FileModel)


def mistake_at(path: str, text: str) -> ValidationError:
    """A mistake in one key of the mapping that is validated, or of one below: `topic.options`."""
    return _error([(tuple(path.split(".")), text)])


def model_of(model: type[M], values: object) -> M:
    """The model of these values; UserError with a line for each mistake."""
    found = mistakes_of(model, values)
    if found:
        raise UserError("\n".join(line for _, line in found))
    return model.model_validate(values)


def mistakes_of(model: type[FileModel], values: object) -> list[tuple[Place, str]]:
    """What is wrong with these values: each place, and the line that says it."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        return [
            (detail["loc"], _line(detail["loc"], _text(model, detail))) for detail in error.errors()
        ]
    return []


class Mistakes:
    """Mistakes that are found one by one, reported together."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def collected(self, *place: int | str) -> Iterator[None]:
        """A UserError or ValidationError in the block is kept, with the place in front."""
        try:
            yield
        except ValidationError as error:
            for detail in error.errors():
                self.lines.append(_line((*place, *detail["loc"]), detail["msg"]))
        except UserError as error:
            self.lines.append(_line(place, str(error)))

    def report(self) -> None:
        if self.lines:
            raise UserError("\n".join(self.lines))


def one_of(value: object, kinds: Sequence[str]) -> str:
    """The only one of these keys that is in a mapping."""
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a mapping, got {describe(value)}")
    present = [kind for kind in kinds if value.get(kind) is not None]
    if len(present) != 1:
        given = " and ".join(present) if present else "none of them"
        raise ValueError(f"expected one of {', '.join(kinds)}; got {given}")
    return present[0]


def describe(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return repr(value)


def plain_text(value: object) -> str:
    """Text, or a number written without quotes."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected text, got {describe(value)}")
    return str(value)


def _option_text(value: object) -> str:
    if value is None:
        raise ValueError("missing")
    return str(value).lower() if isinstance(value, bool) else plain_text(value)


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"expected text or a list of texts, got {describe(value)}")
    return tuple(value)


def _duration_ms(value: object) -> int:
    try:
        return parse_duration_ms("", plain_text(value))
    except UserError as error:
        raise ValueError(str(error)) from None


def _mapping(value: object) -> object:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a mapping, got {describe(value)}")
    for name in value:
        if not isinstance(name, str):
            raise ValueError(f"the key {name!r} is not text; quote it")
    return value


def _list(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list, got {describe(value)}")
    return value


def whole_number(least: int) -> BeforeValidator:
    """At least so much."""

    def check(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"expected a whole number, at least {least}, got {describe(value)}")
        return value

    return BeforeValidator(check)


PLAIN: Final = {"type": ["string", "number"]}

Text = Annotated[str, BeforeValidator(plain_text), WithJsonSchema(PLAIN)]
OptionText = Annotated[
    str, BeforeValidator(_option_text), WithJsonSchema({"type": ["string", "number", "boolean"]})
]
Texts = Annotated[
    tuple[str, ...],
    BeforeValidator(_texts),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
Options = Annotated[dict[str, OptionText], BeforeValidator(_mapping)]
Duration = Annotated[int, BeforeValidator(_duration_ms), WithJsonSchema(PLAIN)]
"""In milliseconds, written as 30s, 15m or 2h."""
IsMapping = BeforeValidator(_mapping)
IsList = BeforeValidator(_list)


def key(description: str, default: YamlValue = ..., **more: YamlValue) -> YamlValue:
    """A key of a file, with the text that an editor shows."""
    return Field(default, description=description, validate_default=False, **more)


def known_keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _reword(model: type[FileModel], error: ValidationError) -> ValidationError:
    return _error([(detail["loc"], _text(model, detail)) for detail in error.errors()])


def _error(mistakes: Sequence[tuple[Place, str]]) -> ValidationError:
    lines: list[InitErrorDetails] = [
        {"type": PydanticCustomError(OWN, "{text}", {"text": text}), "loc": place, "input": None}
        for place, text in mistakes
    ]
    return ValidationError.from_exception_data("pipeline", lines)


def _text(model: type[FileModel], detail: ErrorDetails) -> str:
    """What is wrong, in our words; `model` is the mapping that the place is relative to."""
    context = detail.get("ctx", {})
    match detail["type"]:
        case "mistake":
            return str(context["text"])
        case "value_error":
            return str(context["error"])
        case "missing":
            return "missing"
        case "literal_error":
            among = str(context["expected"]).replace("'", "").replace(" or ", ", ")
            return f"{detail['input']!r}: expected one of {among}"
        case "extra_forbidden":
            return _unknown_key(str(detail["loc"][-1]), known_keys(model))
        case _:
            return detail["msg"]


def _unknown_key(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    advice = f"; did you mean {near[0]}?" if near else ""
    return f"unknown key{advice} (known: {', '.join(known)})"


def _line(place: Place, text: str) -> str:
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not part.startswith(TAG):
            path += f".{part}" if path else part
    if text.startswith(("=", "[")):  # of a value, or of an item of a list
        return f"{path}{text}"
    return f"{path or 'the file'}: {text}"
