"""`ottla produce`: lines to records."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import typer

from ottla.cli.argument_parsing import INT32_MAX, require_topic_name
from ottla.cli.connection import admin_connection
from ottla.cli.console import patience
from ottla.cli.options import DEFAULT_SERVER, Bootstrap, Properties, TopicArgument, pairs
from ottla.cli.profile.cluster import client_config
from ottla.cli.records.parsing import InputFormat, drafts, header
from ottla.cli.records.sending import send_all
from ottla.client.producer.sync import Producer
from ottla.config.client import ProducerConfig
from ottla.model.errors import UserError


class Codec(Enum):
    """How batches are compressed."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


ESCAPES: Final = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}
ESCAPE: Final = re.compile(rb"\\(t|n|r|0|\\|x[0-9a-fA-F]{2})")

File = Annotated[
    Path | None, typer.Option("--file", "-f", help="Read lines from this file instead of stdin.")
]
Separator = Annotated[
    str | None,
    typer.Option("--key-separator", "-K", help="Split each line into key and value at this text."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Parse each line as an object: key, value, headers, ...")
]
Null = Annotated[str | None, typer.Option(help="Treat this text as a null key or value.")]
HeaderList = Annotated[
    list[str] | None,
    typer.Option(
        "--header", "-H", metavar="NAME=VALUE", help="Add a header to every record; repeatable."
    ),
]
PartitionNumber = Annotated[
    int | None,
    typer.Option(
        "--partition", "-p", min=0, max=INT32_MAX, help="Send to this partition; default: by key."
    ),
]
Compression = Annotated[
    Codec, typer.Option("--compression", "-z", help="Choose the compression codec.")
]
Acks = Annotated[str, typer.Option(help="Require acknowledgement by: all, 1 or 0.")]


def produce(  # noqa: PLR0913 - a command's options are its parameters
    topic: TopicArgument,
    *,
    file: File = None,
    key_separator: Separator = None,
    as_json: Json = False,
    null: Null = None,
    headers: HeaderList = None,
    partition: PartitionNumber = None,
    compression: Compression = Codec.NONE,
    acks: Acks = "all",
    properties: Properties = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Send lines as records, from stdin or a file.

    With --json a line is an object such as {"key": "a", "value": {"n": 1}, "headers": {"h": "x"},
    "partition": 0, "timestamp": 1700000000000}, as `ottla consume --format json` shows them.

    Examples:
      printf 'one\\ntwo\\n' | ottla produce orders
      printf 'a:1\\nb:2\\n' | ottla produce orders --key-separator : --header source=shop
      echo '{"key": "a", "value": {"n": 1}}' | ottla produce orders --json -z zstd
    """
    require_topic_name("TOPIC", topic)
    how = InputFormat(
        None if key_separator is None else _separator(key_separator),
        None if null is None else null.encode(),
        tuple(header("--header", text) for text in headers or ()),
        as_json,
    )
    config = {"acks": acks, "compression.type": compression.value, "linger.ms": "20"}
    config |= client_config(bootstrap, ProducerConfig) | pairs("--set", properties)
    with admin_connection(bootstrap):
        pass  # a broker out of reach is said at once; then nothing else may write to the terminal
    with (
        _lines(file) as lines,
        Producer(config=config) as producer,
        patience("sending", quiet=lines.isatty()) as tell,
    ):
        sent = send_all(producer, topic, drafts(lines, how), partition=partition, tell=tell)
    print(f"sent {sent.count - sent.failed} of {sent.count} records to {topic}", file=sys.stderr)
    if sent.first is not None:
        raise sent.first
    return 0


def _separator(text: str) -> bytes:
    """`\\t` and the like as they are meant, because shells make them hard to type; a backslash that
    begins none of them stands for itself."""
    if not text:
        raise UserError("--key-separator '': expected at least one character")
    return ESCAPE.sub(lambda found: _unescape(found[1]), text.encode())


def _unescape(name: bytes) -> bytes:
    return bytes.fromhex(name[1:].decode()) if name.startswith(b"x") else ESCAPES[name]


@contextmanager
def _lines(file: Path | None) -> Iterator[BinaryIO]:
    if file is None:
        yield sys.stdin.buffer
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        raise UserError(f"--file {file}: {error.strerror}") from None
    with opened:
        yield opened
