from __future__ import annotations

import pytest

from ottla.client.offsets import OffsetAndMetadata, checked_offsets
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

HERE = TopicPartition("t", 0)


@pytest.mark.spec("CON-47")
def test_an_offset_may_be_a_number_or_have_metadata() -> None:
    full = OffsetAndMetadata(5, "note", 2)
    assert checked_offsets({HERE: 5}) == {HERE: OffsetAndMetadata(5, "", -1)}
    assert checked_offsets({HERE: full}) == {HERE: full}


def test_an_offset_below_zero_is_refused() -> None:
    with pytest.raises(UserError, match="t-0: offset -1 is negative"):
        checked_offsets({HERE: -1})
