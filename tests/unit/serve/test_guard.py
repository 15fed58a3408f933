"""Who is let in, and how far: without the token, by another name, from another site, out of the store."""

import socket
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from harness.core.errors import ScenarioError
from harness.serve.app import Pages
from harness.serve.guard import HEADERS, Guard, own_names
from harness.serve.server import serve
from tests.unit.serve.stores import TORN, judged, report

TOKEN = "0123456789abcdef0123"  # noqa: S105  Of no server but those of these tests.
HERE = "http://127.0.0.1:8137"
RUN = "tutorial/20261123T010203Z-7"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    judged(tmp_path / "store", report(TORN))
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "report.html").write_text("a secret")
    (tmp_path / "secret" / "report.json").write_text('"a secret"')
    return tmp_path / "store"


@pytest.fixture
def stranger(store: Path) -> TestClient:
    guard = Guard(Pages(store).application(), token=TOKEN, hosts=own_names("127.0.0.1"))
    return TestClient(guard, base_url=HERE, follow_redirects=False)


@pytest.fixture
def friend(stranger: TestClient) -> TestClient:
    assert stranger.get(f"/?token={TOKEN}").status_code == 303
    return stranger


ADDRESSES = ("/", "/runs", f"/runs/{RUN}", f"/runs/{RUN}/live", f"/runs/{RUN}/history.jsonl", "/compare",
             "/sweeps", "/trends", "/calibration", f"/store/{RUN}/report.json", "/style.css", "/script.js",
             "/nowhere")  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_nobody_sees_anything_without_the_token(stranger: TestClient, address: str) -> None:
    for query in ("", "?token=", "?token=wrong", f"?token={TOKEN}x", f"?token={TOKEN}&token=wrong"):
        answer = stranger.get(address + query)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert "tutorial" not in answer.text


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_answer_has_the_headers_that_protect_it(friend: TestClient, address: str) -> None:
    answers = [friend.get(address) if not address.endswith("/live") else friend.head(address)]
    answers += [friend.get(address, headers={"host": "evil.example"}), friend.post(address)]
    for answer in answers:
        for name, value in HEADERS.items():
            if name == "content-security-policy" and "/store/" in address and answer.status_code == 200:
                continue
            assert answer.headers[name] == value
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe-eval" not in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"


