"""Readers of claims, of the numbers quoted from papers, and of the settings that vary claims.

Claims and quoted numbers refer to arms and metrics of the study by name.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mixup_core.config.building import with_values
from mixup_core.config.written_forms import flatten
from mixup_core.keys import run_key
from mixup_core.problem import Config, DataError, Metric, Problem, with_named_teacher
from mixup_core.rules import RuleError
from sweeps.reading.grid_reader import arm_name
from sweeps.reading.strict_yaml import REFUSED, At
from sweeps.reading.tree_reader import TreeReader
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.readouts import (
    VALIDATION,
    Averaged,
    ByValidation,
    ClaimReadout,
    Readout,
    of_predictions,
)
from sweeps.study.search import confirming
from sweeps.study.study import Variant, value_key

_MOST_NAMED = 5
"""Largest number of arms that a message lists."""


@dataclass(frozen=True, kw_only=True)
class ClaimsReader:
    """Reads the claims of a study file and the numbers it quotes from papers; reports faults."""

    read: TreeReader
    problem: Problem
    arms: Mapping[str, Config] | None
    """The arms of the study; None if they have faults, so that no name is checked."""
    listed: Mapping[str, str]
    """Name of each arm in the file, by its name with the values of its grid point."""
    fitted: Callable[[Config], tuple[Config, list[RuleError | DataError]]]
    """Returns a configuration with the facts of its data, and the reasons why a run would fail."""
    readout: Readout
    """The read-out of the study."""
    seeds: Sequence[int]
    """The seeds at which claims are judged: those of the confirmation, or else of the study."""
    is_searched: bool
    is_confirmed: bool
    has_looks: bool

    def check_arm(self, at: At, name: str) -> None:
        """Report a fault in the study file if no arm has the given name."""
        if self.arms is not None and name not in self.arms:
            text = f"names no arm of the study, got {name!r}"
            written = name.partition(" ")[0]
            of_grid = [arm for arm in self.arms if self.listed[arm] == written]
            if of_grid:
                more = f" and {len(of_grid) - _MOST_NAMED} more" if of_grid[_MOST_NAMED:] else ""
                text += f"; its grid points are {', '.join(of_grid[:_MOST_NAMED])}{more}"
            self.read.report(at, text, "" if of_grid else name, self.arms)

    def references(self, written: Any) -> dict[str, dict[str, float]]:
        """Return the numbers that papers print for the study's arms, by arm and metric."""
        for arm in self.read.mapping(written, ("references",)):
            self.check_arm(("references", arm), arm)
        return self._published("references", written)

    def untrained(self, written: Any) -> dict[str, dict[str, float]]:
        """Return the numbers that papers print for methods not trained here, by name and metric."""
        for name in self.read.mapping(written, ("untrained",)):
            if not name.isprintable():
                text = (
                    f"must be one line without control or text-direction characters, got {name!r}"
                )
                self.read.report(("untrained", name), text)
            if self.arms is not None and name in self.arms:
                text = "names an arm of the study; write its numbers under `references`"
                self.read.report(("untrained", name), text)
        return self._published("untrained", written)

    def _published(self, key: str, written: Any) -> dict[str, dict[str, float]]:
        published: dict[str, dict[str, float]] = {}
        for name, row in self.read.mapping(written, (key,)).items():
            at = (key, name)
            published[name] = {}
            for metric, number in self.read.mapping(row, at).items():
                self._check_metric((*at, metric), metric)
                value = self.read.value(float, number, (*at, metric))
                published[name][metric] = value
                shown = self.problem.metrics.get(metric)
                if value is not REFUSED and shown is not None and not shown.allows(value):
                    least, most = shown.bounds
                    text = f"must be in [{least:g}, {most:g}], got {value:g}"
                    self.read.report((*at, metric), text + _hint(shown))
        return published

    def check_equivalence(self, margin: float | None, metric: str) -> None:
        """Report a margin that holds every possible difference of the headline metric."""
        shown = self.problem.metrics.get(metric)
        if margin is None or shown is None:
            return
        least, most = shown.bounds
        if margin >= most - least:
            text = f"must be below {most - least:g}, the largest difference of {shown.label}"
            self.read.report(("equivalence",), f"{text}, got {margin:g}{_hint(shown)}")

    def claims(self, written: Any) -> tuple[Claim, ...]:
        """Return the claims of the study; report a fault for each claim that is not valid."""
        claims = []
        for at, words in self.read.filled(written, ("claims",), "claim").items():
            claim = self.read.value(Claim, words, at)
            if claim is not REFUSED:
                claims.append(claim)
                self._check(at, claim.that)
        return tuple(claims)

    def _check(self, at: At, claim: StatedComparison) -> None:
        problem, arms = self.problem, self.arms or {}
        for arm in claim.arms:
            self.check_arm(at, arm)
        compared = [arms[arm] for arm in claim.arms if arm in arms]
        if len({problem.comparing.population(config, claim.metric) for config in compared}) > 1:
            text = f"{' and '.join(claim.arms)} are measured on different data"
            self.read.report(at, f"{text}, so they cannot be compared")
        if claim.metric not in problem.measuring.predicted:
            self._check_metric(at, claim.metric)
            if claim.metric == problem.axis.metric:
                text = f"the configuration decides {claim.metric}, so no run can contradict a claim"
                self.read.report(at, f"{text} about it; claim a metric that runs measure")
        elif claim.readout is not None:
            fault = f"{claim.metric} is computed at the last epoch only; remove `readout`"
            self.read.report(at, fault)
        if self.has_looks and (claim.together or claim.of):  # later seeds would change past looks
            cause = "`together`, because ensembles use" if claim.together else "variances; they use"
            text = f"a study with `until: decided` cannot judge {cause} "
            self.read.report(at, f"{text}all seeds; write `seeds` as a number or a list")
        if claim.together and "scaled_" in claim.metric:
            population, at_seed = problem.comparing.population, problem.randomness.at_seed
            of_seeds = [at_seed(config, seed) for config in compared for seed in self.seeds]
            if len({population(config, VALIDATION) for config in of_seeds}) > 1:
                text = "each seed holds out other validation images, so no ensemble has a "
                text += "temperature; set data.val_size, or claim a metric without `scaled_`"
                self.read.report(at, text)
        is_lead = claim.metric in problem.headline  # others may be measured more or less often
        if claim.readout is not None and (is_lead or isinstance(claim.readout, ByValidation)):
            self.check_readout(at, claim.readout, of=claim.arms)
        # For these, `check_readout` counts the evaluations.
        number = 1 if is_lead else None
        self._check_numbers(at, claim, arms, self._readout_of(claim, self.readout), number)

    def _readout_of(self, claim: StatedComparison, of_study: Readout) -> ClaimReadout:
        """Return the read-out of a claim's numbers in a study with a given read-out."""
        if claim.metric in self.problem.measuring.predicted:
            return of_predictions(of_study)
        return claim.readout or of_study

    def _check_numbers(
        self,
        at: At,
        claim: StatedComparison,
        arms: Mapping[str, Config],
        readout: ClaimReadout,
        number: int | None = None,
    ) -> None:
        """Report a claim whose verdict is known, or cannot be known, for given arms and a read-out.

        `number` is that of the last records that must have the metric; None for all that are read.
        """
        self._check_bounds(at, claim, arms, readout)
        self._check_records(at, claim, arms, readout, number)
        self._check_selection(at, claim.metric, readout)

    def _check_selection(self, at: At, metric: str, readout: ClaimReadout) -> None:
        """Report a metric of the images that also select the epoch at which it is read out."""
        if isinstance(readout, ByValidation) and metric.startswith("val/"):
            text = f"{readout} is chosen by the validation images, so {metric} would be too good"
            self.read.report(at, f"{text} for every arm; use another `readout`")

    def _check_bounds(
        self, at: At, claim: StatedComparison, arms: Mapping[str, Config], readout: ClaimReadout
    ) -> None:
        """Report a claim whose verdict is known without training."""
        terms = claim.merged(self._same(claim, arms, readout))
        if not terms:
            text = (
                f"{' and '.join(claim.arms)} have equal results at every seed, so {claim.metric} "
            )
            self.read.report(at, f"{text}cannot differ; compare arms that train differently")
            return
        metric = self.problem.metric(claim.metric)
        least, most = readout.bounds(*metric.bounds)
        verdict = claim.settled(least, most, terms)
        if verdict is None:
            return
        how_read = f", {claim.readout}," if claim.readout is not None else ""
        ends = [
            f"{word} {end * metric.scale:g}{' ' * bool(metric.unit)}{metric.unit}"
            for word, end in (("at least", least), ("at most", most)) if math.isfinite(end)
        ]  # fmt: skip
        numbers = (claim.number, claim.margin)
        is_percent = any(abs(number or 0.0) > most for number in numbers)
        says = {
            "holds": "cannot fail",
            "fails": "cannot hold",
            "undecided": "cannot hold: no confidence interval lies wholly at a bound",
        }[verdict]
        self.read.report(
            at,
            f"the claim {says}, for {metric.label}{how_read} is {' and '.join(ends)} in every run; "
            "compare with another arm, or write a number inside the bounds or a margin"
            + (_hint(metric) if is_percent else ""),
        )

    def _same(
        self, claim: StatedComparison, arms: Mapping[str, Config], readout: ClaimReadout
    ) -> Mapping[str, str]:
        """Return, for each arm of a claim, the first arm of the claim that has equal results."""
        first: dict[tuple[str, bool], str] = {}
        equal_arms = {}
        for arm in claim.arms:
            if (config := arms.get(arm)) is not None:
                named = with_named_teacher(config)
                key = value_key(self.problem, named, claim.metric, readout)
                equal_arms[arm] = first.setdefault((key, arm in claim.together), arm)
        return equal_arms

    def _check_records(
        self,
        at: At,
        claim: StatedComparison,
        arms: Mapping[str, Config],
        readout: ClaimReadout,
        number: int | None,
    ) -> None:
        """Report a claim about a metric that the runs of one of its arms do not record."""
        problem = self.problem
        is_reported = claim.metric not in problem.metrics
        if claim.metric in problem.measuring.predicted:
            is_reported = claim.readout is not None
        if is_reported:
            return
        for arm in claim.arms:
            config = arms.get(arm)
            if config is not None and (lacks := self._lacks(config, claim.metric, readout, number)):
                text = f"arm {arm} records no {readout.recorded(claim.metric)}, so the claim can"
                self.read.report(at, f"{text} never be decided: {lacks}")
                return

    def _lacks(
        self, config: Config, metric: str, readout: ClaimReadout, number: int | None = None
    ) -> str | None:
        """Return why runs do not record a metric where it is read out; None if they do.

        `number` is that of the last records that must have it; None for all that are read out.
        """
        measuring, name = self.problem.measuring, readout.recorded(metric)
        if name not in self.problem.metrics and metric not in measuring.predicted:
            return "no run records this metric"
        if number is None:  # the validation error can select any record
            is_any = isinstance(readout, ByValidation)
            number = self.problem.cost.evaluations(config) if is_any else readout.evaluations
        if not self.is_searched:
            return measuring.missing(config, name, number, self.seeds)
        in_search, confirmed = (
            measuring.missing(of, name, number, self.seeds) for of in (config, confirming(config))
        )
        lacks, has_other = in_search, not confirmed
        hint = "only a confirmation of the search does; set search.confirm"
        if self.is_confirmed:
            lacks, has_other = confirmed, not in_search
            hint = "the confirmation of the search does not"
        return hint if lacks and has_other else lacks

    def check_headline(self, at: At, metric: str) -> None:
        """Report a fault if some arm does not record the headline metric where it is read out."""
        if metric in self.problem.measuring.predicted:
            text = f"{metric} is computed from predictions, and is not recorded at each evaluation"
            self.read.report(at, f"{text}; name a recorded metric, such as test/accuracy")
            return
        if metric not in self.problem.metrics:
            self._check_metric(at, metric)
            return
        self._check_selection(at, metric, self.readout)
        name = self.readout.recorded(metric)
        for arm, config in (self.arms or {}).items():
            if lacks := self._lacks(config, metric, self.readout):
                self.read.report(at, f"arm {arm} does not record {name}: {lacks}")
                return

    def check_default_headline(self) -> None:
        """Report a fault if no arm records a metric by which the problem compares arms."""
        pairs = [(m, c) for m in self.problem.headline for c in (self.arms or {}).values()]
        missing = self.problem.measuring.missing
        reasons = [missing(config, metric, 1, self.seeds) for metric, config in pairs]
        if reasons and None not in reasons:
            text = f"no arm records {pairs[0][0]}, by which arms are compared: {reasons[0]}"
            self.read.report(("headline",), f"{text}, or write another metric here")

    def check_readout(
        self, at: At, readout: ClaimReadout, of: Collection[str] | None = None
    ) -> None:
        """Report the first arm that has too few evaluations, or lacks images, for a read-out."""
        for name, config in (self.arms or {}).items():
            if of is not None and name not in of:
                continue
            if isinstance(readout, ByValidation):
                for metric, images in ((VALIDATION, "validation"), ("test/error", "test")):
                    is_recorded = metric in self.problem.metrics
                    if not is_recorded or self.problem.measuring.lacks(config, metric, 1):
                        text = f"{readout} needs {images} images, and arm {name} has none"
                        hint = "; set data.val_size or data.folds" if images == "validation" else ""
                        self.read.report(at, f"{text}{hint}")
                        return
            if isinstance(readout, Averaged) and of is None:
                lacks = [self._lacks(config, lead, readout, 1) for lead in self.problem.headline]
                if None not in lacks:
                    self.read.report(at, f"arm {name} has no {readout}: {lacks[0]}")
                    return
            if (number := self.problem.cost.evaluations(config)) < readout.evaluations:
                needed = f"needs {readout.evaluations} evaluations"
                text = f"{readout} {needed}, and arm {name} has {number}"
                self.read.report(at, text)
                return

    def _check_metric(self, at: At, name: str) -> None:
        """Report a fault if the problem has no metric with this name."""
        if name not in self.problem.metrics:
            names = [*self.problem.metrics, *self.problem.measuring.predicted]
            self.read.report(at, f"names no metric of the problem, got {name!r}", name, names)

    def variants(
        self, written: Any, claims: Sequence[Claim]
    ) -> tuple[tuple[Variant, ...], dict[str, Config]]:
        """Return the variants, and the arms to train for them: none for another read-out."""
        variants: list[Variant] = []
        extra_arms: dict[str, Config] = {}
        at: At = ("sensitivity",)
        if written is REFUSED:
            return (), {}
        if not claims:
            self.read.report(at, "the study has no claims to judge; leave this section out")
            return (), {}
        arms = self.arms or {}
        claimed = {arm: arms[arm] for claim in claims for arm in claim.that.arms}
        names = {run_key(with_named_teacher(config)): arm for arm, config in arms.items()}
        for name, values in self.read.mapping(written, at).items():
            key_at = (*at, name)
            path = name if name == "readout" else self.read.known(name, key_at)
            for place, value in self.read.filled(values, key_at, "value").items() if path else ():
                if path == "readout":
                    readout = self.read.value(Readout, value, place)
                    if readout is not REFUSED:
                        self.check_readout(place, readout)
                        self._check_varied(place, claims, claimed, readout)
                        same = dict(zip(claimed, claimed, strict=True))
                        variants.append(Variant(label=str(readout), arms=same, readout=readout))
                    continue
                setting = self.read.setting(path, value, place).value
                changed = self._changed(claimed, path, setting, place)
                self._check_varied(place, claims, changed, self.readout)
                varied = {}
                for arm, config in changed.items():
                    key = run_key(with_named_teacher(config))
                    new_value = {path: flatten(config).get(path, setting)}
                    if key not in names:
                        names[key] = arm_name(arm, new_value)
                        extra_arms[names[key]] = config
                    varied[arm] = names[key]
                if any(arm != other for arm, other in varied.items()):
                    variants.append(Variant(label=arm_name("", new_value), arms=varied))
        return tuple(variants), extra_arms

    def _check_varied(
        self, at: At, claims: Sequence[Claim], arms: Mapping[str, Config], of_study: Readout
    ) -> None:
        """Report a claim that no run can decide under a variant."""
        for claim in (claim.that for claim in claims if arms):
            self._check_numbers(at, claim, arms, self._readout_of(claim, of_study))

    def _changed(
        self, arms: Mapping[str, Config], path: str, setting: Any, at: At
    ) -> dict[str, Config]:
        """Return arms with one value changed; none, after a report, if one of them refuses it."""
        changed: dict[str, Config] = {}
        for arm, config in arms.items() if setting is not REFUSED else ():
            faults: list[RuleError | DataError]
            try:
                changed[arm], faults = self.fitted(with_values(config, {path: setting}))
            except RuleError as error:
                faults = [error]
            if faults:
                self.read.report(at, f"{arm}: {faults[0]}")
                return {}
        return changed


def _hint(metric: Metric) -> str:
    """Return how a study file writes values that are shown in percent; empty for others."""
    return "; a study file has fractions: write 0.1 for 10 %" if metric.unit == "%" else ""
