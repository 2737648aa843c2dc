"""Plain English: docstrings, messages and test names avoid patterns that readers found unclear."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mixsweep

ROOT = Path(mixsweep.__file__).parents[1]
FILES = sorted(
    path
    for room in ("mixup_core", "sweeps", "reports", "mixsweep", "examples")
    for path in (ROOT / room).rglob("*.py")
)
UNCLEAR = re.compile(
    r"(?:Of|What|Whether|Who|Whom|Whose|Why|That|Which|Where|When|How|It|Its|They|Their|Those|None|"
    r"Nothing|Nobody|Somebody|Whoever|Whatever|Whenever|There|So|And|But|Not|As|If|To|For|Than|"
    r"Also|Else|Same|Such|Here|Once)\b"
)
"""First words of a docstring that refer to a missing noun, or make its first line half a sentence.
"""
DIALECT = re.compile(
    r"(?:Return|Yield) [a-z]+ to |(?:Return|Yield|Say|Take|Let) what\b.*\b"
    r"(?:says?|lacks?|asks?|told|gave)\b|\w+ it[.;]|.*\b(?:nobody|somebody|whoever|no limit says)\b"
)
"""Forms that are hard to read: a mapping written as "A to B", a pronoun without a noun, figures of
speech.
"""
ELLIPSIS = re.compile(
    r"\b(?:by|of|to|from|for|in|on|with) what\b|\bNone where\b|\bsomething else\b|\bany more\b|"
    r"\bthat there is none\b|\bwhat it lacks\b|\bwhat is gone\b"
)
"""Words used instead of a noun, anywhere in the first paragraph of a docstring."""
FORMULA = re.compile(r"[<>=]| in [\[{]")
FRAMED = re.compile(r"`([^`]*)` must hold")
TEST_NAME = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
VAGUE_NAME = re.compile(
    r"^test_(?:it|its|they|their|this|that|these|those)_|"
    r"_(?:what|whatever|whoever|whom|who|whichever|wherever|(?:no|some|any)bodys?)(?:_|$)|"
    r"_(?:told|said|says?|tells?|hears?|heard|wish|wishes|knows?|in_vain)(?:_|$)|"
    r"_(?:ones_own|of_ours|strangers?|(?:nothing|something)_else|any_more|all_the_same)(?:_|$)|"
    r"_(?:goes?_on|gives?_way|left_alone|in_the_place_of|look(?:s|ed)?_at|stands?_for)(?:_|$)|"
    r"_(?:is|are)_(?:none|there|gone|that_of|those_of)(?:_|$)|"
    r"_(?:is|are|was|were|be|has|have|had|does|do|did|can|may|must|so|too|either|there|here)$|"
    r"_(?:(?<!fan_)in|on|at|of|to|for|from|by|with|as|than|about)$"
)
"""Parts of test names that readers found unclear: pronouns without a noun, figures of speech, and
last words that leave the sentence unfinished.
"""


@pytest.mark.parametrize(
    "path",
    [*FILES, *sorted((ROOT / "tests").rglob("*.py"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_docstrings_begin_with_a_complete_statement(path: Path) -> None:
    unclear = [
        text
        for text in _docstrings(ast.parse(path.read_text()))
        if UNCLEAR.match(text)
        or DIALECT.match(text.partition("\n")[0])
        or ELLIPSIS.search(" ".join(text.partition("\n\n")[0].split()))
    ]
    assert not unclear


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rules_in_code_marks_are_formulas_and_not_prose(path: Path) -> None:
    tree = ast.parse(path.read_text())
    framed = [rule for text in _texts(tree) for rule in FRAMED.findall(text)]
    stated = [
        text
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for text in _rules(call)
        if not re.search(r"\b(must|needs?|cannot)\b", text)
    ]
    unclear = [rule for rule in framed + stated if rule != "{}" and not FORMULA.search(rule)]
    assert not unclear


@pytest.mark.parametrize(
    ("name", "is_vague"),
    [
        ("test_scalars_mean_what_they_look_like", True),
        ("test_only_names_that_may_be_empty_are", True),
        ("test_a_law_is_said_once", True),
        ("test_they_are_equal", True),
        ("test_the_mean_is_that_of_its_runs", True),
        ("test_the_scale_follows_the_fan_in", False),
        ("test_a_run_without_a_stored_stage_is_missing", False),
    ],
)
def test_vague_test_names_are_recognised(name: str, is_vague: bool) -> None:
    assert bool(VAGUE_NAME.search(name)) == is_vague


def test_test_names_are_not_vague() -> None:
    vague = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for name in TEST_NAME.findall(path.read_text())
        if VAGUE_NAME.search(name)
    ]
    assert not vague


def _docstrings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for line in body if isinstance(body, list) else ():
            match line:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield text.strip()


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if (text := _text(node)) is not None:
            yield text


def _rules(call: ast.Call) -> Iterator[str]:
    """Yield the rule in a call of `require` or `RuleError`, if it is a literal."""
    position = {"require": 1, "RuleError": 0}.get(getattr(call.func, "id", ""))
    if position is not None and len(call.args) > position:
        text = _text(call.args[position])
        if text is not None:
            yield text


def _text(node: ast.AST) -> str | None:
    """Return the text of a literal, with `{}` for each inserted value."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts
            )
    return None