def test_the_token_leaves_the_address_and_becomes_a_cookie_that_no_script_can_read(stranger: TestClient) -> None:
    answer = stranger.get(f"/runs?cluster=ndb&token={TOKEN}")
    assert answer.headers["location"] == "/runs?cluster=ndb"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("seamark-8137=")
    assert {"httponly", "samesite=lax", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    assert TOKEN not in cookie
    assert stranger.get("/runs").status_code == 200


def test_no_redirect_leads_to_another_host(stranger: TestClient) -> None:
    for path in ("//evil.example/", "/\\evil.example", "//evil.example/%2e%2e"):
        place = stranger.get(f"{HERE}{path}?token={TOKEN}").headers["location"]
        assert place.startswith("/")
        assert not place.startswith(("//", "/\\"))


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8137", "127.0.0.1.evil.example", "localhost.evil.example:8137", "", "127.0.0.1/x",
     "x@127.0.0.1", "127.0.0.2", "[::2]:8137", "127.0.0.1:99999999"],
)  # fmt: skip
def test_a_name_that_is_not_ours_leads_nowhere(friend: TestClient, host: str) -> None:
    assert friend.get("/runs", headers={"host": host}).status_code == 421
    assert friend.get(f"/?token={TOKEN}", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:8137", "LOCALHOST:8137"])
def test_a_forwarded_port_and_the_names_of_this_machine_are_ours(stranger: TestClient, host: str) -> None:
    assert stranger.get(f"/?token={TOKEN}", headers={"host": host}).status_code == 303


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8137", "http://127.0.0.1:3000"])
def test_no_other_origin_gets_an_answer(friend: TestClient, origin: str) -> None:
    assert friend.get("/runs", headers={"origin": origin}).status_code == 403
    assert friend.get("/runs", headers={"origin": HERE}).status_code == 200


def test_no_other_site_can_embed_or_fetch(friend: TestClient) -> None:
    for site in ("cross-site", "same-site"):
        for dest in ("empty", "iframe", "script", "image", "style"):
            headers = {"sec-fetch-site": site, "sec-fetch-dest": dest}
            assert friend.get("/runs", headers=headers).status_code == 403
    assert friend.get("/runs", headers={"sec-fetch-site": "same-origin", "sec-fetch-dest": "empty"}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(friend: TestClient, method: str) -> None:
    answer = friend.request(method, f"/store/{RUN}/report.json")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


ESCAPES = (
    "/store/../secret/report.html", "/store/%2e%2e/secret/report.html", "/store/..%2fsecret/report.html",
    "/store/tutorial/../../secret/report.html", "/store/tutorial/..%2f..%2fsecret/report.html",
    "/store//secret/report.html",
    "/store/tutorial/%2e%2e/%2e%2e/secret/report.html", "/store/link/report.html", "/store/tutorial/link/report.html",
    f"/store/{RUN}/link.html", f"/store/{RUN}/trace.html", f"/store/{RUN}/../../../secret/report.html",
    "/store/tutorial%00/x/report.html", f"/store/{RUN}/%2fetc%2fpasswd", "/store/%5c..%5csecret/report.html",
    "/runs/tutorial/link", "/runs/../secret", "/runs/%2e%2e/secret", "/runs/tutorial/link/history.jsonl",
    "/compare?run=../secret&run=tutorial/link", f"/compare?run=link/x&run={RUN}", f"/store/{RUN}/seen.txt",
)  # fmt: skip


@pytest.mark.parametrize("address", ESCAPES)
def test_no_path_leaves_the_store(friend: TestClient, store: Path, address: str) -> None:
    secret = store.parent / "secret"
    (store / "link").symlink_to(secret)
    (store / "tutorial" / "link").symlink_to(secret)
    (store / RUN / "link.html").symlink_to(secret / "report.html")
    (store / RUN / "trace.html").symlink_to(secret / "report.html")
    (store / RUN / "seen.txt").write_text("a secret, though no link")
    answer = friend.get(HERE + address)
    assert answer.status_code == 404
    assert "a secret" not in answer.text


def test_a_stored_page_may_run_our_script_and_no_other(friend: TestClient, store: Path) -> None:
    (store / RUN / "report.html").write_text("<script>stolen = 1</script>")
    policy = friend.get(f"/store/{RUN}/report.html").headers["content-security-policy"]
    (scripts,) = [each.strip() for each in policy.split(";") if each.strip().startswith("script-src")]
    assert scripts.startswith("script-src 'sha256-")
    assert len(scripts.split()) == 2
    assert "sandbox allow-scripts;" in policy
    assert "connect-src" not in policy
    assert "default-src 'none'" in policy


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "00", "0x0", "0.0", "::", "::0", "0:0::0", "::ffff:0.0.0.0"])  # noqa: S104  Refused.
def test_no_form_of_the_address_that_means_all_interfaces_is_listened_at(store: Path, host: str) -> None:
    with pytest.raises(ScenarioError, match="name one address of this machine"):
        serve(store, host, 0, TOKEN, lambda _: None)


def test_a_name_that_leads_to_all_interfaces_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("0.0.0.0", 0))]  # noqa: S104  It is refused.
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)
    with pytest.raises(ScenarioError, match="name one address of this machine"):
        serve(store, "everywhere.example", 0, TOKEN, lambda _: None)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "localhost"])
def test_an_address_of_loopback_in_any_form_needs_no_warning(
    store: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    lines: list[str] = []
    serve(store, host, 0, TOKEN, lines.append)
    assert lines[0].startswith(f"http://{host}:")
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"store": "nowhere"}, "there is no such folder"),
        ({"host": "192.0.2.1"}, "cannot listen there"),
        ({"host": ""}, "cannot listen there"),
        ({"token": "short"}, "at least 16 letters"),
        ({"token": "a token with spaces in it"}, "at least 16 letters"),
    ],
)
def test_what_cannot_be_served_is_told_in_a_line(store: Path, changed: dict[str, str], message: str) -> None:
    asked = {"store": str(store), "host": "127.0.0.1", "token": TOKEN} | changed
    with pytest.raises(ScenarioError, match=message):
        serve(Path(asked["store"]), asked["host"], 0, asked["token"], lambda _: None)
