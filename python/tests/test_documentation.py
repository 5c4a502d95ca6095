"""What the documentation shows runs, and its links lead somewhere. Outputs are not compared: last digits may differ."""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_program import PROGRAM, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


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


@pytest.mark.skipif(PROGRAM is None, reason="the program is not built: cargo build --release")
def test_code_in_guides_and_readme_runs(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(PROGRAM).parent}{os.pathsep}{os.environ['PATH']}")
    # In this order: the README uses the tables that the first guide makes.
    for page in ("docs/guide/first-model.md", "README.md", "docs/guide/kernels.md", "docs/guide/sequences.md", "docs/guide/compare.md"):
        names = {}
        blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
        for (kind, code), (_, output) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
            if kind == "python":
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(code, page, "exec"), names)
            elif kind == "sh" and code.startswith("mercer "):
                done = subprocess.run(["sh", "-e", "-c", code], capture_output=True, text=True, timeout=120)
                meant = 2 if output.startswith("error:") else 0
                assert done.returncode == meant, f"{page}: {code}{done.stderr}"
    assert Path("report.html").exists() and Path("predictions.csv").exists()


@pytest.mark.parametrize("example", sorted((ROOT / "examples/python").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(example, tmp_path):
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
