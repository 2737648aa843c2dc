"""Answers: the questions of the sources, the studies that ask them, and the verdicts of the runs.

    python -m reports.pages.answers > reports/published/answers.md

The template states what sources say, in this project's words. Verdicts, numbers, seeds and
figures are those of the published reports, by the claims and the rules of today.
"""

import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from mixup_core.tree.written_forms import flatten
from reports.numbers.spelling import DASH, escape_markdown
from reports.numbers.verdict import Verdict
from reports.pages.claims_index import verdicts_of_today
from reports.pages.published import PUBLISHED, Published, latest_report, provenance_of
from reports.tables.verdicts import spell_numbers
from sweeps.reading.study_file import bundled_names, load_study
from sweeps.study.study import Study

TEMPLATE = Path(__file__).parent / "manuscripts" / "answers.md"


@dataclass(kw_only=True)
class Answers:
    """The page under way."""

    published: Path = PUBLISHED
    counts: Counter[str] = field(default_factory=Counter)
    """Number of rows by verdict."""
    _asked: dict[str, "Asked"] = field(default_factory=dict)

    def page(self, template: Path = TEMPLATE) -> str:
        """Return the page as Markdown.

        Raises:
            KeyError: If no claim, or more than one, begins with given words.
        """
        # The page is Markdown, whose pieces escape what they print themselves.
        environment = Environment(  # noqa: S701
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
            keep_trailing_newline=True,
        )  # fmt: skip
        functions = (
            self.asked, self.lacks, self.value, self.verdict, self.figure, self.cost,
        )  # fmt: skip
        environment.globals |= {function.__name__: function for function in functions}
        text = environment.from_string(template.read_text(encoding="utf-8")).render()
        return text.replace("TOTAL", self.total())

    def asked(self, sentence: str, study: str, *begins: str) -> str:
        """Return the lines of a table for a sentence: one for each claim that asks it.

        Args:
            sentence: The sentence of the source, in this project's words.
            study: A bundled study.
            begins: First words of each claim.
        """
        found = self._of(study)
        lines = [
            self._row(sentence if index == 0 else "", study, found.verdict(words))
            for index, words in enumerate(begins)
        ]
        return "\n".join(lines)

    def lacks(self, sentence: str, reason: str) -> str:
        """Return the line of a table for a sentence that no study asks."""
        self.counts["not done"] += 1
        return f"| {sentence} | {DASH} | {reason} | **not done** | {DASH} | {DASH} | {DASH} |"

    def value(self, study: str, begins: str) -> str:
        """Return the value of a claim with its interval and n, for a sentence."""
        found = self._of(study)
        verdict = found.verdict(begins)
        if found.report is None:
            return "not run"
        return f"{spell_numbers(found.study, verdict)[0]} (n = {verdict.n})"

    def verdict(self, study: str, begins: str) -> str:
        """Return the verdict of a claim, for a sentence."""
        found = self._of(study)
        return "not run" if found.report is None else found.verdict(begins).verdict

    def figure(self, study: str, name: str) -> str:
        """Return a figure of a published report with its caption; nothing where there is none."""
        report = self._of(study).report
        if report is None or report.folder is None:
            return f"*`{study}` has no published report.*"
        picture = report.folder / "figures" / f"{name}.png"
        place = picture.relative_to(self.published).as_posix()
        caption = picture.with_suffix(".txt").read_text(encoding="utf-8").strip()
        return f"![{study}: {name}]({place})\n\n*`{study}`*: {escape_markdown(caption)}"

    def cost(self) -> str:
        """Return the number of runs in published reports and their hours, each run counted once."""
        seconds: dict[str, float] = {}
        reports = (latest_report(self.published, name) for name in bundled_names())
        folders = [report.folder for report in reports if report is not None]
        for folder in filter(None, folders):
            for run in provenance_of(folder)["runs"]:
                seconds[run["run_key"]] = run["seconds"] or 0.0
        hours = sum(seconds.values()) / 3600
        return f"{len(seconds):,} runs of {len(folders)} studies, {hours:.1f} hours of one core"

    def total(self) -> str:
        """Return how many rows have which verdict."""
        return ", ".join(f"{number} {verdict}" for verdict, number in sorted(self.counts.items()))

    def _of(self, name: str) -> "Asked":
        if name not in self._asked:
            study = load_study(name)
            self._asked[name] = Asked(study=study, report=latest_report(self.published, name))
        return self._asked[name]

    def _row(self, sentence: str, name: str, verdict: Verdict) -> str:
        found = self._of(name)
        report, study = found.report, found.study
        outcome = "not run" if report is None else verdict.verdict
        self.counts[outcome] += 1
        value, page, count, other = DASH, f"`{name}`", DASH, ""
        if report is not None and report.folder is not None:
            value, count = spell_numbers(study, verdict)[0], str(verdict.n)
            page = f"[{name}]({report.folder.relative_to(self.published).as_posix()}/)"
            other = report.told.get(verdict.claim.says, {}).get("variants") or ""
        rates = ", ".join(filter(None, (found.rates(verdict), other))) or DASH
        says = escape_markdown(verdict.claim.says)
        value, rates = escape_markdown(value), escape_markdown(rates)
        return f"| {sentence} | {page} | {says} | **{outcome}** | {value} | {count} | {rates} |"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A bundled study and its published report."""

    study: Study
    report: Published | None

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of today, in the order of the claims."""
        return verdicts_of_today(self.study, self.report)

    def verdict(self, begins: str) -> Verdict:
        """Return the verdict of the one claim that begins with some words.

        Raises:
            KeyError: If there is none, or more than one.
        """
        found = [verdict for verdict in self.verdicts if verdict.claim.says.startswith(begins)]
        if len(found) != 1:
            raise KeyError(f"{self.study.name}: {len(found)} claims begin with {begins!r}")
        return found[0]

    def rates(self, verdict: Verdict) -> str:
        """Return the schedules of the learning rates of the arms of a claim; empty for theory."""
        configs = [self.study.arms[arm] for arm in verdict.claim.that.terms]
        names = {str(flatten(config).get("lr_schedule", "")) for config in configs}
        return ", ".join(sorted(filter(None, names)))


if __name__ == "__main__":
    sys.stdout.write(Answers().page())
