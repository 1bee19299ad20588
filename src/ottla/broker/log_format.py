"""The format and the level of a broker's log.

Owns: the format of a log line: text, or one JSON object per line for log collectors. Never: decides
what is logged.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, NamedTuple

TEXT: Final = "text"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)
LEVELS: Final = ("debug", "info", "warning", "error", "critical")
LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogStyle(NamedTuple):
    """Level and format of the log."""

    level: str = "info"
    format: str = TEXT

    def apply(self) -> None:
        """Log to stderr from now on."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLine() if self.format == JSON else logging.Formatter(LINE))
        logging.basicConfig(level=self.level.upper(), handlers=[handler])


class JsonLine(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, and the exception if any."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)
