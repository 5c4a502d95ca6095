"""The recipes of CONTRIBUTING.md name files that exist and that name the thing."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "CONTRIBUTING.md"
if not RECIPES.exists():
    pytest.skip("not in a checkout: there is no CONTRIBUTING.md", allow_module_level=True)
TEXT = RECIPES.read_text()
ROWS = re.findall(r"^\| (a [^|]+?) \| `(\w+)` \| (`[^|]+`) \|$", TEXT, flags=re.MULTILINE)
#: The most code files that an addition of each kind may touch.
MOST = {
    "a kernel of numbers": 4,
    "a reader": 3,
    "a loss": 4,
    "a weight set": 3,
    "a method without parameters": 5,
    "a method with parameters": 6,
    "a backend": 6,
}


def test_every_kind_of_addition_has_a_recipe():
    assert {kind for kind, _, _ in ROWS} == set(MOST)


@pytest.mark.parametrize(("kind", "example", "files"), ROWS, ids=[kind for kind, _, _ in ROWS])
def test_the_files_of_a_recipe_exist_and_name_its_example(kind, example, files):
    named = re.findall(r"`([^`]+)`", files)
    assert 0 < len(named) <= MOST[kind]
    for file in named:
        text = (ROOT / file).read_text().lower()
        words = {example.lower(), re.sub(r"(?<=[a-z])(?=[A-Z])", "_", example).lower()}
        assert any(word in text for word in words), f"{file} does not name {example}"


def test_paths_of_the_recipes_exist():
    for path in re.findall(r"`((?:crates|python|docs|benchmarks)/[\w./-]+)`", TEXT):
        assert (ROOT / path).exists(), path
