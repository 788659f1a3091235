"""Where a claim stands: on the line it quotes, and on a changed line where a comment can be put."""

from __future__ import annotations

import difflib
from dataclasses import replace

from regreen.code.diff import FileChange, parse
from regreen.domain.models import Side
from regreen.reviewers.model.claims import Anchor, ModelClaim, SymptomLine, find_anchor, read_claims
from tests.unit.test_readers import finding


def changed(before: str, after: str, path: str = "a.py") -> FileChange:
    rows = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    (file,) = parse("".join(rows)).files
    return file


def test_a_claim_stands_where_its_quote_stands_however_wrong_its_number() -> None:
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,4 @@\n x = 1\n+y = x / 0\n+z = 2\n w = 3\n"
    (file,) = parse(diff).files
    assert find_anchor(file, 40, "y = x / 0") == Anchor("RIGHT", 2)
    assert find_anchor(file, 3, "") == Anchor("RIGHT", 3)
    assert find_anchor(file, 400, "not there") is None


def test_of_several_lines_that_were_quoted_the_first_counts() -> None:
    file = changed("x = 1\n", "x = 1\ny = (\n    2\n)\n")
    assert find_anchor(file, 3, "y = (\n    2\n)") == Anchor("RIGHT", 2)


def test_a_claim_about_an_old_line_stands_there_together_with_the_change_next_to_it() -> None:
    diff = (
        "--- a/a.py\n+++ b/a.py\n@@ -1,5 +1,6 @@\n def get(val):\n     if val == 'a':\n         return 1\n"
        "+    if val in PATHS:\n         return val.split(':')\n     return val\n"
    )
    (file,) = parse(diff).files
    assert find_anchor(file, 5, "        return val.split(':')") == Anchor("RIGHT", 5, changed=4)
    (said,) = read_claims(
        {"findings": [finding(path="a.py", line=5, quote="        return val.split(':')", replacement="x")]}, [file],
    )  # fmt: skip
    assert (said.line, said.changed, said.replacement) == (5, 4, None)


def test_a_claim_about_what_is_only_taken_away_stands_on_what_is_missed() -> None:
    diff = (
        "--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,2 @@\n def mean(p):\n-    if not p:\n-        return 0\n"
        "     return sum(p) / len(p)\n"
    )
    (file,) = parse(diff).files
    assert find_anchor(file, 2, "    return sum(p) / len(p)") == Anchor("LEFT", 3)
    assert find_anchor(file, 2, "") == Anchor("LEFT", 3)
    assert find_anchor(file, 2, "    if not p:") == Anchor("LEFT", 2)
    assert find_anchor(file, 90, "") is None


CACHE = """class Cache:
    def __getitem__(self, key):
        value = self.mapping[key]
        if self.queue[-1] != key:
            self._remove(key)
            self._append(key)
        return value

    def __delitem__(self, key):
        del self.mapping[key]
        self._remove(key)
"""


def test_a_quote_is_never_moved_to_the_same_text_in_another_function() -> None:
    locked = CACHE.replace(
        "        del self.mapping[key]\n        self._remove(key)\n",
        "        with self._lock:\n            del self.mapping[key]\n            self._remove(key)\n",
    )
    file = changed(CACHE, locked)
    quote = "            self._remove(key)"
    found = find_anchor(file, 5, quote, locked)
    assert found is not None
    assert found.shows == SymptomLine("a.py", 5, "self._remove(key)"), "the exact line, not line 12"
    miscounted = find_anchor(file, 6, quote, locked)
    assert miscounted is not None
    assert miscounted.shows == found.shows, "the one of the same function"
    assert find_anchor(file, 12, quote, locked) == Anchor("RIGHT", 12)


PARSER = (
    "def read(text):\n    words = text.split()\n"
    + "".join(f"    step_{n}(words)\n" for n in range(12))
    + "    raise ValueError(text)\n"
)


def test_a_fault_on_an_old_line_is_put_on_the_nearest_changed_line_of_its_function() -> None:
    after = PARSER.replace("    words = text.split()\n", "    words = text.split(' ')\n")
    file = changed(PARSER, after)
    assert find_anchor(file, 15, "    raise ValueError(text)", after) == Anchor(
        "RIGHT", 2, path="a.py", shows=SymptomLine("a.py", 15, "raise ValueError(text)")
    )


