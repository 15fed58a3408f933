"""Text out of a history is shown, and does nothing: on the terminal, in report.html, in report.json."""

from pathlib import Path

import pytest

from harness.report.markdown import summary
from harness.report.model import FindingRow, Report
from harness.report.page import page
from harness.report.screen import commands
from tests.command.conftest import Seamark

HOSTILE = {
    "markup": ("[/foo]", "[/foo]"),
    "colour": ("\x1b[2J\x1b[32mPASS", "\\x1b[2J\\x1b[32mPASS"),
    "line": ("PASS\r\nPASS", "PASS\\r\\nPASS"),
    "right-to-left": ("\u202eSSAP", "\\u202eSSAP"),
    "script": ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    "c1": ("\x9b31m", "\\x9b31m"),
}


def edn(key: str) -> str:
    """A history in which `key` is read in two ways that contradict each other."""
    escaped = "".join(f"\\u{ord(sign):04x}" if not sign.isprintable() else sign for sign in key)
    append = '{{:index {} :type {} :process {} :f :txn :value [[:append "{}" {}]]}}'
    read = '{{:index {} :type {} :process {} :f :txn :value [[:r "{}" {}]]}}'
    return "\n".join(
        (
            append.format(0, ":invoke", 0, escaped, 1),
            append.format(1, ":ok", 0, escaped, 1),
            append.format(2, ":invoke", 1, escaped, 2),
            append.format(3, ":ok", 1, escaped, 2),
            read.format(4, ":invoke", 0, escaped, "nil"),
            read.format(5, ":ok", 0, escaped, "[1 2]"),
            read.format(6, ":invoke", 1, escaped, "nil"),
            read.format(7, ":ok", 1, escaped, "[2 1]"),
        )
    )


@pytest.mark.parametrize(("text", "shown"), HOSTILE.values(), ids=list(HOSTILE))
def test_a_key_is_shown_on_the_terminal_and_does_nothing_to_it(
    seamark: Seamark, tmp_path: Path, text: str, shown: str
) -> None:
    (tmp_path / "hostile.edn").write_text(edn(text), encoding="utf-8")
    outcome = seamark("check", "hostile.edn", "--engine", "local")
    assert outcome.code == 1
    assert "incompatible-order" in outcome.out
    flat = outcome.out.replace("\n", "")
    # A key is JSON inside a sentence, in which a backslash may already stand before what is made visible.
    assert shown.replace("\\", "") in flat.replace("\\", "").replace("u00", "x") or shown in flat
    assert all(sign.isprintable() or sign == "\n" for sign in outcome.out)
    assert sum(line.startswith(("ANOMALY", "PASS")) for line in outcome.out.splitlines()) == 1


@pytest.mark.parametrize(("text", "shown"), HOSTILE.values(), ids=list(HOSTILE))
def test_a_sentence_is_escaped_in_the_page(text: str, shown: str) -> None:
    finding = FindingRow(fingerprint=text, anomaly=text, checker=text, sentence=text, promise=text)
    html = page(Report(verdict="invalid", exit_code=1, reason=text, run=text, cluster=text, findings=(finding,)))
    assert shown.replace("<", "&lt;").replace(">", "&gt;") in html
    assert html.count("<script") == 2  # Our own: the values, and what shows them.
    assert html.count("</script") == 2
    assert all(sign.isprintable() or sign == "\n" for sign in html)


@pytest.mark.parametrize("name", ["[red]no[/red].edn", "\x1b[2J.edn"])
def test_a_path_is_shown_and_does_nothing(seamark: Seamark, name: str) -> None:
    outcome = seamark("check", name, "--engine", "local")
    assert outcome.code == 64
    assert name.replace("\x1b", "\\x1b") in outcome.line


@pytest.mark.parametrize("name", ["plain", "a`; touch OWNED #", "``", "a|b", "x" * 500 + "`; touch OWNED #"])
def test_a_command_in_markdown_is_the_one_that_is_meant(name: str) -> None:
    report = Report(verdict="valid", exit_code=0, reason="", run=name, runtime="sim", code=f"{name}.py:Cluster")
    (line,) = (line.removeprefix("- again: ") for line in summary(report).splitlines() if line.startswith("- again: "))
    fence = line[: len(line) - len(line.lstrip("`"))]
    text = line.removeprefix(fence).removesuffix(fence)
    assert fence not in text
    assert text.strip() == dict(commands(report))["again"].strip()
