"""Plain English: docstrings, messages and test names avoid patterns that readers found unclear."""

import ast
import re
from collections.abc import Iterator, Sequence

from tests.style.sources import CODE, ROOT, TESTS, name_of, nodes_of

EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
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


def test_docstrings_begin_with_a_complete_statement() -> None:
    unclear = [
        f"{name_of(file)}: {text}"
        for file in (*CODE, *EXAMPLES, *TESTS)
        for text in _docstrings(nodes_of(file))
        if UNCLEAR.match(text)
        or DIALECT.match(text.partition("\n")[0])
        or ELLIPSIS.search(" ".join(text.partition("\n\n")[0].split()))
    ]
    assert not unclear


def test_test_names_are_not_vague() -> None:
    assert VAGUE_NAME.search("test_a_law_is_said_once")
    assert not VAGUE_NAME.search("test_the_scale_follows_the_fan_in")
    vague = [
        f"{name_of(file)}: {name}"
        for file in TESTS
        for name in TEST_NAME.findall(file.read_text())
        if VAGUE_NAME.search(name)
    ]
    assert not vague


def _docstrings(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        body = getattr(node, "body", None)
        for line in body if isinstance(body, list) else ():
            match line:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield text.strip()
