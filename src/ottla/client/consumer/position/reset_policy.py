"""`auto.offset.reset`: where to start without a position.

Pure. Returns the timestamp for ListOffsets: -2 for the start of the log, -1 for its end, or a point
in time.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.model.clock import WallMs
from ottla.model.errors import UserError

EARLIEST: Final = -2
LATEST: Final = -1
BY_DURATION: Final = "by_duration:"

# ISO 8601 as Java's Duration reads it: days and smaller, no months or years.
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)
_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


class ResetPolicy(NamedTuple):
    """What to do without a committed offset, or with one that is out of range."""

    name: str
    back_ms: int = 0

    def timestamp(self, now_ms: WallMs) -> int | None:
        """The timestamp for ListOffsets; None: raise an error to the user."""
        match self.name:
            case "earliest":
                return EARLIEST
            case "latest":
                return LATEST
            case "by_duration":
                return now_ms - self.back_ms
            case _:
                return None


def reset_policy(text: str) -> ResetPolicy:
    """The policy that `auto.offset.reset` names."""
    if text in ("earliest", "latest", "none"):
        return ResetPolicy(text)
    if text.startswith(BY_DURATION):
        matched = _DURATION.fullmatch(text.removeprefix(BY_DURATION))
        if matched is not None and any(matched.groups()):
            parts = {unit: float(number or 0) for unit, number in matched.groupdict().items()}
            return ResetPolicy("by_duration", round(sum(n * _MS[u] for u, n in parts.items())))
    raise UserError(
        f"auto.offset.reset={text!r}: expected earliest, latest, none, or by_duration: and an "
        "ISO 8601 duration such as by_duration:PT1H30M"
    )
