"""Breaks a file on purpose, in one place after the other, and shows which breaks no test notices.

`python -m tests.mutation.mutants FILE -- TESTS` breaks one file, and runs those tests on each mutant; without tests, it
runs those of RULES. Without a file it takes all of RULES: 1,500 mutants, an hour; with 2/5, the second of each five.

Mutants: a comparison becomes its neighbour (< and <=) or its opposite; `and` and `or`, minimum and maximum change
places; a flag is inverted; `not` and `~` are dropped; a sum becomes a difference, and a bound moves by one; a search
finds the other side of equal ones; of two branches only the second is left. Works on a copy of the tree. Those that
change nothing but the cost, or nothing at all, are argued in tests/mutation/argued.py, and not tried. The exit code is
1 if any other survives or an argument is about no mutant, and 2 if tests fail without a mutant. What tests draw is the
same each time.
"""

import ast
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutation.argued import ARGUED

ROOT = Path(__file__).resolve().parents[2]
# The quick tests first: most mutants end there.
LISTS = [
    "tests/unit/checkers/test_tallies.py",
    "tests/unit/checkers/transactions/test_check.py",
    "tests/unit/checkers/test_size.py",
    "tests/property/test_serializability.py",
]
REGISTERS = [
    "tests/unit/checkers/transactions/test_register_edges.py",
    "tests/unit/checkers/test_size.py",
    "tests/property/test_registers.py",
]
SESSIONS = "tests/property/test_stream_sessions.py"
ONLINE = ["tests/unit/checkers/streams/test_online.py", "tests/property/test_online.py"]
OPINIONS = [
    "tests/unit/checkers/watermarks/test_second_opinion.py",
    "tests/unit/checkers/watermarks/test_disputes.py",
    "tests/property/test_watermark_disputes.py",
]
BOTH = [*LISTS[:-1], *REGISTERS, LISTS[-1]]
RULES = {
    "checkers/columns/runs.py": ["tests/unit/checkers/columns/test_runs.py", *BOTH],
    "checkers/transactions/list_rows.py": BOTH,
    "checkers/transactions/list_versions.py": ["tests/unit/checkers/test_slots.py", *LISTS],
    "checkers/transactions/list_anomalies.py": LISTS,
    "checkers/engine/wire.py": ["tests/unit/checkers/engine/test_wire.py"],
    "checkers/transactions/key_rows.py": ["tests/unit/checkers/engine/test_wire.py"],
    "checkers/graph/certificate.py": ["tests/unit/checkers/graph/test_certificate.py", *BOTH],
    "checkers/transactions/check.py": BOTH,
    "checkers/transactions/uncertified.py": BOTH,
    "checkers/history/longest.py": BOTH,
    "checkers/graph/edges.py": ["tests/unit/checkers/graph/test_edges.py", *BOTH],
    "checkers/graph/paths.py": ["tests/unit/checkers/graph/test_paths.py", "tests/property/test_graph.py", *BOTH],
    "checkers/graph/residual.py": ["tests/property/test_graph.py", *BOTH],
    "checkers/graph/search.py": [
        "tests/property/test_graph.py",
        "tests/unit/checkers/watermarks/cycles/test_classes.py",
        *BOTH,
    ],
    "checkers/graph/classes.py": ["tests/unit/checkers/graph/test_classes.py", "tests/property/test_graph.py", *BOTH],
    "checkers/transactions/registers/order.py": ["tests/property/test_register_order.py", *REGISTERS],
    "checkers/transactions/registers/edges.py": REGISTERS,
    "checkers/streams/rules/sessions/resume_hole.py": [
        "tests/unit/checkers/streams/rules/sessions/test_resume_hole.py",
        SESSIONS,
    ],
    "checkers/streams/rules/sessions/hand_over_hole.py": [
        "tests/unit/checkers/streams/rules/sessions/test_hand_over_hole.py",
        SESSIONS,
    ],
    "checkers/streams/rules/logs/real_time_order.py": [
        "tests/unit/checkers/streams/rules/logs/test_real_time_order.py",
        "tests/unit/checkers/test_stream_positions.py",
        "tests/property/test_stream_logs.py",
    ],
    "checkers/streams/online.py": ONLINE,
    "checkers/streams/rules/sessions/lost_acknowledged.py": [
        "tests/unit/checkers/streams/rules/sessions/test_lost_acknowledged.py",
        "tests/property/test_acknowledged.py",
    ],
    "checkers/streams/rules/logs/epoch_fork.py": ["tests/unit/checkers/streams/rules/logs/test_epoch_fork.py"],
    "checkers/watermarks/disputes.py": OPINIONS,
    "checkers/watermarks/second_opinion.py": OPINIONS,
    "checkers/watermarks/order_elsewhere.py": [
        "tests/unit/checkers/watermarks/test_order_elsewhere.py",
        "tests/property/test_watermark_graph.py",
    ],
}
COPIED = ("seamark", "harness", "nemesis", "checkers", "clusters", "tests", "pyproject.toml")
TIMEOUT_S = 900  # For one that sleeps; one that turns in circles meets the limit below, on a busy machine as well.
CPU_S = 120  # All tests of a file take 40. What a mutant gets is at most this, and twice what they took without one.
LOADED = ("hypothesis", "networkx", "numpy", "pyarrow.parquet", "scipy.sparse.csgraph")  # Before the first mutant.
PROFILE = "mutants"  # Of hypothesis.
MEMORY_BYTES = 8 << 30  # A mutant that wants more is noticed, before the machine is.
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
SIDES = {"left": "right", "right": "left"}


