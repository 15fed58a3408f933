"""A registry of images on loopback, which an engine takes without TLS. Its one tag may come to name another image.

Source: Docker Registry HTTP API V2, and image manifest version 2, schema 2.
"""

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG: Final = "application/vnd.docker.container.image.v1+json"
_LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar.gzip"


class Registry:
    """What it has, by digest, and the digest of what its tag names."""

    def __init__(self, repository: str, architecture: str) -> None:
        self.repository, self._architecture = repository, architecture
        self.held: dict[str, tuple[str, bytes]] = {}
        self.named = ""

    def publish(self, content: str) -> str:
        """The digest of a new image with one file of that content; the tag names it from now on."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            entry = tarfile.TarInfo("content")
            entry.size = len(content.encode())
            tar.addfile(entry, io.BytesIO(content.encode()))
        tree = {"type": "layers", "diff_ids": [_digest(packed.getvalue())]}
        config = json.dumps({"architecture": self._architecture, "os": "linux", "config": {}, "rootfs": tree}).encode()
        layer = gzip.compress(packed.getvalue(), mtime=0)
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": self._keep(_CONFIG, config),
            "layers": [self._keep(_LAYER, layer)],
        }
        self.named = str(self._keep(_MANIFEST, json.dumps(manifest).encode())["digest"])
        return self.named

    def _keep(self, kind: str, content: bytes) -> dict[str, object]:
        digest = _digest(content)
        self.held[digest] = (kind, content)
        return {"mediaType": kind, "size": len(content), "digest": digest}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextmanager
def serving(architecture: str) -> Iterator[Registry]:
    """A registry that answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            digest = self.path.rpartition("/")[2]
            kind, content = registry.held.get(digest if ":" in digest else registry.named, ("", b""))
            is_there = bool(content) or self.path == "/v2/"
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Type", kind or "application/json")
            self.send_header("Content-Length", str(len(content)))
            if content:
                self.send_header("Docker-Content-Digest", _digest(content))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry = Registry(f"127.0.0.1:{server.server_address[1]}/seamark-try", architecture)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
