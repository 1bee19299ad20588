"""The table of fields is whole: every version of every message can be made of it."""

from __future__ import annotations

from ottla.protocol.interbroker_fields import REQUESTS, RESPONSES, VERSIONS, Declared


def test_every_message_has_both_halves_and_turns_flexible_within_its_versions() -> None:
    assert set(REQUESTS) == set(RESPONSES) == set(VERSIONS) == {4, 5, 6, 7}
    for key, versions in VERSIONS.items():
        assert REQUESTS[key].flexible_since == RESPONSES[key].flexible_since
        assert REQUESTS[key].flexible_since in versions


def test_no_field_has_versions_in_which_its_message_does_not_exist() -> None:
    def walk(fields: tuple[Declared, ...], last: int) -> None:
        names = [field.name for field in fields]
        assert len(set(names)) == len(names)
        for field in fields:
            assert 0 <= field.since <= min(field.until, last)
            walk(field.fields, last)

    for key, versions in VERSIONS.items():
        for half in (REQUESTS, RESPONSES):
            walk(half[key].fields, versions[-1])
