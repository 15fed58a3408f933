"""Toxiproxy's HTTP interface, against a server that answers as it is told."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.core.errors import DeployError
from harness.runtimes.containers.links.links import DOWN, Proxy, Toxic, Toxiproxy

LATENCY = Toxic("late", "latency", "upstream", {"latency": 5})


class Recorder(ThreadingHTTPServer):
    """Answers every request with `status` and `answer`, and keeps what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.answer = 200, b"{}"
        self.asked: list[tuple[str, str, object]] = []


class Handler(BaseHTTPRequestHandler):
    server: Recorder

    def handle_request(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append((self.command, self.path, body))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.answer)

    do_GET = do_POST = do_DELETE = handle_request  # noqa: N815  Named by http.server.

    def log_message(self, *args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def server() -> Iterator[Recorder]:
    with Recorder() as recorder:
        thread = threading.Thread(target=recorder.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield recorder
        recorder.shutdown()
        thread.join()


@pytest.fixture
def proxies(server: Recorder) -> Toxiproxy:
    return Toxiproxy("127.0.0.1", server.server_port)


def test_each_wish_is_one_request(server: Recorder, proxies: Toxiproxy) -> None:
    proxies.create("n1>n2", "10.0.0.2:20000", "10.0.0.3:7000")
    proxies.disable("n1>n2")
    proxies.enable("n1>n2")
    proxies.add_toxic("n1>n2", LATENCY)
    proxies.remove_toxic("n1>n2", "late")
    toxic = {"name": "late", "type": "latency", "stream": "upstream", "toxicity": 1.0, "attributes": {"latency": 5}}
    assert server.asked == [
        ("POST", "/proxies", {"name": "n1>n2", "listen": "10.0.0.2:20000", "upstream": "10.0.0.3:7000"}),
        ("POST", "/proxies/n1%3En2", {"enabled": False}),
        ("POST", "/proxies/n1%3En2", {"enabled": True}),
        ("POST", "/proxies/n1%3En2/toxics", toxic),
        ("DELETE", "/proxies/n1%3En2/toxics/late", None),
    ]


def test_the_proxies_are_told_with_their_toxics(server: Recorder, proxies: Toxiproxy) -> None:
    late = {"name": "late", "type": "latency", "stream": "upstream", "toxicity": 1, "attributes": {"latency": 5}}
    result = {"listen": "a:1", "upstream": "b:2", "enabled": False, "toxics": [late]}
    server.answer = json.dumps({"n1>n2": result}).encode()
    assert proxies.proxies() == {"n1>n2": Proxy("a:1", "b:2", is_enabled=False, toxics=(LATENCY,))}


def test_a_toxic_that_is_gone_is_taken_away_in_peace(server: Recorder, proxies: Toxiproxy) -> None:
    server.status = 404
    proxies.remove_toxic("n1>n2", "late")
    with pytest.raises(DeployError):
        proxies.enable("n1>n2")


@pytest.mark.parametrize("status", [400, 409, 500])
def test_a_refusal_is_told_in_one_line_with_the_server_s_own_words(
    server: Recorder, proxies: Toxiproxy, status: int
) -> None:
    server.status, server.answer = status, b'{"error":"listen tcp:\\n in use","status":0}'
    with pytest.raises(DeployError, match=r"^Toxiproxy at 127\.0\.0\.1:\d+, /proxies: listen tcp:.* in use$"):
        proxies.create("n1>n2", "a:1", "b:2")


def test_another_server_on_that_port_is_no_toxiproxy(server: Recorder, proxies: Toxiproxy) -> None:
    server.answer = b"<html>"
    with pytest.raises(DeployError, match="not Toxiproxy's"):
        proxies.proxies()


def test_a_server_that_is_gone_cannot_be_reached(server: Recorder) -> None:
    with Recorder() as other:
        port = other.server_port
    with pytest.raises(DeployError, match="cannot be reached"):
        Toxiproxy("127.0.0.1", port).version()


def test_two_servers_in_one_process_are_kept_apart(server: Recorder, proxies: Toxiproxy) -> None:
    Toxiproxy("127.0.0.1", 1)
    proxies.disable("n1>n2")
    assert server.asked == [("POST", "/proxies/n1%3En2", {"enabled": False})]


def test_a_proxy_is_opened_when_the_last_reason_to_shut_it_is_gone(server: Recorder, proxies: Toxiproxy) -> None:
    proxies.disable("n1>n2")
    proxies.disable("n1>n2", DOWN)
    proxies.enable("n1>n2")
    assert [wish for _, _, wish in server.asked] == [{"enabled": False}, {"enabled": False}]
    proxies.enable("n1>n2", DOWN)
    assert server.asked[-1][2] == {"enabled": True}
