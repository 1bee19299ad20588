"""What the network layer alone can do: requests a second, and gigabytes in and out.

A server process answers every frame with a fixed reply; a client process drives it with plain
sockets. `python -m benchmarks.net [--uvloop] [--seconds N]` prints one line for each promise:

- small requests over ten connections, five in flight on each
- 1 MB frames received
- 1 MB replies sent with sendfile from a warm file
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import resource
import selectors
import socket
import struct
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from typing import Final, NamedTuple

from ottla.model.clock import SystemClock
from ottla.model.metrics import Registry
from ottla.net.limits import NetLimits
from ottla.net.listener import Answer, Listener, RequestSlot
from ottla.net.network import Network
from ottla.net.request_metrics import RequestMetrics

MB: Final = 1_000_000
SMALL_REPLY: Final = struct.pack(">i", 46) + bytes(46)


class Place(NamedTuple):
    name: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    protocol: str = "PLAINTEXT"


class Stretch(NamedTuple):
    """A slice of a file that is known to be warm."""

    file: int
    position: int
    size: int

    def fileno(self) -> int:
        return self.file

    def read(self) -> bytes:
        return os.pread(self.file, self.size, self.position)

    def is_cached(self) -> bool:
        return True

    def warm(self) -> None:
        """Nothing to do."""


class Result(NamedTuple):
    requests: int
    seconds: float
    cpu_seconds: float  # of the server


def frame(size: int) -> bytes:
    """A request whose header is enough for the network layer: API key 0."""
    return struct.pack(">ihhi", size - 4, 0, 0, 1) + bytes(size - 12)


def answer_small(_: memoryview, slot: RequestSlot) -> None:
    slot.reply([SMALL_REPLY])


def answer_from_file(file: int) -> Answer:
    def answer(_: memoryview, slot: RequestSlot) -> None:
        slot.reply([struct.pack(">i", MB + 8) + bytes(8), Stretch(file, 0, MB)])

    return answer


def serve(answer: Answer, limits: NetLimits, use_uvloop: bool, pipe: Pipe) -> None:
    async def run() -> None:
        clock = SystemClock()
        network = Network(limits, clock, RequestMetrics(Registry(), {0: "Produce"}, clock))
        listener = Listener(Place(), answer, network)
        pipe.send(await listener.start())
        while True:
            await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
            usage = resource.getrusage(resource.RUSAGE_SELF)
            pipe.send(usage.ru_utime + usage.ru_stime)

    if use_uvloop:
        import uvloop

        uvloop.run(run())
    else:
        asyncio.run(run())


def drive(port: int, plan: Plan, seconds: float) -> tuple[int, float]:
    """Keep `plan.in_flight` requests under way on every connection; replies counted, time taken."""
    selector = selectors.DefaultSelector()
    owed: dict[socket.socket, int] = {}
    for _ in range(plan.connections):
        one = socket.create_connection(("127.0.0.1", port))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(one, selectors.EVENT_READ)
        owed[one] = 0
    room = memoryview(bytearray(1 << 20))
    for one in owed:
        one.sendall(plan.request * plan.in_flight)
    done, began = 0, time.perf_counter()
    ends = began + seconds
    while time.perf_counter() < ends:
        for key, _ in selector.select():
            one = key.fileobj  # type: ignore[assignment]
            owed[one] += one.recv_into(room)
            replies, owed[one] = divmod(owed[one], plan.reply_bytes)
            if replies:
                done += replies
                one.sendall(plan.request * replies)
    taken = time.perf_counter() - began
    for one in owed:
        one.close()
    return done, taken


class Plan(NamedTuple):
    name: str
    answer: Answer
    request: bytes
    reply_bytes: int
    connections: int
    in_flight: int
    show: Callable[[float], str]


def plans(file: int) -> tuple[Plan, ...]:
    """The promises; `file` has at least a megabyte, and is inherited by the server."""
    return (
        Plan("small", answer_small, frame(60), 50, 10, 5, lambda n: f"{n / 1e3:.0f} k requests/s"),
        Plan("receive", answer_small, frame(MB), 50, 2, 2, lambda n: f"{n * MB / 1e9:.2f} GB/s in"),
        Plan(
            "send",
            answer_from_file(file),
            frame(60),
            MB + 12,
            2,
            2,
            lambda n: f"{n * MB / 1e9:.2f} GB/s out",
        ),
    )


def measure(plan: Plan, limits: NetLimits, *, use_uvloop: bool, seconds: float) -> Result:
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(
        target=serve, args=(plan.answer, limits, use_uvloop, theirs), daemon=True
    )
    server.start()
    try:
        port = ours.recv()
        drive(port, plan, 0.3)  # warm
        ours.send("cpu")
        before = ours.recv()
        done, taken = drive(port, plan, seconds)
        ours.send("cpu")
        return Result(done, taken, ours.recv() - before)
    finally:
        server.kill()
        server.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uvloop", action="store_true")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument(
        "--buffers", type=int, default=102_400, help="set the socket buffer size; -1: the system's"
    )
    parser.add_argument("--only", choices=["small", "receive", "send"])
    arguments = parser.parse_args()
    limits = NetLimits(
        socket_send_buffer_bytes=arguments.buffers, socket_receive_buffer_bytes=arguments.buffers
    )
    with tempfile.TemporaryFile() as file:
        file.write(bytes(MB))
        file.flush()
        for plan in plans(file.fileno()):
            if arguments.only in (None, plan.name):
                result = measure(
                    plan, limits, use_uvloop=arguments.uvloop, seconds=arguments.seconds
                )
                rate = result.requests / result.seconds
                each_us = result.cpu_seconds / result.requests * 1e6
                print(f"{plan.name:8} {plan.show(rate):24} {each_us:8.1f} us of server CPU each")


if __name__ == "__main__":
    main()
