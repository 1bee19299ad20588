"""The cells of clients that are used from Python: librdkafka's, kafka-python, aiokafka and ours.

Each client runs in a process of its own: one that is refused may leave sockets and tasks behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import ottla
import ottla.aio
from ottla.model.errors import AuthenticationFailed, KafkaError
from tests.interop.kafka_python_settings import METADATA_MAX_AGE_MS
from tests.interop.security.cells import (
    BEARER,
    KERBEROS,
    NO_EXCEPTION,
    Access,
    Cell,
    Job,
    Outcome,
)
from tests.interop.security.site import OPEN, our_config

ROOT: Final = Path(__file__).resolve().parents[3]
WAIT_S: Final = 30.0
AT_ONCE: Final = 6
_PHRASES: Final = {
    "refused our certificate": "client certificate refused",
    "requires a client certificate": "client certificate refused",
    **{
        phrase: phrase
        for phrase in (
            "unknown authority",
            "certificate has expired",
            "host name mismatch",
            "login by",
        )
    },
}
"""Of the messages of our clients, those that docs/security.md names. Kafka's TLS does not tell a
missing certificate from a refused one."""

Part = Callable[[Job], None]
AsyncPart = Callable[[Job], Awaitable[None]]


class NothingCame(Exception):
    """Neither a record nor an error in time."""


def in_threads(jobs: Iterable[Job], produce: Part, consume: Part) -> dict[Cell, Outcome]:
    """Several cells at a time: they wait for the broker most of the time."""

    def outcome(job: Job) -> Outcome:
        return Outcome(_attempt(produce, job), _attempt(consume, job))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        listed = list(jobs)
        return dict(zip((job.cell for job in listed), pool.map(outcome, listed), strict=True))


def in_loop(jobs: Iterable[Job], produce: AsyncPart, consume: AsyncPart) -> dict[Cell, Outcome]:
    async def run() -> dict[Cell, Outcome]:
        turns = asyncio.Semaphore(AT_ONCE)

        async def outcome(job: Job) -> tuple[Cell, Outcome]:
            async with turns:
                parts = [await _async_attempt(part, job) for part in (produce, consume)]
                return job.cell, Outcome(*parts)

        return dict(await asyncio.gather(*(outcome(job) for job in jobs)))

    return asyncio.run(run())


def name_of(error: BaseException) -> str:
    """The exception as its user catches it, and Kafka's code where it has one."""
    if isinstance(error, AuthenticationFailed):
        found = [shown for phrase, shown in _PHRASES.items() if phrase in str(error)]
        return f"AuthenticationFailed ({found[0] if found else error})"
    if isinstance(error, KafkaError):
        return f"KafkaError ({error.code.name})"
    return type(error).__name__


# librdkafka


def confluent_kafka(jobs: Iterable[Job]) -> dict[Cell, Outcome]:
    return in_threads(jobs, _produce_by_librdkafka, _consume_by_librdkafka)


class _Reported(Exception):
    """An error that librdkafka reported to a callback or in a message."""


def _librdkafka(access: Access, errors: list[str]) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": access.protocol,
        "ssl.ca.location": str(access.authority),
        "log_level": 0,
        "error_cb": lambda error: errors.append(error.name()),
    }
    if access.certificate is not None:
        location = str(access.certificate)
        config |= {"ssl.certificate.location": location, "ssl.key.location": location}
    if access.mechanism is not None:
        config["sasl.mechanism"] = access.mechanism
    if access.bearer is not None:
        token = access.bearer.read_text()
        config["oauth_cb"] = lambda _: (token, time.time() + 3_000)
    elif access.mechanism is not None:
        config |= {"sasl.username": access.user, "sasl.password": access.password}
    return config


def _produce_by_librdkafka(job: Job) -> None:
    from confluent_kafka import Producer

    errors: list[str] = []
    delivered: list[str] = []
    producer = Producer(_librdkafka(job.access, errors))
    producer.produce(
        job.topic,
        job.value.encode(),
        on_delivery=lambda error, _: delivered.append("" if error is None else error.name()),
    )
    deadline = time.monotonic() + WAIT_S
    while not errors and not delivered and time.monotonic() < deadline:
        producer.poll(0.05)
    _raise_first([*errors, *filter(None, delivered)], missing=not delivered)
    producer.purge()


