"""Counts sentence patterns that make a reader read twice, for each kind of text of this repository.

The patterns are those of the house style (CONTRIBUTING.md, "Plain English") that a regular expression can find. A hit
is a place to look at, and some are fine: the measure is hits per 1,000 words of a kind.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("seamark", "harness", "nemesis", "checkers", "clusters")

_THINGS = r"(?:page|file|run|sweep|check|report|row|message|test|it|that|which|option|plan|bug|cluster|table|document)"
PATTERNS: Final = {
    "what as a noun": r"(?:^|[.:;,(] |\b(?:of|to|in|by|with|from|for|on|says?|and|is|are|not|than|only|all|but|as) )"
    r"what (?!is the |are the )[a-z]+ ",
    "nobody, nothing, none as the subject": r"\b(?:nobody|nothing|none)(?: of (?:them|these|it))?(?:'s| [a-z]+s\b|"
    r" (?:is|was|were|are|has|had|can|could|may|would|will|did|came|knew|wrote|met|asked|said))\b",
    "a sentence that begins with Of": r"(?-i:(?:^|[.:;!?] )Of (?!course)[a-z]+)",
    "things that speak": r"\b(?:is|are|was|were|be|been) (?:told|asked)\b|\btells? (?:of|which|how|whether|apart)\b|"
    rf"\b{_THINGS}s? (?:says?|tells?|asks?)\b|\bsays? (?:so|which|how|whether|when|where|who)\b|\bnobody asks\b",
    "those that, those of": r"\b(?:those|that) of\b|\bthose (?:that|who|which|whose|for|from|in)\b",
    "relations in space": r"\b(?:stands?|stood) (?:beside|behind|below|above|in|at|on|there|here|as|for)\b|"
    r"\b(?:beside|behind) (?:it|them|that|this|these|one|others?|each)\b",
    "is to be, has to be": r"\b(?:is|are|was|were) to be\b|\b(?:has|have|had) to be\b",
    "which or who without a noun": r"(?:^|[.;:] |\b(?:who|says?|shows?|see|knows?|decides?) )"
    r"(?:who|whom|whose|whoever|whatever) [a-z]+|\b(?:of|to|by|from) whom\b|\bin who\b",
    "by itself, of its own": r"\bby (?:itself|themselves)\b|\b(?:of|on) (?:its|their) own\b|"
    r"\ban? [a-z]+ of (?:one's|your) own\b",
    "so many, as many, as long as": r"\b(?:so|as) (?:many|much|long|few|often)\b",
    "a hidden negation": r"\b(?:is|are|was|were) nowhere\b|\bthat (?:is|are|was|were) no [a-z]+|"
    r"\b(?:is|are|was|were) no [a-z]+(?=[.,;:)]|$)|\b(?:has|have|had|needs?|takes?|keeps?) none\b",
    "fillers": r"(?:, |\b)(?:too|likewise|as well)(?=[.,;:)]|$)|(?:^|[.;:] )(?:then|also|again) [a-z]+|; then\b",
    "what became of": r"\bwhat (?:became|came|becomes|comes) of\b|\bhow it came about\b|"
    r"\bwhat it (?:is|was|does|did|means|says)\b",
}
FOUND: Final = {name: re.compile(pattern, re.IGNORECASE | re.MULTILINE) for name, pattern in PATTERNS.items()}
# A comment on a line of its own, or after code. Tokens would be exact, and take ten times as long.
COMMENT: Final = re.compile(r"^(?:.*? )?# ?(?!noqa|type:|!)([^'\"]*)$")


class Text(NamedTuple):
    """A piece of text and the place where it begins: path and line."""

    place: str
    words: str


class Count(NamedTuple):
    """Hits of the patterns in a kind of text, and its words."""

    words: int
    hits: Counter[str]

    @property
    def rate(self) -> float:
        """Hits per 1,000 words."""
        return 1000 * self.hits.total() / max(1, self.words)


def markdown(text: str) -> str:
    """The prose of a Markdown page: without code, tables' rules, links' targets and HTML comments."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`\n]*`", "x", text)
    # A table's cells and a list's items are sentences of their own; lines of a paragraph belong together.
    text = re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\|.*$", lambda row: "\n\n" + row.group().replace("|", "\n\n") + "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^#+ (.*)$", r"\n\n\1\n\n", text, flags=re.MULTILINE)
    return _paragraphs(text)


