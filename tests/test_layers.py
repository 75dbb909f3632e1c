"""Data flows in one direction: what each folder of the package may import from the others.

Every import counts, at the top of a file, inside a function or under `TYPE_CHECKING`. Names that a
doctest imports do not: they are a reader's.
"""

import ast
from pathlib import Path

import privasso

PACKAGE = Path(privasso.__file__).parent

# From low to high. A folder imports from lower lines only. Folders of one line do not import each
# other, except the single files of the first line, which are small and all of one kind. "privasso"
# is the package itself, which gathers the public names of the lines below it.
LAYERS = [
    "_apart _blas _clock _covariates _documents _fields _files _foreign _text _threads _tuned "
    "_types _validation _version",
    "accounting blocks encoding",
    "scales",
    "noise",
    "model",
    "operators",
    "problem",
    "solvers",
    "theory",
    "queries",
    "privacy",
    "ledger programs",
    "planning",
    "design",
    "fit",
    "evaluation forecast",
    "artefact exports",
    "figures tables",
    "page",
    "report",
    "attacks",
    "estimator",
    "privasso",
    "examples explore paper",
    "cli",
    "__main__",
]
RANK = {name: rank for rank, line in enumerate(LAYERS) for name in line.split()}
# These know nothing of the LASSO: they import single files of the first line, and columns of
# tables, but no other folder.
LEAVES = {"figures", "tables"}

# Violations that are known and tolerated: none.
KNOWN_PRIVATE: set[str] = set()
KNOWN_UPWARD: set[str] = set()


def imports(tree: ast.AST, package: str):
    """Yield the dotted path, below `privasso`, of everything of the package that a file imports.

    `package` is the dotted path of the folder that the file is in, for relative imports.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            start = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            paths = [f"{start}.{alias.name}" for alias in node.names]
        else:
            continue
        for path in paths:
            if path == "privasso" or path.startswith("privasso."):
                yield path.split(".")[1:]


def crossings(package: Path):
    """Yield (file, its room, path) for each import of one room by another.

    A room is a folder, or a single file beside the folders. The path of the package itself, from
    which the version or a public name is taken, is empty.
    """
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package)
        room = "privasso" if place == Path("__init__.py") else place.parts[0].removesuffix(".py")
        here = ".".join(["privasso", *place.parts[:-1]])
        for path in imports(ast.parse(file.read_text(encoding="utf-8")), here):
            inside = path[:1] if path and path[0] in RANK else []
            if inside != [room]:
                yield place.as_posix(), room, path


def private_imports(package: Path) -> set[str]:
    """What rooms take from the private modules of other rooms."""
    found = set()
    for file, _, path in crossings(package):
        for depth, part in enumerate(path[1:], start=2):
            if part.startswith("_") and path[0] not in LAYERS[0].split():
                found.add(f"{file}: {'.'.join(path[:depth])}")
                break
    return found


def upward_imports(package: Path) -> set[str]:
    """What rooms take from rooms that are not below them."""
    found = set()
    for file, room, path in crossings(package):
        target = path[0] if path and path[0] in RANK else "privasso"
        if target == "privasso" and path == ["__version__"]:
            continue  # the one value that the package itself holds
        both_first = RANK[room] == RANK[target] == 0
        too_high = RANK[target] >= RANK[room] and not both_first
        if too_high or (room in LEAVES and RANK[target] > RANK["encoding"]):
            found.add(f"{file}: {target}")
    return found


def test_every_room_has_its_place():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert rooms | files <= set(RANK)


def test_no_folder_imports_a_private_module_of_another():
    assert private_imports(PACKAGE) == KNOWN_PRIVATE


def test_no_folder_imports_from_above():
    assert upward_imports(PACKAGE) == KNOWN_UPWARD


#: Kinds of privacy, and the rooms that may ask which one it is.
KINDS, ASKING = {"LabelDP", "RecordDP", "OnAverage", "RecordBudget"}, {"privacy", "planning"}


def kinds_asked(package: Path) -> set[str]:
    """Files of other rooms that ask which class of a kind of privacy they have."""
    found = set()
    for path in package.rglob("*.py"):
        if path.relative_to(package).parts[0] in ASKING:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                named = {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
                if named & KINDS:
                    found.add(str(path.relative_to(package)))
    return found


def test_only_planning_asks_which_kind_of_privacy_it_is(tmp_path):
    """A new kind, or a new program of one, must not need changes everywhere."""
    assert not kinds_asked(PACKAGE)
    (tmp_path / "fit.py").write_text("found = isinstance(privacy, (Other, LabelDP))")
    assert kinds_asked(tmp_path) == {"fit.py"}


def test_every_kind_of_import_is_seen(tmp_path):
    files = {
        "__init__.py": "from privasso.theory import state_evolution",
        "_files.py": "from privasso import _documents, __version__",
        "scales/__init__.py": "import privasso.noise",
        "noise/_design.py": "def late():\n    from privasso.scales._law import ScaleLaw",
        "model/_model.py": "import privasso as pv\nfrom ..scales import _law",
        "page/_page.py": "if TYPE_CHECKING:\n    from privasso.report import fit_page",
        "tables/_open.py": "from privasso import scales",
        "theory/_nodes.py": "from privasso.theory._points import Points\nfrom . import _grid",
        "cli/_app.py": "from privasso import Model\nfrom privasso.paper import reproduce",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert private_imports(tmp_path) == {
        "noise/_design.py: scales._law",
        "model/_model.py: scales._law",
    }
    assert upward_imports(tmp_path) == {
        "model/_model.py: privasso",
        "page/_page.py: report",
        "scales/__init__.py: noise",
        "tables/_open.py: scales",
    }