def _consume_by_librdkafka(job: Job) -> None:
    from confluent_kafka import Consumer

    errors: list[str] = []
    config = _librdkafka(job.access, errors)
    consumer = Consumer({**config, "group.id": job.group, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([OPEN])
        deadline = time.monotonic() + WAIT_S
        value: bytes | None = None
        while not errors and value != job.value.encode() and time.monotonic() < deadline:
            message = consumer.poll(0.05)
            if message is None:
                continue
            error, value = message.error(), message.value()
            if error is not None:
                errors.append(error.name())
        _raise_first(errors, missing=value != job.value.encode())
    finally:
        consumer.close()


def _raise_first(errors: list[str], *, missing: bool) -> None:
    if errors:
        raise _Reported(errors[0])
    if missing:
        raise NothingCame


# kafka-python and aiokafka


def kafka_python(jobs: Iterable[Job]) -> dict[Cell, Outcome]:
    return in_threads(jobs, _produce_by_kafka_python, _consume_by_kafka_python)


def aiokafka(jobs: Iterable[Job]) -> dict[Cell, Outcome]:
    return in_loop(jobs, _produce_by_aiokafka, _consume_by_aiokafka)


def _python_config(access: Access) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=str(access.authority))
    if access.certificate is not None:
        context.load_cert_chain(access.certificate)
    config: dict[str, Any] = {
        "bootstrap_servers": access.bootstrap,
        "security_protocol": access.protocol,
        "ssl_context": context,
    }
    if access.mechanism is not None:
        config["sasl_mechanism"] = access.mechanism
    if access.mechanism == KERBEROS:
        config["sasl_kerberos_service_name"] = "kafka"
    elif access.mechanism not in (None, BEARER):
        config |= {"sasl_plain_username": access.user, "sasl_plain_password": access.password}
    return config


def _kafka_python_config(access: Access) -> dict[str, Any]:
    config = _python_config(access)
    if access.bearer is not None:
        from kafka.net.sasl.oauth import AbstractTokenProvider

        text = access.bearer.read_text()

        class Provider(AbstractTokenProvider):  # type: ignore[misc]  # without types
            def token(self) -> str:
                return text

        config["sasl_oauth_token_provider"] = Provider()
    return config


def _produce_by_kafka_python(job: Job) -> None:
    from kafka import KafkaProducer

    more = {"max_block_ms": 10_000, "bootstrap_timeout_ms": 5_000}
    producer = KafkaProducer(**_kafka_python_config(job.access), **more)
    with contextlib.closing(producer):
        producer.send(job.topic, job.value.encode()).get(WAIT_S)


def _consume_by_kafka_python(job: Job) -> None:
    from kafka import KafkaConsumer

    config = _kafka_python_config(job.access)
    consumer = KafkaConsumer(
        OPEN, **config, group_id=job.group, auto_offset_reset="earliest",
        consumer_timeout_ms=int(WAIT_S * 1000), bootstrap_timeout_ms=5_000,
        metadata_max_age_ms=METADATA_MAX_AGE_MS,
    )  # fmt: skip
    with contextlib.closing(consumer):
        for record in consumer:
            if record.value == job.value.encode():
                return
    raise NothingCame


def _aiokafka_config(access: Access) -> dict[str, Any]:
    config = _python_config(access)
    if access.bearer is not None:
        from aiokafka.abc import AbstractTokenProvider

        text = access.bearer.read_text()

        class Provider(AbstractTokenProvider):  # type: ignore[misc]  # without types
            async def token(self) -> str:
                return text

        config["sasl_oauth_token_provider"] = Provider()
    return config


async def _produce_by_aiokafka(job: Job) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(**_aiokafka_config(job.access))
    try:
        await producer.start()
        await producer.send_and_wait(job.topic, job.value.encode())
    finally:
        await producer.stop()


async def _consume_by_aiokafka(job: Job) -> None:
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(
        OPEN, **_aiokafka_config(job.access), group_id=job.group, auto_offset_reset="earliest"
    )
    try:
        await consumer.start()
        async for record in consumer:
            if record.value == job.value.encode():
                return
    finally:
        await consumer.stop()


# ours


def ours(jobs: Iterable[Job]) -> dict[Cell, Outcome]:
    return in_threads(jobs, _produce_by_ours, _consume_by_ours)


def ours_async(jobs: Iterable[Job]) -> dict[Cell, Outcome]:
    return in_loop(jobs, _produce_by_ours_async, _consume_by_ours_async)


def _group(job: Job) -> dict[str, str]:
    return {**our_config(job.access), "group.id": job.group, "auto.offset.reset": "earliest"}


def _produce_by_ours(job: Job) -> None:
    with ottla.Producer(config=our_config(job.access)) as producer:
        producer.send(job.topic, job.value.encode()).result(WAIT_S)


def _consume_by_ours(job: Job) -> None:
    with ottla.Consumer(config=_group(job)) as consumer:
        consumer.subscribe([OPEN])
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if any(record.value == job.value.encode() for record in consumer.poll(1.0)):
                return
    raise NothingCame


async def _produce_by_ours_async(job: Job) -> None:
    async with ottla.aio.Producer(config=our_config(job.access)) as producer:
        await (await producer.send(job.topic, job.value.encode()))


async def _consume_by_ours_async(job: Job) -> None:
    async with ottla.aio.Consumer(config=_group(job)) as consumer:
        consumer.subscribe([OPEN])
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if any(record.value == job.value.encode() for record in await consumer.poll(1.0)):
                return
    raise NothingCame


def _attempt(part: Part, job: Job) -> str:
    try:
        part(job)
    except _Reported as reported:
        return str(reported)
    except Exception as error:
        return name_of(error)
    return "ok"


async def _async_attempt(part: AsyncPart, job: Job) -> str:
    try:
        async with asyncio.timeout(WAIT_S):
            await part(job)
    except TimeoutError:
        return NO_EXCEPTION
    except Exception as error:
        return name_of(error)
    return "ok"


PYTHON_CLIENTS: Final[Mapping[str, Callable[[Iterable[Job]], dict[Cell, Outcome]]]] = {
    "confluent-kafka": confluent_kafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "ottla": ours,
    "ottla.aio": ours_async,
}


def run(client: str, jobs: Iterable[Job]) -> dict[Cell, Outcome]:
    """All of these cells of a client."""
    listed = list(jobs)
    command = [sys.executable, "-W", "ignore", "-m", __spec__.name, client]
    done = subprocess.run(
        command, input=pickle.dumps(listed), capture_output=True, cwd=ROOT, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    *_, answer = done.stdout.splitlines()
    outcomes = (Outcome(*parts) for parts in json.loads(answer))
    return dict(zip((job.cell for job in listed), outcomes, strict=True))


def main(client: str) -> None:
    jobs: list[Job] = pickle.load(sys.stdin.buffer)
    found = PYTHON_CLIENTS[client](jobs)
    print(json.dumps([found[job.cell] for job in jobs]), flush=True)
    os._exit(0)  # without waiting for threads of clients that were refused


if __name__ == "__main__":
    main(sys.argv[1])
