"""The images of a run, from its nodes' logs, as part of the release that a report names."""

from pathlib import Path

import pytest

from harness.judging.images import images_of
from harness.scenario.sut import release

DIGEST = "sha256:" + "0123456789ab" + "c" * 52


@pytest.mark.parametrize(
    ("first", "image"),
    [
        (f"image: postgres@{DIGEST}\n2026 starts\n", f"postgres@{DIGEST}"),
        (f"image: shop:3 (of no registry; its id is {DIGEST})\n", f"shop:3@{DIGEST}"),
        (f"image: seamark-node:5c59 (of no registry; its id is {DIGEST})\n", None),
        ("2026 image: none\n", None),
        ("", None),
    ],
)
def test_the_first_line_of_a_log_names_the_image(tmp_path: Path, first: str, image: str | None) -> None:
    (tmp_path / "logs").mkdir()
    for node in ("n1", "n2"):
        (tmp_path / "logs" / f"{node}.log").write_text(first)
    assert images_of(tmp_path) == image


def test_without_logs_there_is_no_image_and_links_are_not_followed(tmp_path: Path) -> None:
    assert images_of(tmp_path) is None
    (tmp_path / "logs").mkdir()
    (tmp_path / "elsewhere").write_text(f"image: postgres@{DIGEST}\n")
    (tmp_path / "logs" / "n1.log").symlink_to(tmp_path / "elsewhere")
    assert images_of(tmp_path) is None


def test_a_release_in_words_has_the_beginning_of_a_digest() -> None:
    assert release({"image": f"postgres@{DIGEST}"}) == "image postgres@sha256:0123456789ab"
