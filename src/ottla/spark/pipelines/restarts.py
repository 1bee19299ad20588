"""Whether a query that failed is started again, and when; and what its failure was, in one line.

Owns: the failures that pass by themselves, the back-off between starts, and the line that says
most in one of Spark's errors. Pure: Spark's errors come as text, times are handed in.

Restarted: brokers that cannot be reached or answer with an error that Kafka calls retriable, a
Python worker that did not start within Spark's ten seconds or died, the one that plans the reads of
a source included, an executor that was lost. Not restarted: everything else, mistakes in options
and data that is gone above all: they fail again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ottla.model.errors import ErrorCode

WORKER_TIMEOUT: Final = "connect back"
"""Part of Spark's message for a Python worker that did not start in time."""
SLOW_WORKER: Final = (
    "a Python worker did not start within 10 s, Spark's fixed limit: the machine is overloaded; "
    "give Spark fewer cores (--master 'local[1]') or the machine less other work"
)
PLANNER_DIED: Final = re.compile(
    r"^java\.io\.EOFException$"
    r"|^java\.(io\.IO|net\.Socket)Exception: (Broken pipe|Connection reset)",
    re.MULTILINE,
)
"""All that Spark says when the process that plans the reads of a source has ended."""
DEAD_PLANNER: Final = "the Python process that plans the reads of a source has died"
PASSING: Final = re.compile(
    "|".join(
        (
            WORKER_TIMEOUT,
            r"Python worker (exited unexpectedly|failed to connect)",
            r"\bExecutorLostFailure\b",
            r"\b(Connection(Refused|Reset|Aborted)?|BrokenPipe|Timeout)Error: ",
            r"\bAbortNeeded: ",
            r"\bKafkaError: ({})\b".format("|".join(c.name for c in ErrorCode if c.retriable)),
        )
    )
)


ERROR_LINE: Final = re.compile(r"Error: |^\S*Exception: \[[A-Z_.]+\] ")
"""The last line of a Python traceback: of an error of ours or Python's, or of Spark's."""


@dataclass(frozen=True)
class RestartPolicy:
    """How often a query is started again after failures without a batch between them."""

    attempts: int = 10
    backoff_ms: int = 1_000
    """Before the first restart; doubles with each further one."""
    backoff_max_ms: int = 60_000

    def delay_ms(self, failures: int) -> int | None:
        """How long to wait after so many failures in a row; None: give up."""
        if failures > self.attempts:
            return None
        return min(self.backoff_ms << min(failures - 1, 30), self.backoff_max_ms)


def is_passing(failure: object) -> bool:
    """Whether a failure may pass by itself."""
    text = _text(failure)
    return PASSING.search(text) is not None or PLANNER_DIED.search(text) is not None


def reason(failure: Exception) -> str:
    """The line of a failure that says most: our own error, or else the root cause; Spark wraps
    both."""
    if WORKER_TIMEOUT in _text(failure):
        return SLOW_WORKER
    cause = _root(failure)
    for text in (str(failure), str(cause)):
        errors = [line.strip() for line in text.splitlines() if ERROR_LINE.search(line)]
        if errors:
            return errors[-1]
    if PLANNER_DIED.search(str(cause)):
        return DEAD_PLANNER
    lines = (line.strip() for line in str(cause).splitlines())
    return next(filter(None, lines), "the query failed without a message")


def _text(failure: object) -> str:
    return f"{failure}\n{_root(failure)}"


def _root(failure: object) -> object:
    """The first cause; Spark's exceptions of the JVM hold it in a field of their own."""
    while (cause := getattr(failure, "_cause", None)) is not None:
        failure = cause
    return failure
