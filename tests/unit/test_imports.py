"""Imports point one way, those inside functions included, and functions fit a screen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import regard

ROOT = Path(regard.__file__).parent
ORDER = (
    ("errors", "files", "settings", "untrusted"),
    ("text",),
    ("data", "count"),
    ("kernels",),
    ("layers",),
    ("mixers",),
    ("models",),
    ("training", "decode", "score", "lens", "weights", "config"),
    ("tasks",),
    ("run",),
    ("compare", "studies", "report"),
    ("api",),
    ("serve",),
    ("cli",),
    ("__main__",),
)
"""From the ground up: a room imports from its own row and those above it in this list, never from one below."""
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
MAX_LAZY = 43
MAX_LINES = 60


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(source) for name, source in SOURCES.items()}


def room_of(module: str) -> str | None:
    """None: the package itself, which hands out the api's names when they are asked for."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def imports(module: str) -> Iterator[tuple[str, ast.stmt, bool]]:
    """(what is imported, the statement, whether that happens inside a function); types are no imports."""

    def walk(node: ast.AST, is_lazy: bool) -> Iterator[tuple[str, ast.stmt, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.ImportFrom) and child.module is not None:
                for alias in child.names:
                    whole = f"{child.module}.{alias.name}"
                    target = whole if whole in TREES else child.module
                    if target in TREES:
                        yield target, child, is_lazy
            elif isinstance(child, ast.Import):
                yield from ((alias.name, child, is_lazy) for alias in child.names if alias.name in TREES)
            else:
                yield from walk(child, is_lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    yield from walk(TREES[module], False)


def test_every_room_has_its_place() -> None:
    rooms = {room for room in map(room_of, TREES) if room is not None}
    assert rooms <= RANK.keys()


def test_imports_point_one_way() -> None:
    wrong = [
        f"{module} imports {target}"
        for module in TREES
        for target, _, _ in imports(module)
        if (here := room_of(module)) is not None and (there := room_of(target)) is not None and RANK[there] > RANK[here]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: {target for target, _, _ in imports(module) if target != "regard"} for module in TREES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_lazy_imports_are_few_and_say_why() -> None:
    lazy = {(module, node.lineno): node for module in TREES for _, node, is_lazy in imports(module) if is_lazy}
    unexplained = []
    for module, number in lazy:
        lines = SOURCES[module].splitlines()
        block = number - 1
        while block > 0 and lines[block - 1].strip().startswith(("from ", "import ")):
            block -= 1  # one reason serves several imports that stand together
        if "#" not in "".join(lines[max(0, block - 1) : number]):
            unexplained.append(f"{module}:{number}")
    assert len(lazy) <= MAX_LAZY, sorted(lazy)
    assert not unexplained, "\n".join(unexplained)


def test_every_function_fits_a_screen() -> None:
    long = [
        f"{module}.{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_LINES
    ]
    assert not long, "\n".join(long)
