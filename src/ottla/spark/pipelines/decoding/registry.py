"""Schemas of a schema registry, through Confluent's client.

Owns: one client a process for each registry, what its errors mean, and the schemas that a schema
refers to. Never: decodes a value.

A schema never changes under its number: the client keeps every one that was looked up, so a worker
asks once for each. Answers that may be other ones later are errors of two kinds: a registry that
cannot be asked is a ConnectionError, which is retried; one that refuses is a UserError.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from ottla.model.errors import UserError
from ottla.spark.pipelines.spec import Registry

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient

T = TypeVar("T")
NUMBERS: Final = frozenset(
    {
        "cache.capacity",
        "cache.latest.ttl.sec",
        "max.retries",
        "retries.max.wait.ms",
        "retries.wait.ms",
        "timeout",
    }
)
"""Settings of the client that it wants as numbers."""
DEFAULTS: Final = {"timeout": 10, "max.retries": 3, "retries.wait.ms": 200}
SERIALIZED: Final = "serialized"
"""The form in which Protobuf schemas are asked for: descriptors, not text."""
KINDS: Final = {"avro": "AVRO", "json-schema": "JSON", "protobuf": "PROTOBUF"}
LATEST: Final[Literal["latest"]] = "latest"
NOT_FOUND: Final = 404
REFUSALS: Final = frozenset({400, 401, 403, 404, 409, 422})
MAX_REGISTRIES: Final = 8


class UnknownSchema(ValueError):
    """The registry has no schema of this number."""


class RegisteredSchema(NamedTuple):
    """A schema, and those that it refers to: by name, each after those that it needs itself."""

    text: str
    references: tuple[tuple[str, str], ...] = ()


class RegistryClient:
    """A registry, as pipelines ask it."""

    def __init__(self, registry: Registry) -> None:
        self._url = registry.url
        self._client = _open(registry)

    def by_id(self, schema_id: int, kind: str) -> RegisteredSchema:
        """UnknownSchema if there is none, or one of another kind."""
        found = self._ask(
            lambda: self._client.get_schema(schema_id, fmt=_form(kind)),
            missing=lambda: UnknownSchema(f"the registry has no schema {schema_id}"),
        )
        if found.schema_type != KINDS[kind]:
            raise UnknownSchema(f"schema {schema_id} is {found.schema_type}, not {KINDS[kind]}")
        return self._with_references(found, kind)

    def of_subject(self, subject: str, version: int | None, kind: str) -> RegisteredSchema:
        """A version of a subject's schema; the latest for None. UserError if there is none."""
        form = _form(kind)
        version_name = (
            f"subject {subject}" if version is None else f"version {version} of {subject}"
        )
        registered = self._ask(
            lambda: (
                self._client.get_latest_version(subject, fmt=form)
                if version is None
                else self._client.get_version(subject, version, fmt=form)
            ),
            missing=lambda: UserError(f"the registry at {self._url} has no {version_name}"),
        )
        if registered.schema.schema_type != KINDS[kind]:
            raise UserError(f"{version_name} is {registered.schema.schema_type}, not {KINDS[kind]}")
        return self._with_references(registered.schema, kind)

    def id_of(self, subject: str, text: str, kind: str) -> int:
        """The number of a schema under a subject; it is registered where it is new."""
        from confluent_kafka.schema_registry import Schema

        schema = Schema(text, KINDS[kind])
        return self._ask(lambda: self._client.register_schema(subject, schema))

    def latest_id(self, subject: str, kind: str) -> tuple[int, RegisteredSchema]:
        """The latest schema of a subject, with its number."""
        found = self._ask(
            lambda: self._client.get_latest_version(subject, fmt=_form(kind)),
            missing=lambda: UserError(f"the registry at {self._url} has no subject {subject}"),
        )
        assert found.schema_id is not None
        return found.schema_id, self._with_references(found.schema, kind)

    def _with_references(self, schema: Schema, kind: str) -> RegisteredSchema:
        found: dict[str, str] = {}
        self._add_references(schema, kind, found)
        return RegisteredSchema(schema.schema_str or "", tuple(found.items()))

    def _add_references(self, schema: Schema, kind: str, found: dict[str, str]) -> None:
        for reference in schema.references or ():
            name = reference.name or ""
            if name not in found:
                inner = self._resolve_reference(reference, kind)
                self._add_references(inner, kind, found)
                found[name] = inner.schema_str or ""

    def _resolve_reference(self, reference: SchemaReference, kind: str) -> Schema:
        subject, version = reference.subject or "", reference.version or LATEST
        return self._ask(
            lambda: self._client.get_version(subject, version, fmt=_form(kind)),
            missing=lambda: UnknownSchema(
                f"the registry has no {subject} {version}, which a schema refers to"
            ),
        ).schema

    def _ask(self, call: Callable[[], T], *, missing: Callable[[], Exception] | None = None) -> T:
        from confluent_kafka.schema_registry import SchemaRegistryError

        try:
            return call()
        except SchemaRegistryError as error:
            if error.http_status_code == NOT_FOUND and missing is not None:
                raise missing() from None
            if error.http_status_code in REFUSALS:
                raise UserError(f"the registry at {self._url} refused: {error}") from None
            raise ConnectionError(f"the registry at {self._url} failed: {error}") from None
        except Exception as error:  # of the HTTP library, which the client does not wrap
            if not type(error).__module__.startswith("httpx"):
                raise
            text = str(error) or type(error).__name__
            raise ConnectionError(f"no answer from the registry at {self._url}: {text}") from None


def registry_client(registry: Registry) -> RegistryClient:
    """This process's client for a registry."""
    return _client(registry.url, tuple(sorted(registry.options.items())))


@lru_cache(MAX_REGISTRIES)
def _client(url: str, options: tuple[tuple[str, str], ...]) -> RegistryClient:
    return RegistryClient(Registry(url, dict(options)))


def _open(registry: Registry) -> SchemaRegistryClient:
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient
    except ImportError:
        raise UserError(
            "a schema registry needs a package: pip install 'ottla[registry]'"
        ) from None
    settings: dict[str, str | int] = {**DEFAULTS, **registry.options, "url": registry.url}
    for name in NUMBERS & settings.keys():
        try:
            settings[name] = int(settings[name])
        except ValueError:
            raise UserError(f"registry.options.{name}: expected a whole number") from None
    try:
        return SchemaRegistryClient(settings)
    except (TypeError, ValueError, OSError) as error:
        raise UserError(f"registry: {error}") from None


def _form(kind: str) -> str | None:
    return SERIALIZED if kind == "protobuf" else None
