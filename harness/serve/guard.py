"""Access control around the application: who may read the store, and what a browser may do with the answers.

1. Host: only requests for one of our own names pass, so a page of another site cannot make its name lead here (DNS
   rebinding).
2. No request changes anything, so only GET and HEAD pass; and no script or frame of another site may send them.
3. The token: once in the printed address, from then on in a cookie that no script can read, and that another site or a
   stored page, which has an origin of its own, sends only when a link in it is followed.
4. Every response says that it must not be stored or framed, that its type must not be guessed, and what may run in it.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN: Final = "token"  # noqa: S105  The name of the parameter.
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
        "cache-control": "no-store",
    }
)
_METHODS: Final = ("GET", "HEAD")
_OPEN: Final = "open the address that seamark serve has printed: it has the token"


class Guard:
    """An ASGI application around another, for requests with the token, to one of those `hosts`.

    `hosts` are names without ports, as `own_names` gives them: a forwarded port may have another number.
    """

    def __init__(self, app: ASGIApp, *, token: str, hosts: Iterable[str]) -> None:
        self._app, self._token, self._hosts = app, token, frozenset(hosts)
        self._pass = hmac.new(token.encode(), b"seamark serve", hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # We use neither websockets nor lifespan events.

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        answer = self._refusal(scope["method"], headers) or self._entrance(scope, headers)
        await (answer or self._app)(scope, receive, send_guarded)

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        """The response to a request that is refused with or without the token; None if it may pass."""
        host = _host_name(f"//{headers.get('host', '')}")
        if host not in self._hosts:
            return _refused(421, "this is not the host that the request names: use the printed address")
        if method not in _METHODS:
            return _refused(405, "nothing here can be changed: only GET and HEAD")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host']}":
            return _refused(403, "a page of another origin has sent this")
        is_foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if is_foreign and headers.get("sec-fetch-dest", "document") != "document":
            return _refused(403, "a page of another site has sent this")
        return None

    def _entrance(self, scope: Scope, headers: Headers) -> Response | None:
        """The response that exchanges the token for a cookie, or that refuses; None for a request with the cookie."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == TOKEN]
        if tokens:
            if not all(_is_same(each, self._token) for each in tokens):
                return _refused(401, f"this is not the current token: {_OPEN}")
            left = urlencode([(name, value) for name, value in query if name != TOKEN])
            place = "/" + quote(scope["path"].lstrip("/\\"))  # Exactly one slash: two would name another host.
            answer = RedirectResponse(f"{place}?{left}" if left else place, status_code=303)
            answer.set_cookie(_cookie_name(headers), self._pass, path="/", httponly=True, samesite="lax")
            return answer
        if not _is_same(_cookies(headers).get(_cookie_name(headers), ""), self._pass):
            return _refused(401, f"this store needs a token: {_OPEN}")
        return None


def own_names(*hosts: str) -> tuple[str, ...]:
    """The host names of requests to a server that listens at `hosts`: those names, and the loopback names."""
    named = (_host_name(f"//[{host}]" if ":" in host else f"//{host}") for host in hosts)
    return tuple(dict.fromkeys((*named, *_LOOPBACK)))


_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def _host_name(address: str) -> str:
    """The host in an address, in lower case and without port; empty if there is none."""
    try:
        parts = urlsplit(address)
        return "" if parts.path or parts.username is not None or parts.port == 0 else parts.hostname or ""
    except ValueError:
        return ""


def _cookie_name(headers: Headers) -> str:
    """The name of this server's cookie, with its port: browsers share cookies between ports."""
    return f"seamark-{urlsplit('//' + headers['host']).port or 80}"


def _cookies(headers: Headers) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def _is_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


def _refused(status: int, why: str) -> Response:
    headers = {"allow": ", ".join(_METHODS)} if status == 405 else None
    return PlainTextResponse(f"seamark serve: {why}\n", status_code=status, headers=headers)
