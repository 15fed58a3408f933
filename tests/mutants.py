"""Breaks a file on purpose, in one place after the other, and shows which breaks no test notices.

`python -m tests.mutants checkers/watermark.py -- tests/unit/checkers tests/property/test_streams.py`

Mutants: a comparison becomes its neighbour (< and <=) or its opposite; `and` and `or`, minimum and maximum change
places; a flag is inverted; `not` and `~` are dropped. Works on a copy of the tree. The exit code is 1 if any survives.
"""

import ast
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("harness", "nemesis", "checkers", "clusters", "tests", "pyproject.toml")
TIMEOUT_S = 300
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
NAMES = {"minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min"}


def mutations(node: ast.AST) -> Iterator[ast.expr]:
    """The ways to break one node."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=others):
            yield from (ast.Compare(left=left, ops=[other()], comparators=others) for other in COMPARISONS[type(op)])
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(op=ast.Or() if isinstance(op, ast.And) else ast.And(), values=values)
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            yield ast.BinOp(left=left, op=ast.BitOr(), right=right)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield ast.BinOp(left=left, op=ast.BitAnd(), right=right)
        case ast.UnaryOp(op=ast.Invert() | ast.Not(), operand=operand):
            yield operand
        case ast.Attribute(value=value, attr=attr, ctx=context) if attr in NAMES:
            yield ast.Attribute(value=value, attr=NAMES[attr], ctx=context)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(value=not value)


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """Each mutant of a module: the line, what was changed, the new text."""
    ways = [len(list(mutations(node))) for node in _code(ast.parse(source))]
    for place, way in ((place, way) for place, count in enumerate(ways) for way in range(count)):
        tree = ast.parse(source)
        node = _code(tree)[place]
        new = list(mutations(node))[way]
        change = f"{ast.unparse(node)}  ->  {ast.unparse(new)}"
        _replace(tree, node, new)
        yield getattr(node, "lineno", 0), change, ast.unparse(tree)


def _code(tree: ast.Module) -> list[ast.AST]:
    """All nodes but those of annotations and decorators."""
    notes = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    notes += [decorator for node in ast.walk(tree) for decorator in getattr(node, "decorator_list", [])]
    skipped = [inner for note in notes if note is not None for inner in ast.walk(note)]
    return [node for node in ast.walk(tree) if not any(node is other for other in skipped)]


def _replace(tree: ast.Module, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                value[:] = [new if each is old else each for each in value]


def main(arguments: list[str]) -> int:
    """Try every mutant of the files before `--` against the tests behind it."""
    files, tests = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    tried, survivors = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, Path(folder) / name)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        for name in files:
            path = Path(folder) / name
            source = path.read_text(encoding="utf-8")
            for line, change, text in mutants(source):
                path.write_text(text, encoding="utf-8")
                tried += 1
                done = subprocess.run(command, cwd=folder, capture_output=True, timeout=TIMEOUT_S, check=False)
                if done.returncode == 0:
                    survivors += 1
                    print(f"{name}:{line}: survived: {change}", flush=True)
            path.write_text(source, encoding="utf-8")
    print(f"{tried} mutants, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
