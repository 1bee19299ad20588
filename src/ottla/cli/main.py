"""The entry point of the `ottla` program.

Owns: how a mistake is said: one line on stderr, never a traceback; exit code 2 when the command was
not understood, 1 when it did not succeed. Never: reads a command's options or does its work.

`serve` is called before anything else is imported: what a broker process loads it carries for
weeks, and typer with all it brings would be 17 MB and 0.15 s of every broker.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Final

INTERRUPTED: Final = 130  # as shells have it: 128 and the number of SIGINT


def main() -> None:
    """The `ottla` program."""
    code = run(sys.argv[1:], ready=raise_on_interrupt)
    end_on_interrupt()
    sys.exit(code)


def end_on_interrupt() -> None:
    """Let SIGINT end the process without a word: while modules are imported, nothing can catch it.

    A shell that started this process in the background has SIGINT ignored; that stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_on_interrupt() -> None:
    """Let SIGINT raise KeyboardInterrupt, as commands expect it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def run(arguments: Sequence[str], *, ready: Callable[[], None] = lambda: None) -> int:
    """Run one command; its exit code. `ready` is called when its modules have been imported."""
    from ottla.model.errors import KafkaError, UserError

    try:
        require_utf8(arguments)
        code = _exit_code(arguments, ready)
        sys.stdout.flush()  # here a full device is an error message, at exit a traceback
        return code
    except UserError as mistake:
        return _print_error(mistake, 2)
    except KafkaError as failure:
        return _print_error(failure.message or failure.code.name.replace("_", " "), 1)
    except OSError as failure:
        discard_output()
        return _print_error(describe_os_error(failure), 1)
    except KeyboardInterrupt:
        return INTERRUPTED


def _exit_code(arguments: Sequence[str], ready: Callable[[], None]) -> int:
    try:
        return _command(arguments, ready)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0


def describe_os_error(error: OSError) -> OSError | str:
    """What failed, and on what: the text of an OSError has only the first."""
    if isinstance(error, TimeoutError | ConnectionError) or error.strerror is None:
        return error
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
        return f"cannot write the output: {error.strerror}"
    return error.strerror


def discard_output() -> None:
    """Drop what standard output still buffers, if it cannot be written: Python would say so again
    at exit, with a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def require_utf8(arguments: Sequence[str]) -> None:
    """Names travel as UTF-8; other bytes in an argument could reach no broker and no terminal."""
    from ottla.model.errors import UserError

    variables = {name: text for name, text in os.environ.items() if name.startswith("OTTLA_")}
    for what, text in (*(("argument", each) for each in arguments), *variables.items()):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UserError(f"{what} {os.fsencode(text)!r} is not UTF-8") from None


def _command(arguments: Sequence[str], ready: Callable[[], None]) -> int:
    if arguments[:1] == ["serve"]:
        gc.disable()  # until it is ready: starting makes no garbage, and this is a tenth of it
        try:
            from ottla.cli.serve import serve

            # Not ready(): a broker handles SIGINT itself, from before it opens its files.
            return serve(arguments[1:])
        finally:
            gc.enable()  # a mistake ends here too, and the process need not be ours alone
    from ottla.cli.commands import application, with_command_config_first

    arguments = with_command_config_first(arguments)
    app = application(arguments)
    ready()
    app(args=list(arguments), prog_name="ottla")
    return 0


def _print_error(error: Exception | str, code: int) -> int:
    """One line, also where a message has several or none."""
    text = " ".join(str(error).split()) or type(error).__name__
    print(f"ottla: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