def mutations(node: ast.AST) -> Iterator[ast.AST]:
    """The ways to break one node."""
    yield from moved(node)
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


def moved(node: ast.AST) -> Iterator[ast.AST]:
    """The ways to move a bound of one node, or to take a branch from it."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=int(value))):
            yield left
            yield ast.BinOp(left=left, op=node.op, right=ast.Constant(value=value + 1))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield ast.BinOp(left=left, op=ast.Sub(), right=right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield ast.BinOp(left=left, op=ast.Add(), right=right)
        case ast.Slice(lower=ast.Constant(value=int(low)), upper=None):
            yield ast.Slice(lower=ast.Constant(value=low + 1))
        case ast.Call(func=ast.Attribute(attr="where"), args=[_, _, otherwise]):
            yield otherwise
        case ast.Constant(value="left" | "right" as side):
            yield ast.Constant(value=SIDES[side])
        case ast.If(body=body) if isinstance(body[-1], ast.Return | ast.Continue | ast.Break | ast.Raise):
            yield ast.Pass()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A module with one change.

    `name` has the function, the kind of change, and its number if the function has several: "_places: < to <= 2". It
    does not quote the code, so that it survives new names. `change` quotes it, for people.
    """

    line: int
    name: str
    change: str
    text: str


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module."""
    made = list(_made(source))
    count = Counter((function, kind) for _, function, kind, _, _ in made)
    met: Counter[tuple[str, str]] = Counter()
    result = []
    for line, function, kind, change, text in made:
        met[function, kind] += 1
        turn = f" {met[function, kind]}" if count[function, kind] > 1 else ""
        result.append(Mutant(line=line, name=f"{function}: {kind}{turn}", change=change, text=text))
    return result


def kind_of(old: ast.AST, new: ast.AST) -> str:
    """The kind of a change, without the names and numbers around it."""
    match old, new:
        case ast.Compare(ops=[op]), ast.Compare(ops=[other]):
            return f"{_SIGNS[type(op)]} to {_SIGNS[type(other)]}"
        case ast.BoolOp(op=op), ast.BoolOp(op=other):
            return f"{_SIGNS[type(op)]} to {_SIGNS[type(other)]}"
        case ast.BinOp(op=op, right=right), ast.BinOp(op=other, right=after):
            moved_by = ast.unparse(right) != ast.unparse(after)
            return f"{_SIGNS[type(op)]} bound up" if moved_by else f"{_SIGNS[type(op)]} to {_SIGNS[type(other)]}"
        case ast.BinOp(op=op), _:
            return f"{_SIGNS[type(op)]} bound dropped"
        case ast.UnaryOp(op=op), _:
            return f"{_SIGNS[type(op)]} dropped"
        case ast.Attribute(attr=attr), ast.Attribute(attr=other):
            return f"{attr} to {other}"
        case ast.Constant(value=value), ast.Constant(value=other):
            return f"{value!s} to {other!s}"
        case ast.Slice(), _:
            return "slice one later"
        case ast.Call(), _:
            return "where: otherwise only"
        case _:
            return "branch dropped"


_SIGNS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.And: "and",
    ast.Or: "or",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Invert: "~",
    ast.Not: "not",
}


def _made(source: str) -> Iterator[tuple[int, str, str, str, str]]:
    """Of each mutant the line, the function around it, the kind of the change, the change, and the new text."""
    whole = ast.parse(source)
    functions = [node for node in ast.walk(whole) if isinstance(node, ast.FunctionDef)]
    around = {inner: function.name for function in functions for inner in ast.walk(function)}  # Inner ones come last.
    for place, node in enumerate(_code(whole)):
        for turn in range(len(list(mutations(node)))):
            tree = ast.parse(source)
            old = _code(tree)[place]
            new = list(mutations(old))[turn]
            change, kind = f"{ast.unparse(old)}  ->  {ast.unparse(new)}", kind_of(old, new)
            _replace(tree, old, new)
            yield getattr(old, "lineno", 0), around.get(node, "module"), kind, change, ast.unparse(tree)


def _code(tree: ast.Module) -> list[ast.AST]:
    """All nodes but those of annotations, decorators, classes' keywords, and `strict`, which asserts."""
    notes: list[ast.AST | None] = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "strict"
    ]
    notes += [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    notes += [each.value for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for each in node.keywords]
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


def chosen(arguments: list[str]) -> tuple[dict[str, list[str]], int, int]:
    """Each file with its tests, and which of how many parts of its mutants."""
    part = next((each for each in arguments if each.count("/") == 1 and each.replace("/", "").isdigit()), "1/1")
    number, parts = map(int, part.split("/"))
    names = [each for each in arguments if each != part]
    if "--" in names:
        at = names.index("--")
        return dict.fromkeys(names[:at], names[at + 1 :]), number, parts
    return {name: RULES[name] for name in names or RULES}, number, parts


def main(arguments: list[str]) -> int:
    """Try the mutants; a line for each that survives, one for each file, and one for all."""
    files, number, parts = chosen(arguments)
    total: Counter[str] = Counter()
    for name in LOADED:
        import_module(name)
    # A failure is enough, nobody reads the smallest; and a mutant that lives, lives again.
    settings.register_profile(
        PROFILE,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, Path(folder) / name)
        for name, tests in files.items():
            path = Path(folder) / name
            source = path.read_text(encoding="utf-8")
            ends: Counter[str] = Counter()
            begun_s = cpu_s()
            if fails(tests, Path(folder), CPU_S):
                print(f"{name}: its tests fail without any mutant: {' '.join(tests)}")
                return 2
            limit_s = min(CPU_S, 2 * int(cpu_s() - begun_s) + 5)
            every = mutants(source)
            ends["idle"] = idle_arguments(name, every)
            for mutant in every[number - 1 :: parts]:
                path.write_text(mutant.text, encoding="utf-8")
                reason = ARGUED.get(name, {}).get(mutant.name)
                end = "argued" if reason else "killed" if fails(tests, Path(folder), limit_s) else "survived"
                ends[end] += 1
                if end != "killed":
                    print(f"{name}:{mutant.line}: {reason or end}: {mutant.name}: {mutant.change}", flush=True)
            path.write_text(source, encoding="utf-8")
            print(f"{name}: {counted(ends)}", flush=True)
            total += ends
    print(f"all: {counted(total)}")
    return 1 if total["survived"] or total["idle"] else 0


def idle_arguments(name: str, every: list[Mutant]) -> int:
    """How many arguments are about no mutant of that file, each told: what they say may be true no longer."""
    idle = sorted(set(ARGUED.get(name, {})) - {mutant.name for mutant in every})
    for what in idle:
        print(f"{name}: argued, but no mutant: {what}", flush=True)
    return len(idle)


def counted(ends: Counter[str]) -> str:
    """How many mutants came to each end."""
    return ", ".join(f"{ends[end]} {end}" for end in ("killed", "argued", "survived"))


def cpu_s() -> float:
    """What all children that ended have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fails(tests: list[str], folder: Path, limit_s: int) -> bool:
    """Whether one of those tests fails on the code in that folder; so does one that takes more CPU time than that.

    A child of this process runs them, which has loaded all but that code: most mutants are killed in less time than
    Python takes to start.
    """
    child = os.fork()
    if not child:
        try:
            code = _tried(tests, folder, limit_s)
        except BaseException:  # noqa: BLE001  It fails, and must not go on as a second parent.
            code = 1
        os._exit(int(code))
    return os.waitpid(child, 0)[1] != 0


def _tried(tests: list[str], folder: Path, limit_s: int) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
    signal.alarm(TIMEOUT_S)
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    os.chdir(folder)
    sys.path[:] = [str(folder), *(path for path in sys.path if path not in {"", str(ROOT)})]
    for name in [name for name in sys.modules if name.partition(".")[0] in COPIED]:
        del sys.modules[name]
    sys.dont_write_bytecode = True  # Two mutants of one size in one second would share what was compiled.
    flags = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return pytest.main([*flags, f"--hypothesis-profile={PROFILE}", *tests])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
