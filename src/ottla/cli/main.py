"""The entry point of the `ottla` program.

Owns: how a mistake is said: one line on stderr, never a traceback; exit code 2 when the command was
not understood, 1 when it did not succeed. Never: reads a command's options or does its work.

`serve` is called before anything else is imported: what a broker process loads it carries for
weeks, and typer with all it brings would be 17 MB and 0.15 s of every broker.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

INTERRUPTED: Final = 130  # as shells have it: 128 and the number of SIGINT


def main() -> None:
    """The `ottla` program."""
    with _without_hypothesis():
        import kio.static.primitive  # noqa: F401
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    from ottla.model.errors import KafkaError, UserError

    try:
        return _command(arguments)
    except UserError as mistake:
        return _said(mistake, 2)
    except (KafkaError, TimeoutError, ConnectionError) as failure:
        return _said(failure, 1)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0


def _command(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["serve"]:
        gc.disable()  # until it is ready: starting makes no garbage, and this is a tenth of it
        try:
            from ottla.cli.serve import serve

            return serve(arguments[1:])
        finally:
            gc.enable()  # a mistake ends here too, and the process need not be ours alone
    from ottla.cli.commands import application

    application(arguments)(args=list(arguments), prog_name="ottla")
    return 0


def _said(error: Exception, code: int) -> int:
    """One line, also where a message has several or none."""
    text = " ".join(str(error).split()) or type(error).__name__
    print(f"ottla: {text}", file=sys.stderr)
    return code


@contextmanager
def _without_hypothesis() -> Iterator[None]:
    """Where Hypothesis is installed kio registers strategies with it, which costs 0.2 s a start."""
    if "hypothesis" in sys.modules:
        yield
        return
    sys.modules["hypothesis"] = None  # type: ignore[assignment]  # an import of it fails at once
    try:
        yield
    finally:
        del sys.modules["hypothesis"]


if __name__ == "__main__":
    main()
