from __future__ import annotations

import json
import logging
import sys

from ottla.broker.lifecycle import FORMATS, LEVELS, LINE, JsonLine, TextLine
from ottla.cli.serve import LOG_FORMATS, LOG_LEVELS


def record(**more: object) -> logging.LogRecord:
    record = logging.LogRecord("ottla.x", logging.WARNING, "f", 1, "broker %d\nstopped", (2,), None)
    record.created = 1.5
    record.__dict__.update(more)
    return record


def test_a_record_is_one_line_of_json() -> None:
    line = JsonLine().format(record())
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "WARNING",
        "logger": "ottla.x",
        "message": "broker 2\nstopped",
    }


def test_a_record_is_one_line_of_text_without_control_codes() -> None:
    line = TextLine(LINE).format(record(msg="user %s\x1b[2J", args=("a\r\nINFO ottla: forged",)))
    assert line.endswith("WARNING ottla.x: user a\\r\\nINFO ottla: forged\\x1b[2J")
    assert line.isprintable()


def test_a_traceback_stays_as_it_is() -> None:
    try:
        raise ValueError("why")
    except ValueError:
        text = TextLine(LINE).format(record(exc_info=sys.exc_info()))
    assert text.count("\n") >= 3
    assert text.endswith("ValueError: why")


def test_an_exception_is_part_of_the_line() -> None:
    try:
        raise ValueError("why")
    except ValueError:
        line = JsonLine().format(record(exc_info=sys.exc_info()))
    assert "ValueError: why" in json.loads(line)["exception"]


def test_levels_and_formats_are_those_of_logging() -> None:
    assert all(isinstance(logging.getLevelName(level.upper()), int) for level in LEVELS)
    assert FORMATS == LOG_FORMATS
    assert LEVELS == LOG_LEVELS