def template(text: str) -> str:
    """The words that a page's template shows: without its marks, styles and scripts."""
    text = re.sub(r"<(style|script)\b.*?</\1>", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}", "x", text, flags=re.DOTALL)
    text = re.sub(r"<(?:b|i|em|strong|code|a|span)\b[^>]*>|</(?:b|i|em|strong|code|a|span)>", "", text)
    return _paragraphs(re.sub(r"<[^>]*>", "\n\n", text))


def _paragraphs(text: str) -> str:
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return "\n".join(part for part in parts if part)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _docstring_nodes(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body[:1]:
                case [ast.Expr(value=ast.Constant(value=str()) as constant)]:
                    yield constant


def docstrings(path: Path) -> Iterator[Text]:
    """Each docstring of a source file."""
    for node in _docstring_nodes(_tree(path)):
        yield Text(f"{path.relative_to(ROOT)}:{node.lineno}", _paragraphs(str(node.value)))


def sentences(path: Path) -> Iterator[Text]:
    """Each string of a source file that people may read: three words at least, and no docstring. Fields become x."""
    tree = _tree(path)
    skipped = {id(node) for node in _docstring_nodes(tree)}
    for node in ast.walk(tree):  # Breadth first: an f-string comes before its parts.
        words = ""
        if isinstance(node, ast.JoinedStr):
            words = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
            skipped.update(id(part) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            words = node.value
        if len(re.findall(r"\b[a-z]{2,}\b", words)) > 2:
            yield Text(f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", _paragraphs(words))


def comments(path: Path) -> Iterator[Text]:
    """Each comment of a source file; comments on lines that follow each other are one."""
    found = [COMMENT.match(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for is_comment, lines in groupby(enumerate(found, start=1), key=lambda line: line[1] is not None):
        if is_comment:
            numbered = [(number, match.group(1)) for number, match in lines if match is not None]
            yield Text(f"{path.relative_to(ROOT)}:{numbered[0][0]}", " ".join(words for _, words in numbered))


def test_names(path: Path) -> Iterator[Text]:
    """Each test's name, as the sentence that it is."""
    for match in re.finditer(r"^\s*(?:async )?def test_(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
        yield Text(f"{path.relative_to(ROOT)}: test_{match.group(1)}", match.group(1).replace("_", " "))


def _sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def _pages() -> list[Path]:
    docs = sorted((ROOT / "docs").rglob("*.md"))
    # The page of promises quotes promises, faults and bugs, which are counted where they are written.
    return [
        *sorted(ROOT.glob("*.md")),
        *(page for page in docs if "promises" not in (page.stem, page.parent.name)),
        *sorted(ROOT.glob("clusters/*/*.md")),
    ]


def texts() -> dict[str, list[Text]]:
    """The texts of each kind."""
    ours = _sources(*PACKAGES)
    return {
        "terminal": [text for path in _sources("seamark", "harness", "nemesis") for text in sentences(path)],
        "findings": [text for path in _sources("checkers", "clusters") for text in sentences(path)],
        "page": [
            Text(str(path.relative_to(ROOT)), template(path.read_text(encoding="utf-8")))
            for path in sorted((ROOT / "harness").rglob("*.html"))
        ],
        "docs": [Text(str(path.relative_to(ROOT)), markdown(path.read_text(encoding="utf-8"))) for path in _pages()],
        "docstrings": [text for path in ours for text in docstrings(path)],
        "comments": [text for path in ours for text in comments(path)],
        "names of tests": [text for path in _sources("tests") for text in test_names(path)],
    }


def hits(text: Text) -> Iterator[tuple[str, str]]:
    """Each hit: the pattern's name, and the place with the words around it."""
    for name, pattern in FOUND.items():
        for match in pattern.finditer(text.words):
            around = text.words[max(0, match.start() - 40) : match.end() + 30].replace("\n", " / ")
            yield name, f"{text.place}: ...{around}..."


def count(kind: Iterable[Text]) -> Count:
    """The words and the hits of a kind of text."""
    words, found = 0, Counter[str]()
    for text in kind:
        words += len(re.findall(r"[A-Za-z']+", text.words))
        found.update(name for name, _ in hits(text))
    return Count(words, found)


def main() -> int:
    """Print the figures of all kinds, and the hits of the kinds that the command line names."""
    kinds = texts()
    for kind, found in kinds.items():
        counted = count(found)
        print(f"{kind:15s} {counted.words:7d} words  {counted.hits.total():5d} hits  {counted.rate:5.1f} per 1,000")
        if kind in sys.argv[1:]:
            for text in found:
                for name, place in hits(text):
                    print(f"  {name:40s} {place}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
