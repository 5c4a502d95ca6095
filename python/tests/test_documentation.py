"""What the documentation shows runs, and its links lead somewhere. Outputs are not compared: last digits may differ.

A Python block of README.md or docs runs by itself in a fresh process and an empty folder, with nothing but what
`pip install mercer` brings. What more it takes is said by a sentence of the paragraph before it with the word "needs": other
packages by name, files in backticks, which earlier blocks and commands make, or "the block before".
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from test_program import PROGRAM, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
#: Pages with commands, in the order in which they need each other's files.
COURSE = ("guide/first-model", "../README", "guide/kernels", "guide/sequences", "guide/data", "guide/compare")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
#: Packages that a block may ask for, and what they are called where they are imported.
EXTRAS = ("pandas", "matplotlib", "polars")


class Block(NamedTuple):
    page: str
    line: int
    kind: str
    code: str
    #: The paragraph before it, and the sentences of it that say "needs".
    before: str
    needs: str
    #: The text block that follows, if one does.
    output: str

    def __str__(self):
        return f"{self.page}:{self.line}"

    def modules(self):
        return {name for name in EXTRAS if re.search(rf"\b{name}\b", self.needs)}

    def files(self):
        return re.findall(r"`([\w-]+\.[\w.]+)`", self.needs)


def blocks(page):
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for match, after in itertools.zip_longest(found, found[1:]):
        before = text[: match.start()].rstrip().rpartition("\n\n")[2].replace("\n", " ")
        needs = " ".join(s for s in re.split(r"(?<=[.:]) ", before) if re.search(r"\bneeds\b", s))
        output = after[2] if after and after[1] == "text" else ""
        line = text.count("\n", 0, match.start()) + 1
        yield Block(str(page.relative_to(ROOT)), line, match[1], match[2], before, needs, output)


PYTHON = [[b for b in blocks(page) if b.kind == "python"] for page in PAGES]


def whole(block):
    """The block, after the ones that it needs."""
    page = next(page for page in PYTHON if block in page)
    chain = [block]
    while "the block before" in chain[0].needs:
        at = page.index(chain[0])
        assert at > 0, f"{block}: there is no block before"
        chain.insert(0, page[at - 1])
    return chain


def brought():
    """The packages that `pip install mercer` brings."""
    found, open_ = set(), ["mercer"]
    while open_:
        name = canonicalize_name(open_.pop())
        if name not in found:
            found.add(name)
            wanted = map(Requirement, metadata.requires(name) or [])
            open_ += [r.name for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


ONLY = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"the block does not say that it needs {{name}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run_python(code, folder, allowed=()):
    """In a process of its own, where only what mercer brings and `allowed` can be imported; None allows all that is there."""
    if allowed is not None:
        there = metadata.packages_distributions()
        keep = brought() | {canonicalize_name(name) for name in allowed}
        for name in allowed:
            keep |= {canonicalize_name(Requirement(r).name) for r in metadata.requires(name) or []}
        absent = {top for top, owners in there.items() if not keep & {canonicalize_name(o) for o in owners}}
        code = ONLY.format(absent=absent) + code
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """What was there after each page, in a folder with its name: all blocks of the guides and the README, in the order of `COURSE`."""
    if PROGRAM is None:
        pytest.skip("the program is not built: cargo build --release")
    all_, folder = tmp_path_factory.mktemp("course"), tmp_path_factory.mktemp("here")
    environment = os.environ | {"PATH": f"{Path(PROGRAM).parent}{os.pathsep}{os.environ['PATH']}"}
    for name in COURSE:
        page = (ROOT / "docs" / f"{name}.md").resolve()
        for block in blocks(page):
            if saved := re.search(r"[Ss]ave (?:it )?as `([^`]+)`", block.before):
                (folder / saved[1]).write_text(block.code, encoding="utf-8")
            if block.kind == "python" and not block.modules():
                done = run_python("".join(b.code for b in whole(block)), folder, None)
                assert done.returncode == 0, f"{block}\n{done.stderr}"
            elif block.kind == "sh" and block.code.startswith("mercer "):
                done = subprocess.run(["sh", "-e", "-c", block.code], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
                meant = 2 if block.output.startswith("error:") else 0
                assert done.returncode == meant, f"{block}: {block.code}{done.stderr}"
        shutil.copytree(folder, all_ / page.stem)
    return all_


def anchors(page):
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("http:", "https:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_commands_in_guides_and_readme_run(course):
    assert (course / "README" / "report.html").exists() and (course / "README" / "predictions.csv").exists()


@pytest.mark.parametrize("block", [b for page in PYTHON for b in page], ids=str)
def test_python_blocks_run_by_themselves(block, tmp_path, request):
    chain = whole(block)
    modules, files = set().union(*(b.modules() for b in chain)), [f for b in chain for f in b.files()]
    for module in sorted(modules):
        pytest.importorskip(module, reason=f"{block} needs {module}, which is not installed")
    for file in files:
        shutil.copy(request.getfixturevalue("course") / Path(block.page).stem / file, tmp_path)
    done = run_python("".join(b.code for b in chain), tmp_path, modules)
    assert done.returncode == 0, done.stderr


def test_first_contact_needs_nothing_more():
    first = [page[0] for page in PYTHON if page and page[0].page in ("README.md", "docs/guide/first-model.md")]
    assert [b.needs for b in first] == ["", ""]


def test_a_package_that_a_block_does_not_name_is_absent(tmp_path):
    pytest.importorskip("pandas")
    assert "does not say that it needs pandas" in run_python("import pandas", tmp_path).stderr
    assert run_python("import mercer, scipy, joblib", tmp_path).returncode == 0
    assert run_python("import pandas", tmp_path, ("pandas",)).returncode == 0


@pytest.mark.parametrize("example", sorted((ROOT / "examples/python").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(example, tmp_path):
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
