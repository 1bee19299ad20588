"""A user's mistake as one line, from inside Spark's Python processes.

Owns: how an exception of ours reaches the user through Spark. Never: hides one that is not the
user's doing.

Spark puts the traceback of its worker process into the error it raises on the driver, unless the
process has `SPARK_HIDE_TRACEBACK` in its environment. The process ends with the exception, so
setting it there changes nothing for anybody else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ottla.model.errors import UserError
from ottla.spark.commit_decisions import AlreadyPast, DecidedTwice, JobEnded, Superseded
from ottla.spark.offsets import DataLost

HIDE: Final = "SPARK_HIDE_TRACEBACK"


@contextmanager
def as_user_errors() -> Iterator[None]:
    """What the user can mend is said without a traceback."""
    try:
        yield
    except (UserError, DataLost, Superseded, AlreadyPast, DecidedTwice, JobEnded):
        os.environ[HIDE] = "1"
        raise
