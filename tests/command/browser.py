"""Pages in a real browser: headless Chromium, without which the tests that need it are skipped with a reason.

A copy of the page gets a probe, a script of the test's own, for which the copy's policy is taken away; what the probe
finds is read from the DOM that Chromium prints. That the policy lets the page's own script run, and nothing else, is
tested on the page as it is.
"""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

PROBE = Path(__file__).with_name("probe.js")
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


@dataclass(frozen=True, slots=True)
class Probed:
    """What the probe saw of a page: see probe.js."""

    width: int
    height: int
    scroll_width: int
    contrasts: dict[str, list[str]]  # By theme: texts that are too faint, with their contrast.
    texts: int
    script_count: int
    is_taken_over: bool
    zoomed: str
    is_scripted: bool
    open_anchors: int
    missing_anchors: list[str]


@dataclass(frozen=True, slots=True)
class Browser:
    """Chromium."""

    program: str
    folder: Path

    def dom(self, page: Path) -> tuple[str, str]:
        """The DOM of a page after its scripts ran, and what Chromium logged."""
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=1280,900"]
        done = subprocess.run(
            [self.program, *options, f"--user-data-dir={self.folder / 'profile'}", "--dump-dom", page.as_uri()],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=True,
        )
        return done.stdout, done.stderr

    def probe(self, page: Path, *, width: int = 390) -> Probed:
        """What the probe finds on a copy of the page."""
        text, count = POLICY.subn("", page.read_text(encoding="utf-8"))
        assert count == 1
        probed = text.replace("</body>", f"<script>{PROBE.read_text()}</script></body>")
        copy = self.folder / "probed.html"  # In a frame, for a window of Chromium's cannot be as narrow as a telephone.
        frame = f'<iframe width="{width}" height="900" srcdoc="{html.escape(probed)}"></iframe>'
        copy.write_text(f"<!doctype html><html><body>{frame}</body></html>", encoding="utf-8")
        dom, _ = self.dom(copy)
        found = re.search(r'data-probe="([^"]*)"', dom)
        assert found is not None, dom[-2000:]
        return Probed(**json.loads(html.unescape(found[1])))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        program = shutil.which(name)
        if program is not None:
            return Browser(program, tmp_path_factory.mktemp("browser"))
    pytest.skip("there is no Chromium here to open the pages with: apt-get install chromium")
