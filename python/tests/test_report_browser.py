"""The page in a real browser: names, headings, contrast, sorting, no request, no overflow. Says loudly where there is no browser.

`MERCER_CHROMIUM` names the program; otherwise the usual names are looked for.
"""

import html
import json
import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

import mercer

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless_shell")
CHROMIUM = os.environ.get("MERCER_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
SCRIPT = Path(__file__).with_name("accessibility.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, "yes", "no")
    methods = "l1, gmkl(v=0.5), clmkl, vcmkl"
    found = mercer.compare(X, y, methods, kernels="rbf(1|3), linear on all, each", grid="C=1|10", repeats=4)
    path = tmp_path_factory.mktemp("page") / "page.html"
    found.report(path)
    return path


def look(page, width, dark, folder):
    """What the script finds in the page at this width."""
    text = page.read_text(encoding="utf-8").replace("</body>", f"<script>{SCRIPT}</script></body>")
    copy = folder / "page.html"
    copy.write_text(text, encoding="utf-8")
    asked = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},900",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--virtual-time-budget=2000",
        "--dump-dom",
        copy.as_uri(),
    ]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="findings">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, f"the page's scripts did not run to the end: {done.stderr[-2000:]}"
    return json.loads(html.unescape(found[1]))


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (1200, True), (500, True)])
def test_the_page_is_accessible_and_asks_for_nothing(page, width, dark, tmp_path):
    if CHROMIUM is None:
        warnings.warn("NO BROWSER: the page was not looked at; install chromium or set MERCER_CHROMIUM", stacklevel=1)
        pytest.skip("NO BROWSER FOUND: install chromium or set MERCER_CHROMIUM")
    found = look(page, width, dark, tmp_path)
    assert found["wrong"] == []
    assert found["requests"] == [] and found["sorted"] is True
    assert found["dark"] is dark and found["width"] <= width


def test_the_check_bites(tmp_path):
    if CHROMIUM is None:
        pytest.skip("NO BROWSER FOUND: install chromium or set MERCER_CHROMIUM")
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><html><body><h1>a</h1><h3>b</h3><p style='color:#999;background:#fff'>pale</p><svg></svg>"
        "<table><tr><th>x</th></tr></table><div style='width:3000px'>wide</div></body></html>",
        encoding="utf-8",
    )
    wrong = " ".join(look(bad, 800, False, tmp_path)["wrong"])
    for part in ("no language", "no title", "no main", "skipped", "contrast", "drawing", "scope", "wider"):
        assert part in wrong, part
