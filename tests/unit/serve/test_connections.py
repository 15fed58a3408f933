"""Connections that bring no request, or take no response, end after a time; and others are served meanwhile."""

import contextlib
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

import pytest
import uvicorn
from starlette.types import Message, Receive, Scope, Send
from uvicorn.server import ServerState

from harness.serve.connections import HEAD_MAX, REQUEST_S, WRITE_S, Connection, Waiting

REQUEST = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


class Timer(NamedTuple):
    """A call that a loop was asked to make later."""

    seconds: float
    call: Callable[[], None]
    cancelled: list[bool]

    def cancel(self) -> None:
        self.cancelled.append(True)


class Loop:
    """Keeps what would happen later, and the tasks."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self.tasks: list[Any] = []

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(seconds, call, []))
        return self.timers[-1]

    def create_task(self, task: Any, **_: object) -> Any:
        self.tasks.append(task)
        return self

    def run(self) -> None:
        """Run each task as far as it goes."""
        for task in self.tasks:
            with contextlib.suppress(StopIteration):
                task.send(None)

    def add_done_callback(self, _: object) -> None:
        """Tasks are tasks of nobody."""

    def pending(self) -> list[float]:
        return [each.seconds for each in self.timers if not each.cancelled]


class Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written, self.is_aborted, self.is_closed = b"", False, False

    def write(self, content: bytes) -> None:
        self.written += content

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed or self.is_aborted

    def get_extra_info(self, _: str) -> None:
        return None

    def pause_reading(self) -> None:
        """Nothing more is read."""

    resume_reading = pause_reading


class Forever:
    """Never comes."""

    def __await__(self) -> Generator[None, None, None]:
        while True:
            yield


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send(cast("Message", {"type": "http.response.start", "status": 200, "headers": []}))
    await send(cast("Message", {"type": "http.response.body", "body": b"answered"}))


async def never(scope: Scope, receive: Receive, send: Send) -> None:
    """Begin an answer that does not go on."""
    await Forever()


Opened = tuple[Connection, Transport]


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    for task in made.tasks:
        task.close()


@pytest.fixture
def opened(loop: Loop) -> Callable[..., Opened]:
    waiting = Waiting(3)

    def one(app: object = answer) -> Opened:
        config = uvicorn.Config(
            cast("Any", app),
            http=cast("Any", partial(Connection, waiting)),
            headers=[("connection", "close")],
            h11_max_incomplete_event_size=HEAD_MAX,
            log_config=None,
        )
        config.load()
        connection, transport = Connection(waiting, config, ServerState(), {}, cast("Any", loop)), Transport()
        connection.server_state.default_headers = config.encoded_headers
        connection.connection_made(cast("Any", transport))
        return connection, transport

    return one


@pytest.mark.parametrize("part", [b"", b"G", REQUEST[:-2]])
def test_a_connection_without_a_whole_request_ends_after_a_time(
    opened: Callable[..., Opened], loop: Loop, part: bytes
) -> None:
    connection, transport = opened()
    for byte in part:
        connection.data_received(bytes([byte]))
    assert loop.pending() == [REQUEST_S]  # However many bytes come.
    loop.timers[-1].call()
    assert transport.is_aborted


def test_a_request_is_answered_once_and_the_connection_is_closed(opened: Callable[..., Opened], loop: Loop) -> None:
    connection, transport = opened()
    connection.data_received(REQUEST + REQUEST)
    connection.data_received(REQUEST)
    loop.run()
    assert transport.written.count(b"answered") == 1
    assert b"connection: close" in transport.written
    assert transport.is_closed
    assert loop.pending()[-1] == WRITE_S
    connection.connection_lost(None)
    assert WRITE_S not in loop.pending()


def test_while_a_response_is_made_there_is_no_limit_of_time(opened: Callable[..., Opened], loop: Loop) -> None:
    connection, _ = opened(never)
    connection.data_received(REQUEST)
    loop.run()
    assert loop.pending() == []


def test_a_client_that_takes_nothing_is_left_after_a_time(opened: Callable[..., Opened], loop: Loop) -> None:
    connection, transport = opened(never)
    connection.data_received(REQUEST)
    connection.pause_writing()
    assert loop.pending() == [WRITE_S]
    connection.resume_writing()
    assert loop.pending() == []
    connection.pause_writing()
    loop.timers[-1].call()
    assert transport.is_aborted


def test_a_new_connection_takes_the_place_of_the_one_that_waits_longest(
    opened: Callable[..., Opened], loop: Loop
) -> None:
    served, its_transport = opened(never)
    served.data_received(REQUEST)
    others = [opened() for _ in range(5)]
    assert [transport.is_aborted for _, transport in others] == [True, True, False, False, False]
    assert not its_transport.is_aborted
    last, transport = others[-1]
    last.data_received(REQUEST)
    loop.run()
    assert b"answered" in transport.written


def test_a_request_that_is_too_long_is_refused(opened: Callable[..., Opened]) -> None:
    connection, transport = opened()
    connection.data_received(b"GET /" + b"x" * HEAD_MAX)
    assert transport.written.startswith(b"HTTP/1.1 400")
    assert transport.is_closed
