"""Which packages the tasks of a pipeline import, beside those that every task does.

Owns: what follows from the pipeline's file: formats, registries, databases, logins. Never: looks at
what is installed. What a Python step imports is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.spark.pipelines.databases import DRIVERS
from ottla.spark.pipelines.spec import (
    DatabaseSource,
    Encoding,
    Format,
    Pipeline,
    TopicTarget,
)


class Needed(NamedTuple):
    """A package, the extra of Ottla that brings it, and the key of the file that needs it."""

    package: str
    extra: str
    where: str


DECODERS: Final[Mapping[str, tuple[str, str]]] = {
    "avro": ("fastavro", "avro"),
    "protobuf": ("protobuf", "protobuf"),
    "json-schema": ("jsonschema", "registry"),
}
"""The package of a format, and its extra."""
REGISTRY: Final = ("confluent-kafka", "registry")
PKCS12: Final = (".p12", ".pfx", ".pkcs12")


def task_packages(pipeline: Pipeline) -> Iterator[Needed]:
    for source in pipeline.sources:
        where = f"sources.{source.name}"
        yield from _of_format(source.format, where)
        if source.key is not None:
            yield from _of_format(source.key, f"{where}.key")
        yield from _of_client(source.options, where)
    for table in pipeline.files:
        if isinstance(table, DatabaseSource):
            yield from _of_database(table)
    for sink in pipeline.sinks:
        if isinstance(sink.target, TopicTarget):
            where = f"sinks.{sink.name}"
            for name, part in (("key", sink.target.key), ("value", sink.target.value)):
                if isinstance(part, Encoding):
                    yield Needed(*DECODERS[part.kind], f"{where}.{name}")
                    yield Needed(*REGISTRY, f"{where}.{name}")
            yield from _of_client(sink.target.options, where)


def _of_format(format: Format, where: str) -> Iterator[Needed]:
    if format.kind in DECODERS:
        yield Needed(*DECODERS[format.kind], where)
    if format.registry is not None:
        yield Needed(*REGISTRY, where)


def _of_database(table: DatabaseSource) -> Iterator[Needed]:
    """A driver that we do not bring may be a library, and no package."""
    where = f"sources.{table.name}"
    yield Needed("adbc-driver-manager", "database", where)
    driver = table.driver or DRIVERS[table.uri.partition("://")[0]]
    if driver in DRIVERS.values():
        yield Needed(f"adbc-driver-{driver}", "database", where)


def _of_client(options: Mapping[str, str], where: str) -> Iterator[Needed]:
    """Of the settings with which brokers are reached."""
    settings = {name.lower(): str(value) for name, value in options.items()}
    if settings.get("kafka.sasl.mechanism", "").upper() == "GSSAPI":
        yield Needed("gssapi", "kerberos", where)
    stores = [
        (settings.get(f"kafka.ssl.{kind}.type", ""), settings.get(f"kafka.ssl.{kind}.location", ""))
        for kind in ("keystore", "truststore")
    ]
    if any(kind.upper() == "PKCS12" or path.lower().endswith(PKCS12) for kind, path in stores):
        yield Needed("cryptography", "security", where)
