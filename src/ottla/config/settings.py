"""How settings are declared: one typed, annotated line each.

Owns: parsing and formatting of values, bounds, and the list from which documentation and
DescribeConfigs are made. Never knows a particular setting.

The attribute is Kafka's name with dots as underscores, so a name is typed once. A default is the
class attribute itself; an instance stores only what differs, so ten thousand topics that override
nothing cost nothing.

    class BrokerConfig(Settings):
        num_partitions: Annotated[int, AtLeast(1), Doc("Partitions of a new topic.")] = 1

A plain `int` is Kafka's INT (32 bits); `Short` and `Long` are the other widths. A `Type` among the
annotations says what the Python type cannot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType, NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    dataclass_transform,
    get_args,
    get_origin,
)

from ottla.model.errors import UserError


class InvalidValue(UserError):
    """A value that a setting does not allow; `to_client` is the message in Kafka's own form."""

    def __init__(self, message: str, to_client: str) -> None:
        super().__init__(message)
        self.to_client = to_client


Scope: TypeAlias = Literal["broker", "cluster"]
Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None
TypedValue: TypeAlias = Any
"""A value of the type that its setting declares, where that is known only by the setting's name."""


class Type(IntEnum):
    """The value types of DescribeConfigs, with Kafka's numbers."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Doc(str):
    """The documentation of a setting."""

    __slots__ = ()


class NoEffect(str):
    """Why a setting of Kafka is accepted but has no effect."""

    __slots__ = ()


class Dynamic:
    """May change at run time: per broker only, or for the whole cluster too."""

    __slots__ = ("scope",)

    def __init__(self, scope: Scope) -> None:
        self.scope = scope


class Check(Protocol):
    def allows(self, value: object) -> bool: ...

    def fault(self, value: object) -> tuple[object, str]:
        """The part of `value` that is not allowed, and why: Kafka's form."""

    def __str__(self) -> str: ...


class AtLeast(NamedTuple):
    """A lower bound; `also` names single values outside it, such as -1 for "no limit"."""

    low: float
    also: tuple[float, ...] = ()

    def allows(self, value: float) -> bool:
        return value >= self.low or value in self.also

    def fault(self, value: float) -> tuple[float, str]:
        return value, f"Value must be at least {self.low}"

    def __str__(self) -> str:
        return _or(f"at least {self.low}", self.also)


class Between(NamedTuple):
    """Both bounds, inclusive."""

    low: float
    high: float
    also: tuple[float, ...] = ()

    def allows(self, value: float) -> bool:
        return self.low <= value <= self.high or value in self.also

    def fault(self, value: float) -> tuple[float, str]:
        bound = f"at least {self.low}" if value < self.low else f"no more than {self.high}"
        return value, f"Value must be {bound}"

    def __str__(self) -> str:
        return _or(f"between {self.low} and {self.high}", self.also)


class OneOf(NamedTuple):
    """One of these words; of a list, each item, and an item given twice counts once."""

    words: tuple[str, ...]

    def allows(self, value: str | tuple[str, ...]) -> bool:
        return all(word in self.words for word in ([value] if isinstance(value, str) else value))

    def fault(self, value: str | tuple[str, ...]) -> tuple[str, str]:
        items = [value] if isinstance(value, str) else value
        word = next(item for item in items if item not in self.words)
        return word, f"String must be one of: {', '.join(self.words)}"

    def __str__(self) -> str:
        return "one of " + ", ".join(self.words)


class Matches(NamedTuple):
    """A whole-string pattern; of a list, of each item."""

    pattern: str
    description: str

    def allows(self, value: str | tuple[str, ...]) -> bool:
        items = [value] if isinstance(value, str) else value
        return all(re.fullmatch(self.pattern, item) for item in items)

    def fault(self, value: str | tuple[str, ...]) -> tuple[str, str]:
        text = value if isinstance(value, str) else ",".join(value)
        return text, f"expected {self.description}"

    def __str__(self) -> str:
        return self.description


Short: TypeAlias = Annotated[int, Type.SHORT]
Long: TypeAlias = Annotated[int, Type.LONG]
Words: TypeAlias = tuple[str, ...]

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

_BITS: Final = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}
_EXPECTED: Final = {
    Type.BOOLEAN: "true or false",
    Type.DOUBLE: "a number",
    Type.SHORT: "a whole number",
    Type.INT: "a whole number",
    Type.LONG: "a whole number",
}
_DOUBLE: Final = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?"
_OF_PYTHON: Final = {
    bool: Type.BOOLEAN,
    int: Type.INT,
    float: Type.DOUBLE,
    str: Type.STRING,
    tuple: Type.LIST,
}


