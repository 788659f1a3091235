"""A definition that a commit renamed or moved, followed to the places that a compiler names."""

from __future__ import annotations

from pathlib import Path

from regreen.fixers.recipes.renamed_definitions import follow_renamed_definitions
from tests.unit.repairs import Repository

GO = "package tax\n\n// {0} adds tax.\nfunc {0}(net int) int {{ return net * 119 / 100 }}\n"
BILL = (
    'package bill\n\nimport "example.org/tax"\n\nfunc Bill(net int) int { return tax.Grs(net) }\n'
)
SUMS = "export function twice(value: number): number {\n  return value + value\n}\n"
ONE = "export const one = (): number => 1\n"
USE = "import { one, twice } from '../lib/tools';\n\nexport const two = twice(one())\n"


def test_a_renamed_function_of_go(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"tax/tax.go": GO.format("Grs"), "bill/bill.go": BILL})
    culprit = repository.commit("name it", {"tax/tax.go": GO.format("Gross")})
    rev = repository.commit("note", {"a.txt": ""})
    said = "bill/bill.go:5:37: undefined: tax.Grs\n"
    found = follow_renamed_definitions(repository.open(), rev, None, said, {"bill/bill.go": {5}})
    assert found is not None
    assert (found.culprit, found.summary, found.is_guess) == (culprit, "Grs is Gross", False)
    assert found.texts == {"bill/bill.go": BILL.replace("Grs", "Gross")}


def test_a_rename_that_meets_more_than_calls_is_a_guess(tmp_path: Path) -> None:
    """A key, a text or a member of something else can bear the same word."""
    repository = Repository(tmp_path / "repo")
    lib = "export function {0}(xs) {{\n  return xs.length + 1\n}}\n"
    use = "import {{ total }} from './lib.js'\nexport const card = xs => ({0})\n"
    repository.commit("start", {"lib.js": lib.format("total"), "use.js": use.format("total(xs)"), "card.js": use.format("{ total: total(xs) }")})  # fmt: skip
    rev = repository.commit("name it", {"lib.js": lib.format("sum")})
    guesses = {}
    for path in ("use.js", "card.js"):
        said = f"{path}:1: SyntaxError: './lib.js' does not provide an export named 'total'\n"
        found = follow_renamed_definitions(repository.open(), rev, None, said, {path: {1}})
        guesses[path] = found.is_guess if found else None
    assert guesses == {"use.js": False, "card.js": True}


def test_a_moved_export_of_typescript(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"src/lib/tools.ts": ONE + SUMS, "src/app/use.ts": USE})
    rev = repository.commit("move", {"src/lib/tools.ts": ONE, "src/lib/sums.ts": SUMS})
    said = "src/app/use.ts(1,15): error TS2305: Module '\"../lib/tools\"' has no exported member 'twice'.\n"
    found = follow_renamed_definitions(repository.open(), rev, None, said, {"src/app/use.ts": {1}})
    assert found is not None
    assert found.texts["src/app/use.ts"] == (
        "import { one } from '../lib/tools';\nimport { twice } from '../lib/sums';\n\nexport const two = twice(one())\n"
    )


def test_what_was_taken_away_for_good_is_not_followed(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"tax/tax.go": GO.format("Grs"), "bill/bill.go": BILL})
    rev = repository.commit("other", {"tax/tax.go": "package tax\n\nfunc Log(text string) { println(text); println(text) }\n"})  # fmt: skip
    said = "bill/bill.go:5:37: undefined: tax.Grs\n"
    assert follow_renamed_definitions(repository.open(), rev, None, said, {"bill/bill.go": {5}}) is None  # fmt: skip
