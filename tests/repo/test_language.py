"""Our texts become plainer: each kind has a ceiling of hard sentence patterns, and a ceiling only ever falls."""

import pytest

from tests.repo.language import Text, count, hits, markdown, template, texts

# Hits per 1,000 words. When a kind has become plainer, lower its ceiling to the new figure.
CEILINGS = {
    "terminal": 3.3,
    "findings": 3.0,
    "page": 1.9,
    "docs": 3.2,
    "docstrings": 9.7,
    "comments": 12.5,
    "names of tests": 33.4,
}


def test_no_kind_of_text_becomes_harder_to_read() -> None:
    kinds = texts()
    rates = {kind: round(count(found).rate, 1) for kind, found in kinds.items()}
    assert set(rates) == set(CEILINGS)
    harder = {kind: (rate, CEILINGS[kind]) for kind, rate in rates.items() if rate > CEILINGS[kind]}
    assert harder == {}, "hits per 1,000 words and the ceiling; python -m tests.repo.language KIND lists the hits"


@pytest.mark.parametrize(
    ("sentence", "pattern"),
    [
        ("This is what nobody wrote, for once.", "what as a noun"),
        ("Nobody says so.", "nobody, nothing, none as the subject"),
        ("Of lists nothing is declared.", "a sentence that begins with Of"),
        ("True if a read says so.", "things that speak"),
        ("Peaks of memory were those of the parent.", "those that, those of"),
        ("A forbidden class stands beside it.", "relations in space"),
        ("It is to be started.", "is to be, has to be"),
        ("It lets in who brings the token.", "which or who without a noun"),
        ("Each generation is judged by itself.", "by itself, of its own"),
        ("Half as many show it.", "so many, as many, as long as"),
        ("It is nowhere.", "a hidden negation"),
        ("All is healed; then it ends.", "fillers"),
        ("What became of an operation.", "what became of"),
    ],
)
def test_each_pattern_finds_the_sentence_of_the_house_style(sentence: str, pattern: str) -> None:
    assert pattern in {name for name, _ in hits(Text("here", sentence))}


@pytest.mark.parametrize(
    "sentence",
    [
        "A value that no operation wrote was read.",
        "The best available witness decides which version is newer.",
        "Another forbidden class is in the same history.",
        "The parent's peak memory was reported instead.",
        "Records other than operations are missing from the file.",
    ],
)
def test_plain_sentences_have_no_hit(sentence: str) -> None:
    assert list(hits(Text("here", sentence))) == []


def test_code_and_marks_are_no_words() -> None:
    assert (
        markdown("See `what is` [here](what.md):\n\n```\nOf code\n```\n| a cell | another |")
        == "See x here:\na cell\nanother"
    )
    assert template("<style>of</style><p>One <b>run</b> of {{ count }}</p>{# Of #}<td>two</td>") == "One run of x\ntwo"
