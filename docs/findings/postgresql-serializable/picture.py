"""Prints the cycle of a report's first finding as a picture of its own, from the page of `seamark check --html`.

    .venv/bin/seamark check tests/corpus/own/list-append-postgres-three.edn --model serializable --html page.html
    .venv/bin/python docs/findings/postgresql-serializable/picture.py page.html \\
        >docs/findings/postgresql-serializable/cycle.svg

Nothing is drawn here: the picture is the page's, with those of the page's styles that it needs.
"""

import re
import sys
from pathlib import Path

RULE = re.compile(r"@media \([^)]*\) \{ :root[^{]*\{[^}]*\} \}|[^{}@]+\{[^{}]*\}")
NEEDED = re.compile(r":root(?!\[)|^text$|(?:^|, )\.(?:cycle|box|arrow|head|pill|wr|rw)(?![.-])")  # Of a selector.
PRINTED = re.compile(r"@media print \{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
TITLE = "The cycle of the three transactions"


def picture(page: str) -> str:
    """The picture as a file. Raises ValueError if the page has no cycle, or more than one style."""
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    found = re.search(r'<svg class="cycle" viewBox="([^"]*)"[^>]*>(.*?)</svg>', page, re.DOTALL)
    if found is None:
        raise ValueError("this page has no drawing of a cycle")
    rules = [rule.strip() for rule in RULE.findall(PRINTED.sub("", style))]
    kept = "\n".join(rule for rule in rules if NEEDED.search(rule.rpartition("{")[0].strip()))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cycle" viewBox="{found[1]}" role="img">\n'
        f"<title>{TITLE}</title>\n<style>\n{kept}\n.paper {{ fill: var(--paper); }}\n</style>\n"
        f'<rect class="paper" width="100%" height="100%"/>{found[2]}</svg>\n'
    )


if __name__ == "__main__":
    sys.stdout.write(picture(Path(sys.argv[1]).read_text(encoding="utf-8")))
