"""Suggestions for misspelt settings of topics and groups.

Owns: which name was probably meant. Never: refuses a setting; a broker may know more than we do,
and its refusal comes first. The suggestion is made here and not by the broker, where one request
with thousands of misspelt names would take seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from ottla.model.errors import ErrorCode, KafkaError

REFUSALS: Final = (ErrorCode.invalid_config, ErrorCode.invalid_request)
ALIKE: Final = 0.75


def suggesting(error: Exception, names: Iterable[str], known: Iterable[str]) -> Exception:
    """The broker's refusal, with the nearest known name where one of `names` is unknown."""
    if not isinstance(error, KafkaError) or error.code not in REFUSALS:
        return error
    settings = sorted(known)
    for name in names:
        near = get_close_matches(name, settings, n=1, cutoff=ALIKE)
        if name not in settings and near:
            return KafkaError(error.code, f"{error}; did you mean {near[0]}?")
    return error
