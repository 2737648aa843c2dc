"""Answers: statements of papers on mixup, with the verdicts of the studies that test them.

    python -m docs.pages.answers > reports/published/answers.md
    python -m docs.pages.answers --studies    # names of the published studies that can run here

`answers.yaml` has, for each study, the sentence of the source in our words and the kind of
evidence. The template `answers.md.jinja` calls the methods of `Answers`, which insert tables.
Verdicts, numbers, arms and thresholds come from the published reports and the study files, by
present rules.
"""

import argparse
import csv
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from docs.pages.claims_index import rounded, spell_outcome, verdicts_of_today
from docs.pages.published import PUBLISHED, Published, latest_report, provenance_of
from mixup_core.config.written_forms import flatten
from mixup_core.rules import spell_time
from reports.numbers.spelling import DASH, escape_markdown, markdown_grid
from reports.numbers.summary import ROUNDING
from reports.numbers.verdict import Verdict, claim_test
from reports.tables.claim_tables import (
    metric_of,
    spell_compared,
    spell_numbers,
    spell_threshold,
)
from sweeps.reading.study_file import bundled_names, load_study
from sweeps.study.claims import Claim
from sweeps.study.readouts import ClaimReadout, Last
from sweeps.study.study import Study

_OWN = re.compile(r"\bno source\b|\bopen question\b")
"""Words in the `source` of claims that this project states and no publication does."""
_DECIDED = re.compile(r": (?:holds|fails)\b")
"""Verdict of a variant that is decided, in the text `LABEL: VERDICT; same under LABEL`."""

_SIGN, _SIDE = "other sign", "other side of the threshold"
"""Change of a value in a variant: written in reports, and here if the claim has a threshold."""

TEMPLATE = Path(__file__).with_name("answers.md.jinja")
ENTRIES = Path(__file__).with_name("answers.yaml")

KINDS = {
    "mathematics": "mathematics as printed",
    "protocol": "the source's protocol",
    "setting": "another setting",
    "opposite": "the opposite, in another setting",
    "own": "no sentence of a source",
    "mirrored": "mirrors another claim",
    "check": "checks our code",
}
"""Kinds of evidence, in words; the first four are about a sentence of a source."""
_REFUTING = ("mathematics", "protocol")
_OF_A_SOURCE = (*_REFUTING, "setting", "opposite")
_MIXING = {
    "mix", "law", "law_after", "schedule", "switch_epoch", "operation", "nodes", "objective",
    "keep", "warm_up", "probes",
}  # fmt: skip
"""First parts of settings that say how a run mixes images and which mixed images it keeps."""

_COLUMNS = (
    "statement of the source, in our words", "study", "claim", "place in the source", "comparison",
    "threshold", "printed in the source", "evidence", "verdict", "value [interval]; means", "n",
    "our setting; the source's", "learning rate; other settings",
)  # fmt: skip
_FAILED = (
    "study", "claim", "place in the source", "comparison", "measured", "threshold",
    "printed in the source", "n", "other settings",
)  # fmt: skip


