"""Loggers as resources."""

from __future__ import annotations

import logging

import pytest

from ottla.api import loggers
from ottla.config.changes import Alteration, AlterOperation
from ottla.model.errors import ErrorCode, KafkaError

NAME = "ottla.tests.loggers"
SET, DELETE, APPEND, _ = AlterOperation


@pytest.fixture
def logger() -> logging.Logger:
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.NOTSET)
    return logger


@pytest.mark.parametrize(("name", "level"), loggers.LEVELS.items())
def test_kafkas_levels_go_in_and_come_out(logger: logging.Logger, name: str, level: int) -> None:
    loggers.apply([Alteration(NAME, SET, name)])
    assert logger.level == level
    assert loggers.levels()[NAME] == name
    loggers.apply([Alteration(NAME, DELETE, None)])
    assert logger.level == logging.NOTSET


def test_a_level_between_two_of_kafkas_shows_as_the_quieter(logger: logging.Logger) -> None:
    logger.setLevel(logging.INFO + 1)
    assert loggers.levels()[NAME] == "WARN"


@pytest.mark.parametrize(
    ("alteration", "code"),
    [
        (Alteration("no.such.logger", SET, "INFO"), ErrorCode.invalid_config),
        (Alteration(NAME, SET, "LOUD"), ErrorCode.invalid_config),
        (Alteration(NAME, SET, None), ErrorCode.invalid_config),
        (Alteration("root", DELETE, None), ErrorCode.invalid_request),
        (Alteration(NAME, APPEND, "INFO"), ErrorCode.invalid_request),
    ],
)
def test_what_is_no_level_or_no_logger_is_refused(
    logger: logging.Logger, alteration: Alteration, code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        loggers.check([alteration])
    assert refused.value.code is code
