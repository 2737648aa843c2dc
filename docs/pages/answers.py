"""Answers: statements of papers on mixup, with the verdicts of the studies that test them.

    python -m docs.pages.answers > reports/published/answers.md
    python -m docs.pages.answers --studies    # names of the published studies that can run here

The template `answers.md` paraphrases statements of the papers and calls the methods of `Answers` to
insert results. Verdicts, numbers, seeds and figures come from the published reports, judged
by the present claims and rules.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from docs.pages.claims_index import verdicts_of_today
from docs.pages.published import PUBLISHED, Published, latest_report, provenance_of
from mixup_core.config.written_forms import flatten
from reports.numbers.spelling import DASH, escape_markdown, markdown_grid
from reports.numbers.verdict import Verdict
from reports.tables.verdicts import spell_numbers
from sweeps.reading.study_file import bundled_names, load_study
from sweeps.study.study import Study

_OWN = ("no source", "open question")
"""First words of the `source` of claims that this project states and no publication does."""
_DECIDED = re.compile(r": (?:holds|fails)\b")
"""Verdict of a variant that is decided, in the text `LABEL: VERDICT; same under LABEL`."""

TEMPLATE = Path(__file__).parent / "manuscripts" / "answers.md"


@dataclass(kw_only=True)
class Answers:
    """Makes the page that lists statements of papers, with verdicts of studies that test them.

    The template of the page calls these methods, each of which returns a piece of Markdown.
    """

    published: Path = PUBLISHED
    counts: Counter[str] = field(default_factory=Counter)
    """Number of table rows by verdict."""
    _asked: dict[str, "Asked"] = field(default_factory=dict)

    def page(self, template: Path = TEMPLATE) -> str:
        """Return the whole page of statements and verdicts as Markdown.

        Raises:
            KeyError: If no claim of a study, or more than one, begins with the words by which the
                template names a claim.
        """
        # The page is Markdown, not HTML; each function escapes its own output.
        environment = Environment(  # noqa: S701
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
            keep_trailing_newline=True,
        )  # fmt: skip
        functions = (
            self.asked, self.waits, self.value, self.verdict, self.figure,
            self.cost, self.costs, self.contradicted, self.turned,
        )  # fmt: skip
        environment.globals |= {function.__name__: function for function in functions}
        text = environment.from_string(template.read_text(encoding="utf-8")).render()
        return text.replace("TOTAL", self.total())

    def asked(self, sentence: str, study: str, *begins: str) -> str:
        """Return table rows on a statement of a paper: one row per claim that tests the statement.

        Args:
            sentence: The sentence of the paper, paraphrased.
            study: Name of the bundled study that tests it.
            begins: First words of each claim to show; if none are given, all claims of the study.
        """
        found = self._of(study)
        asked = [found.verdict(words) for words in begins] or found.verdicts
        lines = [
            self._row(sentence if index == 0 else "", study, verdict)
            for index, verdict in enumerate(asked)
        ]
        return "\n".join(lines)

    def waits(self, sentence: str, *studies: str) -> str:
        """Return table rows on a statement of a paper that is tested by large studies, on a GPU.

        A study without a report has one row, which says that it was not run; any other has the rows
        of `asked`.

        Args:
            sentence: The sentence of the paper, paraphrased.
            studies: Names of the bundled studies that test it.
        """
        lines = []
        for name in studies:
            found = self._of(name)
            if found.report is not None:
                lines.append(self.asked(sentence, name))
            else:
                self.counts["not run"] += 1
                seeds, number = len(found.study.seeds), len(found.study.claims)
                what = (
                    f"full scale, needs a GPU: {number} claims"
                    if number > 1
                    else "full scale, needs a GPU"
                )
                cells = (
                    sentence,
                    f"`{name}`",
                    what,
                    "**not run**",
                    DASH,
                    f"{seeds} planned",
                    found.all_rates,
                )
                lines.append(f"| {' | '.join(cells)} |")
            sentence = ""
        return "\n".join(lines)

    def value(self, study: str, begins: str) -> str:
        """Return a claim's value, interval and number of seeds as text, to be put into a sentence.

        The text is `not run` if the study has no published report.

        Args:
            study: Name of a bundled study.
            begins: First words of the claim.
        """
        found = self._of(study)
        verdict = found.verdict(begins)
        if found.report is None:
            return "not run"
        return f"{spell_numbers(found.study, verdict)[0]} (n = {verdict.n})"

    def verdict(self, study: str, begins: str) -> str:
        """Return the verdict of a claim as text, to be put into a sentence.

        The text is `not run` if the study has no published report.

        Args:
            study: Name of a bundled study.
            begins: First words of the claim.
        """
        found = self._of(study)
        return "not run" if found.report is None else found.verdict(begins).verdict

    def figure(self, study: str, name: str) -> str:
        """Return a figure of a published report with its caption; a note if there is no report."""
        report = self._of(study).report
        if report is None or report.folder is None:
            return f"*`{study}` has no published report.*"
        picture = report.folder / "figures" / f"{name}.png"
        place = picture.relative_to(self.published).as_posix()
        caption = picture.with_suffix(".txt").read_text(encoding="utf-8").strip()
        return f"![{study}: {name}]({place})\n\n*`{study}`*: {escape_markdown(caption)}"

    def cost(self) -> str:
        """Return the number of runs in all published reports and the hours they took, as text.

        A run that several studies share counts once.
        """
        seconds: dict[str, float] = {}
        reports = (latest_report(self.published, name) for name in bundled_names())
        folders = [report.folder for report in reports if report is not None]
        for folder in filter(None, folders):
            for run in provenance_of(folder)["runs"]:
                seconds[run["run_key"]] = run["seconds"] or 0.0
        hours = sum(seconds.values()) / 3600
        return f"{len(seconds):,} runs of {len(folders)} studies, {hours:.1f} hours of one core"

    def costs(self) -> str:
        """Return a table of the hours, machine and commit of each published study, longest first.

        The hours are those of training.
        """
        rows = []
        for name in bundled_names():
            found = self._of(name)
            if found.report is None or found.report.folder is None:
                continue
            provenance = provenance_of(found.report.folder)
            runs, places = provenance["runs"], provenance["environments"]
            hours = sum(run["seconds"] or 0.0 for run in runs) / 3600
            ended = datetime.fromtimestamp(provenance["last_epoch_stored_at_ms"] / 1000, UTC)
            machine = ", ".join(dict.fromkeys(place["device"] for place in places))
            commit = provenance["code"]["commit"][:7]
            cells = (str(len(runs)), f"{hours:.2f}", machine, f"{ended:%Y-%m-%d}", commit)
            rows.append((hours, [found.link(self.published), *map(escape_markdown, cells)]))
        header = ["study", "runs", "hours", "machine", "last run ended", "commit"]
        return markdown_grid([header, *(line for _, line in sorted(rows, reverse=True))])

    def contradicted(self) -> str:
        """Return a table of the papers' claims that fail, with measured and printed value."""
        header = "study, claim, source, metric, measured, value in the source, n, other settings"
        grid = [header.split(", ")]
        for found, verdict in self._judged():
            if verdict.verdict == "fails" and not verdict.claim.source.startswith(_OWN):
                value, reference = spell_numbers(found.study, verdict)
                told = found.variants(verdict) or DASH
                line = [found.link(self.published), verdict.claim.says, verdict.claim.source]
                line.append(found.study.problem.metric(verdict.claim.that.metric).heading)
                grid.append([*line, value, reference, str(verdict.n), told])
        return markdown_grid([[*line[:1], *map(escape_markdown, line[1:])] for line in grid])

    def turned(self) -> str:
        """Return a table of the claims whose verdict or sign differs in a variant of their study.

        A claim is listed if it holds or fails in a variant and has another verdict in the study, or
        if it is decided in the study and its value has the other sign in a variant. A claim that
        only becomes undecided is not listed.
        """
        grid = [["study", "claim", "verdict", "value", "n", "learning rate", "other settings"]]
        for found, verdict in self._judged():
            told, is_decided = found.variants(verdict), verdict.verdict in {"holds", "fails"}
            if _DECIDED.search(told) or (is_decided and "other sign" in told):
                value = spell_numbers(found.study, verdict)[0]
                line = [found.link(self.published), verdict.claim.says, verdict.verdict, value]
                grid.append([*line, str(verdict.n), found.rates(verdict) or DASH, told])
        return markdown_grid([[*line[:1], *map(escape_markdown, line[1:])] for line in grid])

    def _judged(self) -> Iterator[tuple["Asked", Verdict]]:
        """Yield each claim of the published studies with its study and its present verdict."""
        for name in bundled_names():
            found = self._of(name)
            if found.report is not None:
                yield from ((found, verdict) for verdict in found.verdicts)

    def total(self) -> str:
        """Return how many table rows of the page have each verdict: `12 holds, 3 undecided`."""
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
            page, other = found.link(self.published), found.variants(verdict)
        rates = ", ".join(filter(None, (found.rates(verdict), other))) or DASH
        says = escape_markdown(verdict.claim.says)
        value, rates = escape_markdown(value), escape_markdown(rates)
        return f"| {sentence} | {page} | {says} | **{outcome}** | {value} | {count} | {rates} |"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A bundled study on the page of statements, and its published report; None if it has none."""

    study: Study
    report: Published | None

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of the study's claims, judged by the present rules, in the study's order."""
        return verdicts_of_today(self.study, self.report)

    def verdict(self, begins: str) -> Verdict:
        """Return the verdict of the claim of this study that begins with the given words.

        Raises:
            KeyError: If no claim, or more than one, begins with them.
        """
        found = [verdict for verdict in self.verdicts if verdict.claim.says.startswith(begins)]
        if len(found) != 1:
            raise KeyError(
                f"{self.study.name}: {len(found)} claims begin with {begins!r}; "
                "give the first words of exactly one"
            )
        return found[0]

    @property
    def all_rates(self) -> str:
        """The learning-rate schedules of all arms of the study, as text.

        Problems without learning rates have a dash.
        """
        names = {str(flatten(config).get("lr_schedule", "")) for config in self.study.arms.values()}
        return ", ".join(sorted(filter(None, names))) or DASH

    def link(self, published: Path) -> str:
        """Return a link to the published report of this study."""
        assert self.report is not None, "only a published study has a link"
        assert self.report.folder is not None, "a latest report has a folder"
        return f"[{self.study.name}]({self.report.folder.relative_to(published).as_posix()}/)"

    def variants(self, verdict: Verdict) -> str:
        """Return, as text, how the study's variants change a verdict; empty if they do not."""
        told = {} if self.report is None else self.report.told
        return told.get(verdict.claim.says, {}).get("variants") or ""

    def rates(self, verdict: Verdict) -> str:
        """Return the learning-rate schedules of a claim's arms; empty for problems without them."""
        configs = [self.study.arms[arm] for arm in verdict.claim.that.terms]
        names = {str(flatten(config).get("lr_schedule", "")) for config in configs}
        return ", ".join(sorted(filter(None, names)))


def runnable(published: Path = PUBLISHED) -> Iterator[str]:
    """Yield the names of the published studies whose datasets are on this machine."""
    for name in bundled_names():
        if latest_report(published, name) is None:
            continue
        study = load_study(name)
        data = None if study.problem.data is None else study.problem.data()
        if data is None or all(data.missing(config) is None for config in study.arms.values()):
            yield name


def main() -> None:
    """Print the page of answers, or with `--studies` the names of the studies that can run here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--studies", action="store_true", help="print names of studies instead")
    if parser.parse_args().studies:
        sys.stdout.write(" ".join(runnable()) + "\n")
    else:
        sys.stdout.write(Answers().page())


if __name__ == "__main__":
    main()