@dataclass(kw_only=True)
class Answers:
    """Makes the page of statements. Its template calls the methods, which return Markdown."""

    published: Path = PUBLISHED
    _asked: dict[str, "Asked"] = field(default_factory=dict)

    def page(self, template: Path = TEMPLATE) -> str:
        """Return the whole page as Markdown.

        Raises:
            KeyError: If no claim of a study, or more than one, begins with the words by which the
                template or `answers.yaml` names a claim.
        """
        # The page is Markdown, not HTML; each function escapes its own output.
        environment = Environment(  # noqa: S701
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
            keep_trailing_newline=True,
        )  # fmt: skip
        functions = (
            self.section, self.sentences, self.value, self.figure, self.counts, self.cost,
            self.costs, self.failed, self.turned, self.joined,
        )  # fmt: skip
        environment.globals |= {function.__name__: function for function in functions}
        return environment.from_string(template.read_text(encoding="utf-8")).render()

    def section(self, name: str) -> str:
        """Return the table of one section of `answers.yaml`: one row per claim of its studies.

        Claims of a study without a report share a row if they have the same sentence, kind of
        evidence and differences from the source.
        """
        lines = [_COLUMNS, ("---",) * len(_COLUMNS)]
        for study in entries()[name]:
            found = self._of(study)
            if found.report is None:
                lines += self._waiting(found)
            else:
                lines += [self._cells(found, verdict) for verdict in found.verdicts]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def sentences(self) -> str:
        """Return the table of sentences with the study that tests them or why there is none."""
        grid = [["sentence of a source, in our words", "place", "study", "limits, or why no study"]]
        for row in entries()["sentences"]:
            links = ", ".join(self._of(name).link(self.published) for name in row.get("study", ()))
            says, place, reason = (escape_markdown(row[k]) for k in ("sentence", "place", "reason"))
            grid.append([says, place, links or DASH, reason])
        return markdown_grid(grid)

    def counts(self) -> str:
        """Return a table that counts claims by kind of evidence and verdict.

        Claims that are not about a sentence of a source are counted apart.
        """
        found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
        for name in self._names():
            asked = self._of(name)
            for verdict in asked.verdicts:
                found[asked.kind(verdict.claim)][asked.outcome(verdict)] += 1
        outcomes = sorted({outcome for count in found.values() for outcome in count})
        grid = [["evidence", *outcomes]]
        grid += [[word, *(str(found[kind][o]) for o in outcomes)] for kind, word in KINDS.items()]
        return markdown_grid(grid)

    def value(self, study: str, begins: str) -> str:
        """Return a claim's value, interval and number of seeds as text, to be put into a sentence.

        A claim on a sign is marked if it is undecided.

        Args:
            study: Name of a bundled study.
            begins: First words of the claim.
        """
        found = self._of(study)
        verdict = found.verdict(begins)
        if found.report is None:
            return "not run"
        is_open = verdict.verdict == "undecided" and verdict.claim.that.number is None
        told = ", undecided" if is_open else ""
        return f"{rounded(spell_numbers(found.study, verdict)[0])} (n = {verdict.n}{told})"

    def joined(self, report: str, column: str, arm: str) -> str:
        """Return the difference of an arm from ERM in a column of a joined report, as text."""
        with (self.published / report / "joined.csv").open(encoding="utf-8") as file:
            (row,) = (r for r in csv.DictReader(file) if (r["column"], r["arm"]) == (column, arm))
        ends = ("difference", "difference_low", "difference_high")
        value, low, high = (f"{100 * float(row[end]):.2f}" for end in ends)
        return f"{value} [{low}, {high}]"

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
                if run["seconds"]:  # planned runs without a result have none
                    seconds[run["run_key"]] = run["seconds"]
        hours = sum(seconds.values()) / 3600
        return f"{len(seconds):,} runs of {len(folders)} studies, {hours:.1f} hours"

    def costs(self) -> str:
        """Return a table of the hours, machine and commit of each published study, longest first.

        The hours are those of training; only runs that exist count.
        """
        rows = []
        for name in bundled_names():
            found = self._of(name)
            if found.report is None or found.report.folder is None:
                continue
            provenance = provenance_of(found.report.folder)
            times = [run["seconds"] for run in provenance["runs"] if run["seconds"]]
            hours, places = sum(times) / 3600, provenance["environments"]
            ended = spell_time(provenance["last_epoch_stored_at_ms"], "%Y-%m-%d")
            machine = ", ".join(dict.fromkeys(place["device"] for place in places))
            commit = provenance["code"]["commit"][:7]
            cells = (str(len(times)), f"{hours:.2f}", machine, ended, commit)
            rows.append((hours, [found.link(self.published), *map(escape_markdown, cells)]))
        header = ["study", "runs", "hours", "machine", "last run ended", "commit"]
        return markdown_grid([header, *(line for _, line in sorted(rows, reverse=True))])

    def failed(self, *, contradicts: bool) -> str:
        """Return a table of claims about sources that fail.

        Args:
            contradicts: True for failures that contradict the source: mathematics as printed, or
                the source's protocol. False for those in another setting.
        """
        kinds = _REFUTING if contradicts else ("setting",)
        grid = [[*_FAILED]]
        for found, verdict in self._judged():
            if found.outcome(verdict) == "fails" and found.kind(verdict.claim) in kinds:
                value, printed = spell_numbers(found.study, verdict)
                printed = found.named("printed", verdict.claim) or printed
                value = "; ".join(filter(None, (rounded(value), found.means(verdict))))
                line = [found.link(self.published), verdict.claim.says, verdict.claim.source]
                line += [rounded(spell_compared(found.study, verdict.claim)), value]
                line += [spell_threshold(found.study, verdict.claim), printed, str(verdict.n)]
                grid.append([*line, found.variants(verdict) or DASH])
        return markdown_grid([[*line[:1], *map(escape_markdown, line[1:])] for line in grid])

    def turned(self) -> str:
        """Return a table of the claims whose verdict or sign differs in a variant of their study.

        A claim is listed if it holds or fails in a variant and has another verdict in the study, or
        if it is decided in the study and its value has the other sign, or lies on the other side of
        the threshold, in a variant. A claim that
        only becomes undecided is not listed.
        """
        header = ["study", "claim", "comparison", "verdict", "value", "n", "learning rate"]
        grid = [[*header, "other settings"]]
        for found, verdict in self._judged():
            told, is_decided = found.variants(verdict), verdict.verdict in {"holds", "fails"}
            if _DECIDED.search(told) or (is_decided and (_SIGN in told or _SIDE in told)):
                value = rounded(spell_numbers(found.study, verdict)[0])
                compared = rounded(spell_compared(found.study, verdict.claim))
                line = [found.link(self.published), verdict.claim.says, compared]
                line += [verdict.verdict, value]
                grid.append([*line, str(verdict.n), found.rates(verdict) or DASH, told])
        return markdown_grid([[*line[:1], *map(escape_markdown, line[1:])] for line in grid])

    def _names(self) -> Iterator[str]:
        for name, section in entries().items():
            if name != "sentences":
                yield from section

    def _judged(self) -> Iterator[tuple["Asked", Verdict]]:
        """Yield each claim of the published studies with its study and its present verdict."""
        for name in self._names():
            found = self._of(name)
            if found.report is not None:
                yield from ((found, verdict) for verdict in found.verdicts)

    def _of(self, name: str) -> "Asked":
        if name not in self._asked:
            report = latest_report(self.published, name)
            self._asked[name] = Asked(study=load_study(name), report=report)
        return self._asked[name]

    def _waiting(self, found: "Asked") -> Iterator[tuple[str, ...]]:
        """Yield the rows of a study without a report: one per sentence, evidence and setting.

        Claims without a sentence share a row if they have the same source.
        """
        groups: dict[tuple[str, str, str, tuple[str, ...]], list[Claim]] = {}
        for claim in found.study.claims:
            says, kind = found.states(claim), found.kind(claim)
            place = claim.source if says == DASH else ""
            groups.setdefault((says, kind, place, found.differs(claim)), []).append(claim)
        for (says, kind, *_), claims in groups.items():
            told = "; ".join(claim.says for claim in claims)
            sources = "; ".join(dict.fromkeys(claim.source for claim in claims))
            yield (
                escape_markdown(says),
                f"`{found.study.name}`",
                escape_markdown(f"needs a GPU or other data: {told}"),
                escape_markdown(sources),
                DASH,
                DASH,
                DASH,
                KINDS[kind],
                "**not run**",
                DASH,
                f"{len(found.study.seeds)} planned",
                self._differs(found, claims),
                found.planned_rates(claims),
            )

    def _cells(self, found: "Asked", verdict: Verdict) -> tuple[str, ...]:
        study, claim, outcome = found.study, verdict.claim, found.outcome(verdict)
        kind = found.kind(claim)
        value, printed = spell_numbers(study, verdict)
        printed = found.named("printed", claim) or printed
        equal = "all seeds equal" if found.is_equal(verdict) else ""
        measured = filter(None, (rounded(value), equal, found.means(verdict)))
        told = filter(None, (found.rates(verdict), found.variants(verdict)))
        flag = ", **contradicts its source**" if outcome == "fails" and kind in _REFUTING else ""
        cells = (
            claim.says, claim.source, rounded(spell_compared(study, claim)),
            rounded(spell_threshold(study, claim)), printed, KINDS[kind],
        )  # fmt: skip
        return (
            escape_markdown(found.states(claim)),
            found.link(self.published),
            *map(escape_markdown, cells),
            f"**{outcome}**{flag}{found.late(claim)}",
            escape_markdown("; ".join(measured)),
            f"{verdict.n} networks" if claim.that.together else str(verdict.n),
            self._differs(found, [claim], claim.that.readout),
            escape_markdown(", ".join(told)) or DASH,
        )

    def _differs(
        self, found: "Asked", claims: Sequence[Claim], readout: ClaimReadout | None = None
    ) -> str:
        """Return the setting of claims, its differences from the source, and links to studies.

        The differences are the same for all of the claims.
        """
        arms = [arm for claim in claims for arm in claim.that.arms]
        study = found.study.readout
        read = "" if study == Last() or readout not in (None, study) else str(study)
        told = [found.setting(arms), read, *found.differs(claims[0])]
        text = escape_markdown("; ".join(filter(None, told)))
        for key, words in (("see", "see"), ("instead", "**corrected by**")):
            if other := found.entry.get(key):
                text += f"; {words} {self._of(other).link(self.published)}"
        return text or DASH


