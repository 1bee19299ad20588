"""kafka-console-producer.sh: one record for each line of stdin."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla.cli.connection import admin_connection
from ottla.cli.kafka.arguments import Arguments, first_given, key_values, properties
from ottla.cli.kafka.line_reader import LineReader
from ottla.cli.kafka.servers import bootstrap
from ottla.cli.records.sending import send_all
from ottla.client.producer.sync import Producer

SETTINGS: Final = {  # its options that are settings of the producer
    "batch_size": "batch.size",
    "max_block_ms": "max.block.ms",
    "max_memory_bytes": "buffer.memory",
    "metadata_expiry_ms": "metadata.max.age.ms",
    "message_send_max_retries": "retries",
    "request_required_acks": "acks",
    "request_timeout_ms": "request.timeout.ms",
    "retry_backoff_ms": "retry.backoff.ms",
    "socket_buffer_size": "send.buffer.bytes",
    "timeout": "linger.ms",
}


def run(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    given = [*(options.property or ()), *(options.reader_property or ())]
    reader = LineReader.of(key_values(given, "--property"))
    servers = bootstrap(options)
    with admin_connection(servers), Producer(config=_settings(options, servers)) as producer:
        sent = send_all(producer, options.topic, reader.drafts(sys.stdin.buffer))
    if sent.first is not None:
        print(f"{sent.failed} records were not sent: {sent.first}", file=sys.stderr)
        return 1
    return 0


def _settings(options: Namespace, servers: str) -> dict[str, str]:
    settings = properties(first_given(options, "command_config", "producer_config"))
    named = [*(options.producer_property or ()), *(options.command_property or ())]
    settings |= key_values(named, "--producer-property")
    if options.compression_codec is not None:
        settings["compression.type"] = options.compression_codec
    for option, setting in SETTINGS.items():
        value = getattr(options, option)
        if value is not None:
            settings[setting] = value
    if options.sync:
        settings["linger.ms"] = "0"
    return {**settings, "bootstrap.servers": servers}


def _parser() -> Arguments:
    parser = Arguments(
        "kafka-console-producer.sh", "Read lines from stdin and send each as a record."
    )
    parser.cluster(broker_list=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--producer.config", dest="producer_config", type=Path, metavar="FILE")
    parser.add_argument("--compression-codec", nargs="?", const="gzip")
    for option in ("property", "reader-property", "producer-property", "command-property"):
        parser.add_argument(f"--{option}", action="append", metavar="KEY=VALUE")
    for option in SETTINGS:
        parser.add_argument(f"--{option.replace('_', '-')}", metavar="VALUE")
    parser.add_argument("--line-reader", help="accept and ignore: the only reader reads lines")
    parser.flag("--sync")
    return parser
