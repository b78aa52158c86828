"""Mutants are the program with one small change, and each kind of change is made."""

from __future__ import annotations

import ast
import difflib

import pytest

from minipaged.course.dev.mutants import mutants

SMALL = '''
import math  # left alone

LIMIT = 7


class Box:
    """A box."""

    __slots__ = ("a", "b")

    def __repr__(self):
        return f"Box({self.a + 1})"

    def put(self, a: "1 + 1", rest=()) -> "2 * 2":
        """Put it in."""
        if not a or self.a < a:
            raise ValueError(f"{a + 1} is too much", 3)  # too much
        self.a += a
        for one in rest[:a]:
            self.put(one)
        return math.pow(self.a, a) + 1


def empty(x: int):
    """Nothing."""
'''

EXPECTED = {
    ("number +1", "", "LIMIT = 7", "LIMIT = 8"),
    ("number -1", "", "LIMIT = 7", "LIMIT = 6"),
    ("statement left out", "", "LIMIT = 7", "pass"),
    ("and for or", "Box.put", "if not a or self.a < a:", "if not a and self.a < a:"),
    ("sign left out", "Box.put", "if not a or self.a < a:", "if a or self.a < a:"),
    ("comparison", "Box.put", "if not a or self.a < a:", "if not a or self.a <= a:"),
    ("condition True", "Box.put", "if not a or self.a < a:", "if True:"),
    (
        "statement left out",
        "Box.put",
        'if not a or self.a < a:\nraise ValueError(f"{a + 1} is too much", 3)  # too much',
        "pass  # too much",
    ),
    (
        "other exception",
        "Box.put",
        'raise ValueError(f"{a + 1} is too much", 3)  # too much',
        "raise IndexError(f'{a + 1} is too much', 3)  # too much",
    ),
    ("arithmetic", "Box.put", "self.a += a", "self.a -= a"),
    ("statement left out", "Box.put", "self.a += a", "pass"),
    ("slice begins +1", "Box.put", "for one in rest[:a]:", "for one in rest[1:a]:"),
    ("slice ends +1", "Box.put", "for one in rest[:a]:", "for one in rest[:a + 1]:"),
    ("slice ends -1", "Box.put", "for one in rest[:a]:", "for one in rest[:a - 1]:"),
    ("statement left out", "Box.put", "for one in rest[:a]:\nself.put(one)", "pass"),
    ("statement left out", "Box.put", "self.put(one)", "pass"),
    (
        "arguments swapped",
        "Box.put",
        "return math.pow(self.a, a) + 1",
        "return math.pow(a, self.a) + 1",
    ),
    ("arithmetic", "Box.put", "return math.pow(self.a, a) + 1", "return math.pow(self.a, a) - 1"),
    ("number +1", "Box.put", "return math.pow(self.a, a) + 1", "return math.pow(self.a, a) + 2"),
    ("number -1", "Box.put", "return math.pow(self.a, a) + 1", "return math.pow(self.a, a) + 0"),
    ("returns None", "Box.put", "return math.pow(self.a, a) + 1", "return None"),
    (
        "returns the first operand",
        "Box.put",
        "return math.pow(self.a, a) + 1",
        "return math.pow(self.a, a)",
    ),
}


def test_a_small_program_has_exactly_the_mutants_that_it_should():
    found = mutants(SMALL, ["LookupError", "ValueError"])
    emptied = [one for one in found if one.kind == "emptied"]
    assert {(one.kind, one.where, one.before, one.after) for one in found} - EXPECTED == {
        (one.kind, one.where, one.before, one.after) for one in emptied
    }
    assert [(one.where, one.after) for one in emptied] == [("Box.put", "pass")]
    assert len(found) == len(EXPECTED) + 1


def test_a_mutant_is_the_program_with_one_change_and_nothing_else():
    lines = SMALL.splitlines()
    for one in mutants(SMALL, ["ValueError"]):
        ast.parse(one.source)
        changed = [
            op
            for op in difflib.SequenceMatcher(None, lines, one.source.splitlines()).get_opcodes()
            if op[0] != "equal"
        ]
        [(_, first, last, _, _)] = changed
        assert first < one.line <= last or one.kind == "emptied"
        assert one.before == "\n".join(line.strip() for line in lines[first:last])
        assert "# left alone" in one.source
        assert f"-{lines[first]}" in one.diff


def test_mutants_differ_from_the_program_and_from_each_other():
    programs = [ast.unparse(ast.parse(one.source)) for one in mutants(SMALL, ["ValueError"])]
    assert len({*programs, ast.unparse(ast.parse(SMALL))}) == len(programs) + 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = -(-a // b) * c", "x = (-a // b) * c"),  # parentheses where they are needed
        ("x = a == b", "x = a != b"),
        ("x = a is None", "x = a is not None"),
        ("x = a in b", "x = a not in b"),
        ("x = a % b", "x = a // b"),
        ("x = a // b", "x = a % b"),
        ("x = a // b", "x = a * b"),
        ("x = a / b", "x = a * b"),
        ("x = [i for i in a if i > 2]", "x = [i for i in a if False]"),
        ("x = a[i:]", "x = a[i - 1:]"),
        ("x = a[i:]", "x = a[i:-1]"),
        ("x = 1 if a else b", "x = 1 if False else b"),
        ("while a: b()", "while False: b()"),
        ("raise KeyError", "raise ValueError"),
    ],
)
def test_single_changes(before, after):
    found = [ast.unparse(ast.parse(one.source)) for one in mutants(before, ["LookupError"])]
    assert ast.unparse(ast.parse(after)) in found


@pytest.mark.parametrize(
    "program",
    [
        "x = max(a, b)",  # the order makes no difference
        "x = f(a, *b)",
        "x: int",
        "raise TypeError('not asked for')",
        "def f():\n    pass",
        'def f():\n    """Words."""',
    ],
)
def test_nothing_to_change(program):
    assert [
        one for one in mutants(program, ["ValueError"]) if one.kind != "statement left out"
    ] == []


def test_an_elif_that_is_left_out_is_still_a_program():
    program = "if a:\n    b()\nelif c:\n    d()\n"
    sources = [ast.unparse(ast.parse(one.source)) for one in mutants(program)]
    assert "if a:\n    b()\nelse:\n    pass" in sources


def test_numbers_are_doubled_where_near_is_good_enough():
    changed = {one.after for one in mutants("x = 50 - 0", coarse=True) if "number" in one.kind}
    assert changed == {"x = 100 - 0", "x = 50 - 1"}


def test_a_change_does_not_disturb_the_next_one():
    found = mutants("# a comment\nif not 0 <= a < b:\n    c()\n")
    assert all(one.source.startswith("# a comment\n") for one in found)
    assert "if not 0 <= a <= b:" in [one.after for one in found]