@cache
def entries() -> Mapping[str, Any]:
    """Return the content of `answers.yaml`."""
    found: dict[str, Any] = yaml.safe_load(ENTRIES.read_text(encoding="utf-8"))
    return found


def entry_of(study: str) -> Mapping[str, Any]:
    """Return the entry of a study in `answers.yaml`."""
    found: Mapping[str, Any] = next(part[study] for part in entries().values() if study in part)
    return found


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A bundled study on the page of statements, and its published report; None if it has none."""

    study: Study
    report: Published | None

    @cached_property
    def entry(self) -> Mapping[str, Any]:
        """The entry of the study in `answers.yaml`."""
        found = entry_of(self.study.name)
        for begins in (*found.get("but", {}), *found.get("printed", {})):
            self.verdict(begins)
        return found

    def states(self, claim: Claim) -> str:
        """Return the sentence of the source that a claim tests; a dash if it tests none.

        Raises:
            KeyError: If `answers.yaml` has no sentence for a claim about a source.
        """
        if self.kind(claim) not in _OF_A_SOURCE:
            return DASH
        here = self._stated(claim, self.entry["states"])
        other = self.entry.get("as")
        return f"{self._stated(claim, entry_of(other)['states'])}; here {here}" if other else here

    def _stated(self, claim: Claim, states: str | Mapping[str, str]) -> str:
        """Return the sentence of `states` for a claim."""
        if isinstance(states, str):
            return states
        text = f"{claim.says} ({claim.source})"
        found = next((says for words, says in states.items() if re.search(words, text)), None)
        if found is None:
            raise KeyError(
                f"{self.study.name}: `states` in answers.yaml has no sentence for the claim "
                f"{claim.says!r}; add one, or name its kind in `but`"
            )
        return found

    def differs(self, claim: Claim) -> tuple[str, ...]:
        """How a claim differs from its source, by the entry of the page and the study file."""
        told = _differs(self.entry, f"{claim.says} ({claim.source})")
        return tuple(filter(None, (told, *self.study.differs)))

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of the study's claims, judged by the present rules, in the study's order."""
        return verdicts_of_today(self.study, self.report)

    def outcome(self, verdict: Verdict) -> str:
        """Return the verdict as text, or that the runs are missing or outdated."""
        return spell_outcome(verdict, self.report, self.study)

    def late(self, claim: Claim) -> str:
        """Return a note on a claim that was stated after some of its runs; empty for others."""
        when = self.report.stated(claim, self.study) if self.report is not None else ""
        return f", stated {when}" if when.startswith("after") else ""

    def kind(self, claim: Claim) -> str:
        """Return the kind of evidence of a claim, a key of `KINDS`."""
        earlier = self.study.claims[: self.study.claims.index(claim)]
        if claim_test(self.study, claim) in {claim_test(self.study, c) for c in earlier}:
            return "mirrored"
        own = self.named("but", claim)
        if own is None and _OWN.search(claim.source):
            return "own" if self.entry["evidence"] != "check" else "check"
        found: str = own or self.entry["evidence"]
        return found

    def named(self, key: str, claim: Claim) -> str | None:
        """Return what an entry such as `but` says on a claim, by its first words."""
        told: Mapping[str, str] = self.entry.get(key, {})
        return next((told[begins] for begins in told if claim.says.startswith(begins)), None)

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

    def setting(self, arms: Iterable[str]) -> str:
        """Dataset, network, optimizer and length of training of some arms, as text.

        Without images it is the last position on the axis of the problem, from the report, after
        the number of classes and the dimension of data made of patches.
        """
        told, axis = [], self.study.problem.axis
        is_last = self.study.readout == Last()
        ended = {run["arm"]: run for run in self.report.runs} if self.report and is_last else {}
        for arm in arms:
            config = self.study.arms[arm]
            flat = flatten(config)
            data = self.study.problem.presentation.setting(config, "train/error")
            if data and "model.name" in flat:
                told.append(f"{data}{_training(flat)}, {config.epochs} epochs")
            elif axis.metric and (last := ended.get(arm, {}).get(axis.metric)):
                label = self.entry.get("axis", axis.label)
                told.append(f"{_patches(flat)}{label} {_short(float(last))}")
        return " and ".join(dict.fromkeys(told))

    def planned_rates(self, claims: Iterable[Claim]) -> str:
        """Return the learning-rate schedules of claims and of the study's variants, as text.

        Problems without learning rates have a dash.
        """
        told = [self._schedules(arm for claim in claims for arm in claim.that.terms)]
        other = self._schedules(self.study.beside)
        told += [f"{other} as another setting"] if other not in {"", *told} else []
        return "; ".join(filter(None, told)) or DASH

    def means(self, verdict: Verdict) -> str:
        """Return the means of the compared arms, and of ERM in the same setting, as text.

        The text is empty for values that are not in `runs.csv`.
        """
        claim = verdict.claim
        compared = list(claim.that.terms)
        beside = [arm for arm in self.study.arms if arm not in compared and self._is_erm(arm)]
        beside = [a for a in beside if any(self._trained(a) == self._trained(b) for b in compared)]
        if any(map(self._is_erm, compared)):
            beside = []
        values = {} if self.report is None else self.report.values(claim, self.study)
        known = [arm for arm in (*compared, *beside) if arm in values]
        if verdict.value is None or not set(compared) <= values.keys() or len(known) < 2:
            return ""
        seeds = set.intersection(*(set(values[arm]) for arm in compared))
        scale = metric_of(self.study, claim).scale
        return ", ".join(
            f"{arm} {_short(scale * fmean(v for s, v in values[arm].items() if s in seeds))}"
            for arm in known
        )

    def is_equal(self, verdict: Verdict) -> bool:
        """Return whether each compared arm has the same value at all seeds, to rounding."""
        values = {} if self.report is None else self.report.values(verdict.claim, self.study)
        terms = [list(values.get(arm, {}).values()) for arm in verdict.claim.that.terms]
        return verdict.n > 1 and all(
            found and max(found) - min(found) <= ROUNDING * max(map(abs, found)) for found in terms
        )

    def _is_erm(self, arm: str) -> bool:
        flat = flatten(self.study.arms[arm])
        law, schedule = (flat.get(f"mix.{key}", flat.get(key)) for key in ("law", "schedule"))
        is_plain = flat.get("objective", "plain") == "plain" and not flat.get("loss.smoothing")
        return law == "erm" and schedule is None and is_plain

    def _trained(self, arm: str) -> Mapping[str, Any]:
        """Return the settings of an arm except for how it mixes."""
        flat = flatten(self.study.arms[arm])
        return {key: value for key, value in flat.items() if key.split(".")[0] not in _MIXING}

    def link(self, published: Path) -> str:
        """Return a link to the published report of this study; its name if there is none."""
        if self.report is None or self.report.folder is None:
            return f"`{self.study.name}`"
        return f"[{self.study.name}]({self.report.folder.relative_to(published).as_posix()}/)"

    def variants(self, verdict: Verdict) -> str:
        """Return, as text, how the study's variants change a verdict; empty if they do not."""
        if self.report is None or self.outcome(verdict) not in {verdict.verdict, verdict.spelled}:
            return ""
        told = self.report.row_of(verdict.claim, self.study).get("variants") or ""
        that = verdict.claim.that
        has_threshold = bool(that.middle) or that.factor is not None
        return told.replace(_SIGN, _SIDE) if has_threshold else told

    def rates(self, verdict: Verdict) -> str:
        """Return the learning-rate schedules of a claim's arms; empty for problems without them."""
        return self._schedules(verdict.claim.that.terms)

    def _schedules(self, arms: Iterable[str]) -> str:
        names = {str(flatten(self.study.arms[arm]).get("lr_schedule", "")) for arm in arms}
        return ", ".join(sorted(filter(None, names)))


