"""Headless Chromium that a test drives: it types, clicks, looks, and takes pictures.

It speaks the browser's own protocol (Chrome DevTools) through two pipes, one JSON message after another, each ended by
a zero byte: https://chromedevtools.github.io/devtools-protocol/, read on 2026-11-23.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 30.0
_KEYS = {"Tab": 9, "Enter": 13, "Space": 32, "ArrowDown": 40}


class Tab:
    """One page in a browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._waiting, self._number, self._session = b"", 0, ""
        self.console: list[str] = []  # What the page complained about: errors and refused content.
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            got = self._next()
            if got.get("id") == self._number:
                assert "error" not in got, got
                return got["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._waiting:
            block = os.read(self._from, 1 << 16)
            assert block, "the browser has gone"
            self._waiting += block
        text, _, self._waiting = self._waiting.partition(b"\0")
        got: dict[str, Any] = json.loads(text)
        if got.get("method") == "Log.entryAdded":
            self.console.append(got["params"]["entry"]["text"])
        elif got.get("method") == "Runtime.exceptionThrown":
            self.console.append(str(got["params"]["exceptionDetails"]))
        return got

    def open(self, address: str) -> None:
        """Go there, and wait until the page has loaded."""
        found = self._call("Page.navigate", url=address)
        assert "errorText" not in found, found
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def size(self, width: int, height: int = 900, *, is_dark: bool = False) -> None:
        """Give the page that many pixels, and the taste of its reader."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = "dark" if is_dark else "light"
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def value(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until the expression is true."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with suppress(AssertionError):  # Between two pages there is none.
                if self.value(expression):
                    return
            time.sleep(0.02)
        raise AssertionError(
            f"never came true: {expression}; the page is {self.value('document.body.innerText')[:500]}"
        )

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        code = _KEYS[key]
        text = {"Enter": "\r", "Space": " "}.get(key, "")
        name = " " if key == "Space" else key
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self._call("Input.dispatchKeyEvent", type=kind, key=name, code=key, windowsVirtualKeyCode=code, **more)

    def type(self, text: str) -> None:
        """Type into whatever has the focus."""
        self._call("Input.insertText", text=text)

    def tab_to(self, expression: str, most: int = 250) -> None:
        """Press Tab until the focused element, `it`, is as wanted."""
        for _ in range(most):
            self.press("Tab")
            if self.value(f"(it => {expression})(document.activeElement)"):
                return
        raise AssertionError(f"not reached by {most} tabs: {expression}")

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        found = self._call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def chromium() -> Iterator[Tab]:
    """A browser with one page, which ends with the context; without Chromium the test is skipped, with a reason."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("there is no Chromium here to open the pages with: apt-get install chromium")
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        shell = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--disable-dev-shm-usage"]
        command = ["bash", "-c", shell, "bash", program, *options, f"--user-data-dir={profile}"]
        browser = subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Tab(ours_out, ours_in)
        finally:
            os.close(ours_out)
            os.close(ours_in)
            browser.terminate()
            browser.wait(PATIENCE_S)
