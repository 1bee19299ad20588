"""kafka-simple-consumer-shell.sh: reads one partition from its start.

Kafka dropped it; the console consumer with --partition does the same, and is what runs here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.kafka.arguments import Arguments, int32
from ottla.cli.kafka.console_consumer import run as consume


def run(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    words = ["--bootstrap-server", options.broker_list, "--topic", options.topic]
    words += ["--partition", str(options.partition), "--offset", str(options.offset)]
    if options.formatter:
        words += ["--formatter", options.formatter]
    for given in options.property or ():
        words += ["--property", given]
    if options.max_messages is not None:
        words += ["--max-messages", str(options.max_messages)]
    if options.no_wait_at_logend:
        words += ["--timeout-ms", "1000"]
    return consume(words)


def _parser() -> Arguments:
    parser = Arguments("kafka-simple-consumer-shell.sh", "Read one partition.")
    parser.add_argument("--broker-list", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partition", type=int32, default=0)
    parser.add_argument("--offset", default="earliest")
    parser.add_argument("--formatter")
    parser.add_argument("--property", action="append")
    parser.add_argument("--max-messages", type=int32)
    parser.flag("--no-wait-at-logend")
    return parser
