"""Which name runs which of Kafka's commands: `python -m ottla.cli.kafka.main kafka-topics.sh ...`.

Owns: the table, and that a mistake is one line and exit code 1, as Kafka's tools have it. Ctrl-C
shows no traceback, not even while a command's modules are imported: see ottla/__main__.py.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from ottla.cli.main import (
    INTERRUPTED,
    describe_os_error,
    discard_output,
    end_on_interrupt,
    raise_on_interrupt,
    require_utf8,
)
from ottla.model.errors import KafkaError, UserError

TOOLS: Final[Mapping[str, str]] = {
    "kafka-acls.sh": "ottla.cli.kafka.acls",
    "kafka-configs.sh": "ottla.cli.kafka.configs",
    "kafka-console-consumer.sh": "ottla.cli.kafka.console_consumer",
    "kafka-console-producer.sh": "ottla.cli.kafka.console_producer",
    "kafka-consumer-groups.sh": "ottla.cli.kafka.consumer_groups",
    "kafka-delegation-tokens.sh": "ottla.cli.kafka.delegation_tokens",
    "kafka-run-class.sh": "ottla.cli.kafka.run_class",
    "kafka-server-start.sh": "ottla.cli.kafka.server_start",
    "kafka-server-stop.sh": "ottla.cli.kafka.server_stop",
    "kafka-simple-consumer-shell.sh": "ottla.cli.kafka.simple_consumer_shell",
    "kafka-topics.sh": "ottla.cli.kafka.topics",
    "zookeeper-server-start.sh": "ottla.cli.kafka.zookeeper_start",
}
STARTS: Final = frozenset({"kafka-server-start.sh", "zookeeper-server-start.sh"})


def main() -> None:
    code = run(sys.argv[1], sys.argv[2:], ready=raise_on_interrupt)
    end_on_interrupt()
    sys.exit(code)


def run(tool: str, arguments: Sequence[str], *, ready: Callable[[], None] = lambda: None) -> int:
    """Run one of Kafka's commands; its exit code. `ready` is called when its modules have been
    imported."""
    try:
        require_utf8(arguments)
        function: Callable[..., int] = import_module(TOOLS[tool]).run
        if tool in STARTS:  # not ready(): a broker handles SIGINT itself, and Java does
            return function(arguments, Path(os.environ.get("LOG_DIR", "logs")))
        ready()
        code = _exit_code(function, arguments)
        sys.stdout.flush()  # here a full device is an error message, at exit a traceback
        return code
    except BrokenPipeError:
        discard_output()
        return 0
    except OSError as error:
        discard_output()
        print(f"{tool}: {describe_os_error(error)}", file=sys.stderr)
        return 1
    except (UserError, KafkaError) as error:
        print(f"{tool}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0


def _exit_code(function: Callable[..., int], arguments: Sequence[str]) -> int:
    try:
        return function(arguments)
    except SystemExit as done:  # --help, and what argparse does not understand
        return done.code if isinstance(done.code, int) else 0


if __name__ == "__main__":
    main()