def test_a_fault_in_an_old_function_is_put_on_the_change_that_names_it() -> None:
    before = PARSER + "\n\ndef main():\n    pass\n"
    after = before.replace("    pass\n", "    return reader()\n").replace("read(", "reader(", 1)
    file = changed(before.replace("read(", "reader(", 1), after)
    found = find_anchor(file, 15, "    raise ValueError(text)", after)
    assert found is not None
    assert (found.line, found.shows and found.shows.line) == (19, 15)


def claim(
    files: list[FileChange], texts: dict[str, str], **said: object
) -> tuple[str, Side, int, bool]:
    (one,) = claims(files, texts, **said)
    return one.path, one.side, one.line, one.anchored


def claims(
    files: list[FileChange], texts: dict[str, str], **said: object
) -> tuple[ModelClaim, ...]:
    return read_claims({"findings": [finding(**said)]}, files, texts.get)


def test_the_changed_line_that_a_claim_names_as_its_cause_carries_it() -> None:
    before = PARSER + "\n\ndef main():\n    pass\n\n\nmain()\n"
    after = before.replace("    pass\n", "    other()\n")
    files = [changed(before, after), changed("x = 1\n", "x = 2\n", "b.py")]
    texts = {"a.py": after, "b.py": "x = 2\n", "old.py": "import a\na.go()\n"}
    old = {"path": "a.py", "line": 15, "quote": "    raise ValueError(text)"}
    assert claim(files, texts, **old, cause="a.py:19") == ("a.py", "RIGHT", 19, True)
    assert claim(files, texts, **old, cause="b.py:1") == ("b.py", "RIGHT", 1, True)
    # a file that the change leaves as it is, broken by the change
    far = {"path": "old.py", "line": 2, "quote": "a.go()", "cause": "a.py:18"}
    (one,) = claims(files, texts, **far)
    assert (one.path, one.line, one.shows) == ("a.py", 19, SymptomLine("old.py", 2, "a.go()"))
    assert one.text_for_second_reader.startswith("old.py, line 2: ")
    assert "Brought about by a.py, line 19" in one.text_for_second_reader


def test_a_claim_that_nothing_ties_to_the_change_is_kept_and_never_anchored() -> None:
    before = PARSER + "\n\ndef main():\n    pass\n"
    after = before.replace("    pass\n", "    other()\n")
    files, texts = [changed(before, after)], {"a.py": after, "old.py": "import a\na.go()\n"}
    old = {"path": "a.py", "line": 15, "quote": "    raise ValueError(text)"}
    assert claim(files, texts, **old) == ("a.py", "RIGHT", 15, False)
    assert claim(files, texts, **old, cause="nowhere.py:3") == ("a.py", "RIGHT", 15, False)
    assert claim(files, texts, path="old.py", line=2) == ("old.py", "RIGHT", 2, False)
    assert claims(files, texts, path="gone.py", line=2) == ()
    assert claims(files, texts, path="a.py", line=900, quote="no such code") == ()


def test_a_number_that_is_none_leaves_the_quote_to_say_where_a_claim_stands() -> None:
    files = [changed("x = 1\n", "x = 1\ny = 2\n")]
    for number in (float("inf"), float("nan"), 10**30, -4):
        said = claim(files, {"a.py": "x = 1\ny = 2\n"}, path="a.py", line=number, quote="y = 2")
        assert said == ("a.py", "RIGHT", 2, True)


def test_the_second_reader_is_told_which_line_brings_the_fault_about_and_when_it_stood_there() -> (
    None
):
    brought = ModelClaim(
        "a.py", 7, "It is counted twice", "two", "4", "2", "", None, "wrong-result", "usual", 0.9,
        side="LEFT", shows=SymptomLine("b.py", 3, "count(x)"),
    )  # fmt: skip
    first, second, *_ = brought.text_for_second_reader.splitlines()
    assert first == "b.py, line 3: It is counted twice"
    assert second == "Brought about by a.py, line 7 before the change"
    now = replace(brought, side="RIGHT")
    assert now.text_for_second_reader.splitlines()[1] == "Brought about by a.py, line 7"
    plain = replace(brought, shows=None)
    assert plain.text_for_second_reader.startswith(
        "a.py, line 7 before the change: It is counted twice\nInput"
    )
