"""kafka-run-class.sh: runs the one class people run by name, the dump tool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla.cli.kafka.arguments import Arguments, int32
from ottla.cli.log.dump import dump
from ottla.model.errors import UserError

DUMP: Final = ("kafka.tools.DumpLogSegments", "org.apache.kafka.tools.DumpLogSegments")
NO_LIMIT: Final = 2**31 - 1


def run(arguments: Sequence[str]) -> int:
    name, *rest = arguments or [""]
    if name not in DUMP:
        raise UserError(
            f"kafka-run-class.sh {name}: expected {DUMP[0]}; for others see ottla --help"
        )
    options = _parser().parse_args(rest)
    files = [Path(each) for each in options.files.split(",") if each]
    return dump(
        files,
        print_data_log=options.print_data_log,
        deep_iteration=options.deep_iteration,
        skip_record_metadata=options.skip_record_metadata,
        verify_index_only=options.verify_index_only,
        index_sanity_check=options.index_sanity_check,
        max_bytes=None if options.max_bytes == NO_LIMIT else options.max_bytes,
    )


def _parser() -> Arguments:
    parser = Arguments("kafka-run-class.sh kafka.tools.DumpLogSegments", "Print log files.")
    parser.add_argument("--files", required=True, metavar="FILE,...")
    parser.add_argument("--max-bytes", type=int32, default=NO_LIMIT)
    parser.add_argument(
        "--max-message-size", type=int32, help="accept and ignore, for compatibility"
    )
    for flag in (
        "print-data-log",
        "deep-iteration",
        "skip-record-metadata",
        "verify-index-only",
        "index-sanity-check",
    ):
        parser.flag(f"--{flag}")
    return parser
