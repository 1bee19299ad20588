"""This process's loggers as resources that can be described and changed.

Owns the mapping between Kafka's level names and Python's. A change lasts until the process ends,
as with Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ottla.config.changes import Alteration, Operation
from ottla.model.errors import ErrorCode, KafkaError

ROOT: Final = "root"
TRACE: Final = 5
LEVELS: Final = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def levels() -> dict[str, str]:
    """Every logger with the level that holds for it."""
    names = [ROOT, *sorted(logging.root.manager.loggerDict)]
    return {name: _shown(_logger(name).getEffectiveLevel()) for name in names}


def check(alterations: Sequence[Alteration]) -> None:
    known = levels()
    for name, operation, value in alterations:
        if name not in known:
            raise KafkaError(ErrorCode.invalid_config, f"Logger {name} does not exist!")
        if operation == Operation.SET:
            if value not in LEVELS:
                raise KafkaError(
                    ErrorCode.invalid_config,
                    f"Cannot set the log level of {name} to {value} as it is not a supported log "
                    f"level. Valid log levels are {', '.join(LEVELS)}",
                )
        elif operation == Operation.DELETE:
            if name == ROOT:
                raise KafkaError(
                    ErrorCode.invalid_request,
                    "Removing the log level of the root logger is not allowed",
                )
        else:
            raise KafkaError(
                ErrorCode.invalid_request, "Levels of loggers can only be set or deleted."
            )


def apply(alterations: Sequence[Alteration]) -> None:
    """After `check`; a deleted level follows the parent's."""
    for name, operation, value in alterations:
        wanted = LEVELS[value or ""] if operation == Operation.SET else logging.NOTSET
        _logger(name).setLevel(wanted)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == ROOT else logging.getLogger(name)


def _shown(level: int) -> str:
    """The nearest of Kafka's levels that lets no more through."""
    return next((name for name, value in LEVELS.items() if level <= value), "FATAL")
