"""Interceptors see everything and stop nothing."""

from __future__ import annotations

import pytest

from ottla.client.interceptors import ProducerChain, ProducerInterceptor, ProducerRecord

RECORD = ProducerRecord("t", b"v")


class Adds(ProducerInterceptor):
    def __init__(self, text: bytes) -> None:
        self.text = text
        self.told: list[object] = []
        self.is_closed = False

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record._replace(value=record.value + self.text)

    def on_acknowledgement(self, metadata: object | None, error: BaseException | None) -> None:
        self.told.append((metadata, error))

    def close(self) -> None:
        self.is_closed = True


class Fails(ProducerInterceptor):
    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        raise ZeroDivisionError

    def on_acknowledgement(self, metadata: object | None, error: BaseException | None) -> None:
        raise ZeroDivisionError

    def close(self) -> None:
        raise ZeroDivisionError


@pytest.mark.spec("PRD-17")
def test_a_failing_interceptor_is_passed_over_and_the_next_gets_the_last_good_record() -> None:
    first, last = Adds(b"1"), Adds(b"2")
    chain = ProducerChain([first, Fails(), last])
    assert chain.on_send(RECORD).value == b"v12"
    chain.on_acknowledgement("there", None)
    chain.close()
    assert first.told == last.told == [("there", None)]
    assert last.is_closed


def test_one_that_overrules_nothing_changes_nothing() -> None:
    chain = ProducerChain([ProducerInterceptor()])
    assert chain.on_send(RECORD) is RECORD
    chain.on_acknowledgement(None, ValueError())
    chain.close()
    assert chain
    assert not ProducerChain(())