def _differs(entry: Mapping[str, Any], claim: str) -> str:
    """Return the parts of an entry's `differs` that are about a claim, given as text."""
    told = entry.get("differs", "")
    if not isinstance(told, str):
        told = "; ".join(says for words, says in told.items() if re.search(words, claim))
    if other := re.match(r"as `([a-z0-9-]+)`", told):
        told = _differs(entry_of(other[1]), claim) + told.removeprefix(other[0])
    return told


def _training(flat: Mapping[str, Any]) -> str:
    """Return pooling, augmentation, network, optimizer and batch size of a run, as text."""
    pool, augment = flat.get("data.pool", 1), flat.get("data.augment", "none")
    told = [f"means over {pool}x{pool} pixels"] if pool > 1 else []
    told += [str(augment)] if augment != "none" else []
    momentum, decay = flat.get("optimizer.momentum"), flat.get("optimizer.weight_decay")
    optimizer = f"{flat['optimizer.name']} {flat['optimizer.lr']:.3g}"
    optimizer += f" momentum {momentum:g}" if momentum else ""
    optimizer += f" decay {decay:.3g}" if decay else ""
    told += [flat["model.name"], optimizer, f"batch {flat['batch_size']}"]
    return "".join(f", {part}" for part in told)


def _short(value: float) -> str:
    """Return whole numbers in full, other numbers with four digits."""
    return f"{value:.0f}" if value.is_integer() and value < 1e6 else f"{float(f'{value:.4g}'):g}"


def _patches(flat: Mapping[str, Any]) -> str:
    """Return classes k, points, neurons and dimension d of patches, as text; empty elsewhere."""
    if "network.init" not in flat:
        return ""
    classes = flat["data.classes"]
    exponent = 2 * math.log(classes / (flat["network.init"] * flat["network.rho"]), classes)
    points, neurons = (classes * flat[key] for key in ("data.points_per_class", "network.neurons"))
    told = f"{classes} classes, {points} points, {neurons} neurons per class"
    return f"{told}, d = k^{exponent:.1f}, "


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
