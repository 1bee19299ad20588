"""The loggers of this process as resources that can be described and altered.

Owns the mapping between Kafka's level names and Python's. A change lasts until the process ends,
as with Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ottla.config.changes import Alteration, AlterOperation
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
    """Every logger with its effective level."""
    names = [ROOT, *sorted(logging.root.manager.loggerDict)]
    return {name: _kafka_level(_logger(name).getEffectiveLevel()) for name in names}


def check(alterations: Sequence[Alteration]) -> None:
    names = levels()
    for name, operation, value in alterations:
        if name not in names:
            raise KafkaError(ErrorCode.invalid_config, f"Logger {name} does not exist!")
        if operation == AlterOperation.SET:
            if value not in LEVELS:
                raise KafkaError(
                    ErrorCode.invalid_config,
                    f"Cannot set the log level of {name} to {value} as it is not a supported log "
                    f"level. Valid log levels are {', '.join(sorted(LEVELS))}",
                )
        elif operation == AlterOperation.DELETE:
            if name == ROOT:
                raise KafkaError(
                    ErrorCode.invalid_request,
                    "Removing the log level of the root logger is not allowed",
                )
        else:
            refused = "APPEND" if operation == AlterOperation.APPEND else "SUBTRACT"
            raise KafkaError(
                ErrorCode.invalid_request,
                f"{refused} operation is not allowed for the BROKER_LOGGER resource",
            )


def apply(alterations: Sequence[Alteration]) -> None:
    """Call `check` first; a logger without a level has its parent's."""
    for name, operation, value in alterations:
        level = LEVELS[value or ""] if operation == AlterOperation.SET else logging.NOTSET
        _logger(name).setLevel(level)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == ROOT else logging.getLogger(name)


def _kafka_level(level: int) -> str:
    """The most detailed of Kafka's levels that does not log more."""
    return next((name for name, value in LEVELS.items() if level <= value), "FATAL")
