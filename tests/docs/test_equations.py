"""Equations: the page has one entry for each bundled study, with a formula and its sources."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sweeps.reading.study_file import bundled_names
from tests.bundled import bundled

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "equations.md"
PARTS = ("Question", "Equation", "Source", "Verdict")
PAPER = re.compile(r"arXiv:\d{4}\.\d{4,5}")
NAMED = re.compile(
    rf"\[{PAPER.pattern}\]|slides on data valuation for mixup|\basked\s+by\s+this\s+project\b"
)
"""Ways in which an entry names a source, or states that the study has no other one."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A section of the page about one study or a family of studies."""

    heading: str
    text: str

    @property
    def studies(self) -> list[str]:
        """The studies of the entry: the name in the heading, or the first name of each item."""
        listed = re.findall(r"^- `([a-z0-9-]+)`:", self.text, re.MULTILINE)
        return re.findall(r"`([a-z0-9-]+)`", self.heading) + listed

    def part(self, name: str) -> str:
        """Return the paragraphs of one part of the entry, such as its source."""
        found = re.findall(rf"^\*\*{name}\.\*\*(.*?)(?=^\*\*|\Z)", self.text, re.DOTALL | re.M)
        assert len(found) == 1, f"{self.heading}: {len(found)} parts named {name}"
        return str(found[0])


def _entries() -> Iterator[Entry]:
    for found in re.finditer(
        r"^### ([^\n]+)\n(.*?)(?=^##|^\[arXiv[^\n]+: http|\Z)",
        PAGE.read_text(),
        re.DOTALL | re.MULTILINE,
    ):
        yield Entry(heading=found[1], text=found[2])


ENTRIES = list(_entries())


def test_every_bundled_study_has_exactly_one_entry() -> None:
    counts = Counter(name for entry in ENTRIES for name in entry.studies)
    assert counts == Counter(bundled_names())


def test_an_entry_has_a_question_a_formula_a_source_and_a_verdict() -> None:
    for entry in ENTRIES:
        assert all(entry.part(name).strip() for name in PARTS), entry.heading
        assert re.search(r"^\$\$.+?\$\$$", entry.part("Equation"), re.DOTALL | re.MULTILINE), entry
        assert NAMED.search(entry.part("Source")), "no paper, no slides, not asked by this project"


def test_an_entry_names_the_sources_of_all_claims_of_its_studies() -> None:
    for entry in ENTRIES:
        source = entry.part("Source")
        claims = [claim for name in entry.studies for claim in bundled(name).claims]
        named = {paper for claim in claims for paper in PAPER.findall(claim.source)}
        assert named <= set(PAPER.findall(source)), entry.heading
        if any(re.match(r"no source\b|open question\b", claim.source) for claim in claims):
            own = r"\bthis\s+project\b|\bno\s+other\s+source\b"
            assert re.search(own, source), entry.heading
        if not all(bundled(name).claims for name in entry.studies):
            assert re.search(r"makes?\s+no\s+claim", entry.text), entry.heading
