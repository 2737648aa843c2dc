"""Terms: each thing has one word, which the list of terms explains; no text uses another."""

import re

from tests.style.sources import CODE, ROOT, name_of

TERMS = ROOT / "docs" / "reference" / "terms.md"
TEXTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "cluster/*.md")
    for path in ROOT.glob(pattern)
    if not {"_generated", "_build"} & set(path.parts)
)
OTHER_WORDS = {
    "student": r"pupils?",
    "attempt": r"(?:number of|\d|a|the|ended|killed) (?:try|tries)(?! to\b)|\w+_tries",
    "confirmation": r"final test(?! error)",
    "prune": r"(?:points?|best one) (?:is|are|was|may be) dropped|drops? (?:few|the best) points?",
    "switch epoch": r"(?:switching|change) epochs?",
    "folder": r"(?<!working )(?<!home )(?<!that )director(?:y|ies) with",
    "dataset": r"data sets?",
}
"""Patterns of words that must not stand for a thing, by the word for it."""
NOT_IN_THE_LIST = {"folder", "dataset"}
"""Words that need no explanation."""


def _terms() -> list[str]:
    """Return the words that the list explains; a row can have two, such as teacher and student."""
    rows = re.findall(r"^\| ([^|]+) \| .+ \|$", TERMS.read_text(), re.MULTILINE)
    return [term.strip() for row in rows[1:] for term in row.split(",")]


def test_each_term_is_explained_once() -> None:
    terms = _terms()
    assert len(terms) == len(set(terms)) > 40
    assert OTHER_WORDS.keys() - NOT_IN_THE_LIST <= set(terms)


def test_no_text_uses_another_word_for_a_term() -> None:
    other = re.compile(rf"\b(?:{'|'.join(OTHER_WORDS.values())})\b", re.IGNORECASE)
    assert len(TEXTS) > 30
    found = {
        f"{name_of(path)}: {match[0]}"
        for path in (*TEXTS, *CODE, *(ROOT / "docs").rglob("*.py"))
        for match in other.finditer(" ".join(path.read_text().split()))
    }
    assert not found