class Setting(NamedTuple):
    """One declared setting."""

    name: str
    attribute: str
    kind: Type
    python: type
    optional: bool
    default: Value
    checks: tuple[Check, ...]
    scope: Scope | None
    doc: str
    no_effect: str
    """Why it has no effect; empty if it has one."""

    def read(self, text: str, *, source: str = "") -> Value:
        """Parse `text`, or raise a UserError that names this setting."""
        text = text.strip()
        if not text and self.optional and self.kind not in _EXPECTED:
            return None
        value = self._value_of(text)
        if value is None:
            raise self._error(text, _EXPECTED[self.kind], source, (text, self._not_typed))
        bits = _BITS.get(self.kind)
        if bits is not None and not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
            expected = f"a whole number of at most {bits} bits"
            raise self._error(text, expected, source, (text, self._not_typed))
        for check in self.checks:
            if not check.allows(value):
                raise self._error(text, str(check), source, check.fault(value))
        return value

    def show(self, value: Value) -> str | None:
        """Format `value` as Kafka does."""
        match value:
            case None:
                return None
            case bool():
                return "true" if value else "false"
            case float():
                return repr(value).upper().replace("E+", "E")
            case tuple():
                return ",".join(value)
            case _:
                return str(value)

    @property
    def bounds(self) -> str:
        return "; ".join(str(check) for check in self.checks)

    @property
    def sensitive(self) -> bool:
        return self.kind is Type.PASSWORD

    def _value_of(self, text: str) -> Value:
        if self.python is tuple:
            return self._items(text)
        match self.kind:
            case Type.BOOLEAN:
                return {"true": True, "false": False}.get(text.lower())
            case Type.SHORT | Type.INT | Type.LONG:
                return int(text) if re.fullmatch(r"[+-]?[0-9]{1,40}", text) else None
            case Type.DOUBLE:
                return float(text) if re.fullmatch(_DOUBLE, text) else None
            case _:
                return text

    def _items(self, text: str) -> tuple[str, ...]:
        """The items of a list, in the order given."""
        items = [item.strip() for item in text.split(",")] if text else []
        fixed = any(isinstance(check, OneOf) for check in self.checks)
        return tuple(dict.fromkeys(items) if fixed else items)

    @property
    def _not_typed(self) -> str:
        if self.kind is Type.BOOLEAN:
            return "Expected value to be either true or false"
        return f"Not a number of type {self.kind.name}"

    def _error(
        self, text: str, expected: str, source: str, fault: tuple[object, str]
    ) -> InvalidValue:
        displayed = "[hidden]" if self.sensitive else repr(text)
        location = f" ({source})" if source else ""
        value, reason = fault
        return InvalidValue(
            f"{self.name}={displayed}: expected {expected}{location}",
            f"Invalid value {'[hidden]' if self.sensitive else value} for configuration "
            f"{self.name}: {reason}",
        )


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Settings:
    """Base of a set of settings. Built from values directly, or with `parse` from text."""

    SETTINGS: ClassVar[Mapping[str, Setting]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        inherited = (
            group.SETTINGS for group in reversed(cls.__mro__) if issubclass(group, Settings)
        )
        joined = {name: setting for settings in inherited for name, setting in settings.items()}
        for attribute, annotation in cls.__annotations__.items():
            if _is_annotated(annotation):
                setting = _setting_of(attribute, annotation, getattr(cls, attribute))
                joined[setting.name] = setting
        cls.SETTINGS = MappingProxyType(joined)

    def __init__(self, **values: Value) -> None:
        for attribute in values:
            assert _name(attribute) in self.SETTINGS, f"no setting {attribute}"
        self.__dict__.update(values)

    def __setattr__(self, attribute: str, value: object) -> None:
        raise AttributeError(f"{attribute}: settings are immutable; use changed() to make a copy")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            self.value(name) == other.value(name) for name in self.SETTINGS
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        items = (
            f"{name}={'[hidden]' if setting.sensitive else setting.show(self.value(name))}"
            for name, setting in self.SETTINGS.items()
            if setting.attribute in self.__dict__
        )
        return f"{type(self).__name__}({', '.join(items)})"

    @classmethod
    def parse(cls, texts: Mapping[str, str], *, source: str = "") -> Self:
        """Parse the settings in `texts`; keys that are not settings are ignored."""
        return cls(**cls.read(texts, source=source))

    @classmethod
    def read(cls, texts: Mapping[str, str], *, source: str = "") -> dict[str, TypedValue]:
        """Attribute and value of each setting among `texts`."""
        return {
            setting.attribute: setting.read(texts[name], source=source)
            for name, setting in cls.SETTINGS.items()
            if name in texts
        }

    def value(self, name: str) -> Value:
        """The value under Kafka's name."""
        value: Value = getattr(self, self.SETTINGS[name].attribute)
        return value

    def text(self, name: str) -> str | None:
        return self.SETTINGS[name].show(self.value(name))

    def changed(self, **values: Value) -> Self:
        """The same settings but for these."""
        return type(self)(**{**self.__dict__, **values})


def _setting_of(attribute: str, annotation: object, default: Value) -> Setting:
    base, *marks = get_args(annotation)
    members = get_args(base)
    optional = NoneType in members
    if optional:
        inner = next(member for member in members if member is not NoneType)
        if _is_annotated(inner):
            inner, *inner_marks = get_args(inner)
            marks = [*inner_marks, *marks]
        base = inner
    python = get_origin(base) or base
    no_effect = " ".join(mark for mark in marks if isinstance(mark, NoEffect))
    doc = " ".join(mark for mark in marks if isinstance(mark, Doc))
    kinds = [mark for mark in marks if isinstance(mark, Type)]
    scopes = [mark.scope for mark in marks if isinstance(mark, Dynamic)]
    return Setting(
        name=_name(attribute),
        attribute=attribute,
        kind=kinds[-1] if kinds else _OF_PYTHON[python],
        python=python,
        optional=optional,
        default=default,
        checks=tuple(mark for mark in marks if hasattr(mark, "allows")),
        scope=scopes[-1] if scopes else None,
        doc=f"{doc} No effect here: {no_effect}.".lstrip() if no_effect else doc,
        no_effect=no_effect,
    )


def _is_annotated(annotation: object) -> bool:
    return get_origin(annotation) is Annotated


def _name(attribute: str) -> str:
    return attribute.replace("_", ".")


def _or(bound: str, also: tuple[float, ...]) -> str:
    return " or ".join([bound, *(str(value) for value in also)])
