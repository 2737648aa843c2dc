"""Study: arms that are compared at the same seeds, as a plain value without YAML or Ray."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from mixup_core.config.parts import leaves
from mixup_core.config.written_forms import flatten
from mixup_core.keys import run_key, stage_keys
from mixup_core.problem import Config, Problem, problem_of
from sweeps.study.budget import Budget
from sweeps.study.claims import Claim, UntilDecided
from sweeps.study.readouts import Averaged, ClaimReadout, Last, Readout
from sweeps.study.search import AddedArm, Point, Search, confirming, name_of_confirmation


def headlines(problem: Problem, lead: str | None) -> tuple[str, ...]:
    """Return the metrics that may be a study's headline, the first choice first."""
    return problem.headline if lead is None else (lead, *problem.headline)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One configuration with one seed, to train once, and its arm in a study."""

    arm: str
    config: Config
    """The complete configuration, including the seed."""
    teacher: Config | None = None
    """Configuration of the finished run that this one learns from; None without a teacher."""

    @property
    def seed(self) -> int:
        return self.config.seed

    @cached_property
    def key(self) -> str:
        """Key of the run: a hash of everything that decides its numbers."""
        return run_key(self.config)


def value_key(problem: Problem, config: Config, metric: str, readout: ClaimReadout) -> str:
    """Return the key of all that decides a metric of a run where it is read out.

    Configurations with equal keys have equal values, so that a comparison of them says nothing.
    """
    is_last = isinstance(readout, Last | Averaged)
    name = readout.recorded(metric)
    seen = problem.measuring.observed(config, name) if is_last else config
    return stage_keys(seen)[-1]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """An alternative setting under which the claims of a study are judged again."""

    label: str
    """Name in captions, such as `lr_schedule=cosine`."""
    arms: Mapping[str, str]
    """Name of the arm that differs only in this setting, by name of the original arm."""
    readout: Readout | None = None
    """Another read-out of the same runs; None for the read-out of the study."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """Arms to compare, the seeds to train them at, claims to test, and perhaps a search."""

    name: str
    """Name of the study and of its MLflow experiment: lower-case letters, digits and hyphens."""
    description: str
    arms: Mapping[str, Config]
    """Configuration of each arm, in the order of the file; every grid point is an arm. The seed in
    these configurations has no meaning."""
    seeds: tuple[int, ...]
    """Distinct seeds; every arm is trained at each."""
    baseline: str
    """The arm that the others are compared with."""
    source: str
    """The study file as YAML, with overrides applied; stored in `provenance.json`."""
    search: Search | None = None
    """Search in addition to the arms; its points become arms when they are proposed (`grown`)."""
    readout: Readout = field(default_factory=Last)
    """Read-out: how the number of a run in tables and claims is computed."""
    lead: str | None = None
    """The `headline` metric in the study file; None for the default."""
    claims: tuple[Claim, ...] = ()
    """Sentences of papers that the study tests, in the order of the study file."""
    references: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Published values by arm and metric, in the unit of the metric."""
    untrained: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Published values of methods that the study does not train, by name and metric."""
    differs: tuple[str, ...] = ()
    """Differences between this study and the source of the references, one sentence each."""
    equivalence: float | None = None
    """Differences of the headline metric below this value count as equivalent, in its unit; None if
    not set."""
    variants: tuple["Variant", ...] = ()
    """Alternative settings under which the claims are judged again (`sensitivity:`)."""
    beside: tuple[str, ...] = ()
    """Arms that are trained only for variants, or as teachers; they are not in tables of arms."""
    budget: Budget = field(default_factory=Budget)
    """Limit after which no further seed starts (`sweeps.state.results.ended_on_budget`); empty for
    a search, which has its own."""
    until: UntilDecided | None = None
    """Looks at which seeds are added until claims are decided; None: every arm gets all seeds."""
    reached: Mapping[str, int] = field(default_factory=dict)
    """Number of `seeds` that each arm has by now; absent arms have all seeds."""
    added: Mapping[str, AddedArm] = field(default_factory=dict)
    """Arms that the search added: first its points, then the arms of its confirmation."""
    folder: str = field(default="", compare=False)
    """Folder that relative paths of the study file start from."""
    plugins: tuple[str, ...] = field(default=(), compare=False)
    """Plugin files that the study file names, relative to its folder."""
    codes: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Grid values that arm names show as a code (long or non-ASCII texts), by code."""
    outside: Mapping[str, Config] = field(default_factory=dict)
    """Arms of the full study that this part (`part`) leaves out; they may be teachers."""

    @property
    def problem(self) -> Problem:
        return problem_of(next(iter(self.arms.values())))

    @property
    def headline(self) -> str:
        """The metric by which arms are compared: the first that an arm has, `lead` before others.

        Runs of a search lack a `lead` that only its confirmation measures.
        """
        problem = self.problem
        metrics = headlines(problem, self.lead)
        for metric in metrics:
            if any(problem.measuring.lacks(c, metric, 1) is None for c in self.arms.values()):
                return metric
        return metrics[-1]

    def tags_of(self, arm: str) -> tuple[str, ...]:
        """Return the words with which tables and figures must mark an arm, such as `oracle`."""
        return self.problem.presentation.tags(self.arms[arm])

    def title_of(self, arm: str) -> str:
        """Return the name with which tables and figures show an arm: `bound [oracle]`."""
        return with_tags(arm, self.tags_of(arm) if arm in self.arms else ())

    def remarks(self) -> tuple[str, ...]:
        """Return remarks on the data, each once; one that only some arms have names them."""
        arms_of_remark: dict[str, list[str]] = {}
        for arm, config in self.arms.items():
            for remark in self.problem.presentation.remarks(config, self.seeds_of(arm)):
                arms_of_remark.setdefault(remark, []).append(arm)
        return tuple(
            remark if len(arms) == len(self.arms) else f"{remark} ({_listed(arms)})"
            for remark, arms in arms_of_remark.items()
        )

    def seeds_of(self, arm: str) -> tuple[int, ...]:
        """Return the seeds at which an arm is trained."""
        if arm in self.added:
            return self.added[arm].seeds
        return self.seeds[: self.reached.get(arm)]

    def runs(self) -> tuple[Run, ...]:
        """Return every run, seed by seed, then added arms one by one; more arms keep this order."""
        return self._runs

    def runs_of(self, arm: str) -> tuple[Run, ...]:
        """Return the runs of one arm, in the order of its seeds."""
        return tuple(self._runs_by_arm[arm])

    @cached_property
    def _runs(self) -> tuple[Run, ...]:
        together = [
            (arm, seed)
            for place, seed in enumerate(self.seeds)
            for arm in self.arms
            if arm not in self.added and place < self.reached.get(arm, len(self.seeds))
        ]
        joined = [(arm, seed) for arm, added in self.added.items() for seed in added.seeds]
        return tuple(self._run(arm, seed) for arm, seed in together + joined)

    def _run(self, arm: str, seed: int) -> Run:
        return self._taught(arm, self.problem.randomness.at_seed(self._known[arm], seed))

    def _taught(self, arm: str, config: Config) -> Run:
        """Return a run; if it has a teacher, its configuration names the teacher's stage key."""
        teaching = self.problem.teaching
        teacher_arm = None if teaching is None else teaching.arm(config)
        if teaching is None or teacher_arm is None:
            return Run(arm=arm, config=config)
        if arm in self.added and not self.added[arm].is_point:
            confirmed = name_of_confirmation(teacher_arm)
            teacher_arm = confirmed if confirmed in self._known else teacher_arm
        of_arm = self.problem.randomness.at_seed(self._known[teacher_arm], config.seed)
        teacher = self._taught(teacher_arm, teaching.apart(of_arm, config)).config
        config = teaching.taught(config, stage_keys(teacher)[-1])
        return Run(arm=arm, config=config, teacher=teacher)

    def taught_by(self) -> Mapping[str, str]:
        """Return, for each arm that learns, the arm whose run at the same seed is its teacher."""
        runs = {arm: self._run(arm, self.seeds[0]) for arm in self.arms}
        arms = {run.key: arm for arm, run in runs.items()}
        keys = {arm: run_key(run.teacher) for arm, run in runs.items() if run.teacher}
        return {arm: arms[key] for arm, key in keys.items() if key in arms}

    @cached_property
    def _known(self) -> Mapping[str, Config]:
        return {**self.outside, **self.arms}

    def teachers(self) -> frozenset[str]:
        """Return the last stage keys of teachers, also of points that are not yet proposed."""
        runs = [*self.runs()]
        if self.problem.teaching is not None and self.search is not None:
            points = map(self.search.config_of, self.search.space.corners())
            at_seed = self.problem.randomness.at_seed
            runs += [self._taught("", at_seed(p, seed)) for p in points for seed in self.seeds]
        return frozenset(stage_keys(run.teacher)[-1] for run in runs if run.teacher)

    @cached_property
    def _runs_by_arm(self) -> Mapping[str, list[Run]]:
        by_arm: dict[str, list[Run]] = {arm: [] for arm in self.arms}
        for run in self._runs:
            by_arm[run.arm].append(run)
        return by_arm

    @property
    def fixed(self) -> tuple[str, ...]:
        """The study's arms that are in its file; other arms were added by a search."""
        return tuple(arm for arm in self.arms if arm not in self.added)

    def keys_at(self, seed: int) -> Mapping[str, str]:
        """Return the run key of each arm at a seed; any seed may be given, used or not."""
        runs = replace(self, seeds=(seed,), added={}).runs()
        return {run.arm: run.key for run in runs}

    @cached_property
    def settings(self) -> str:
        """Hash (32 digits) of names and run keys of the file's arms, whatever the seeds are."""
        keys = self.keys_at(0)
        # Frozen: what is hashed. Earlier launches would count as those of other settings;
        # tests/contracts/test_homes.py fails.
        ids = " ".join(f"{arm} {keys[arm]}" for arm in self.fixed)
        return hashlib.sha256(ids.encode()).hexdigest()[:32]

    def points(self) -> tuple[str, ...]:
        return tuple(arm for arm, added in self.added.items() if added.is_point)

    def primary(self) -> "Study":
        """Return the study without the arms that are trained only for variants or as teachers."""
        if not self.beside:
            return self
        originals = self.confirmed()
        return self.part(arm for arm in self.arms if originals.get(arm, arm) not in self.beside)

    def under(self, variant: "Variant") -> "Study":
        """Return the study under a variant: arms keep their names but get the changed setting."""
        arms = {arm: self.arms[varied] for arm, varied in variant.arms.items()}
        claims = tuple(claim for claim in self.claims if arms.keys() >= set(claim.that.arms))
        part = self.part(variant.arms.values())
        return replace(
            part,
            arms=arms,
            claims=claims,
            readout=self.readout if variant.readout is None else variant.readout,
            baseline=self.baseline if self.baseline in arms else next(iter(arms)),
            references={},
            untrained={},
            variants=(),
            beside=(),
            reached={a: self.reached[v] for a, v in variant.arms.items() if v in self.reached},
        )

    def part(self, arms: Iterable[str]) -> "Study":
        """Return the study with only some of its arms, in the given order."""
        arms = tuple(arms)
        return replace(
            self,
            arms={arm: self.arms[arm] for arm in arms},
            baseline=self.baseline if self.baseline in arms else arms[0],
            added={arm: self.added[arm] for arm in arms if arm in self.added},
            reached={arm: self.reached[arm] for arm in arms if arm in self.reached},
            outside={**self.outside, **self.arms},
        )

    def grown(self, points: Iterable[Point], winner: Point | None = None) -> "Study":
        """Return the study with points of its search, and with its confirmation, as arms."""
        search = self.search
        assert search is not None, "points belong to a search"
        arms = dict(self.arms)
        added = {}
        for point in points:
            arms[point.arm] = search.config_of(point.values)
            added[point.arm] = AddedArm(seeds=self.seeds[: point.num_seeds])
        fresh = search.strategy.confirm_seeds
        for arm in () if winner is None else (*self.arms, winner.arm):
            name = name_of_confirmation(arm)
            arms[name] = confirming(arms[arm])
            added[name] = AddedArm(seeds=fresh, confirms=arm)
        return replace(self, arms=arms, added=added)

    def confirmation(self) -> "Study | None":
        """Return the confirmation as a study with original names of arms, if it was reached."""
        confirmed = self.confirmed()
        if self.search is None or not confirmed:
            return None
        return replace(
            self,
            arms={original: self.arms[arm] for arm, original in confirmed.items()},
            seeds=self.search.strategy.confirm_seeds,
            added={},
        )

    def judged(self) -> "Study":
        """Return the study on which claims are judged: a search's confirmation, begun or not."""
        if self.search is None or not self.search.strategy.confirm_seeds:
            return self
        arms = {arm: confirming(self.arms[arm]) for arm in self.fixed}
        planned = replace(self, arms=arms, seeds=self.search.strategy.confirm_seeds, added={})
        return self.confirmation() or planned

    def confirmed(self) -> Mapping[str, str]:
        """Return the original arm of each arm of the confirmation."""
        return {arm: a.confirms for arm, a in self.added.items() if a.confirms is not None}

    def winning_run(self) -> Run | None:
        """Return the best point's run at the first seed of the confirmation, not the best run."""
        points = set(self.points())
        of_points = (arm for arm, original in self.confirmed().items() if original in points)
        best = next(of_points, None)
        return None if best is None else self.runs_of(best)[0]

    def varying(self) -> tuple[str, ...]:
        """Return the dotted paths of the settings that differ between arms, in field order."""
        flats = [flatten(config) for config in self.arms.values()]
        paths = leaves(self.problem.config)
        return tuple(
            path
            for path in paths
            if path != "seed" and len({json.dumps(flat.get(path)) for flat in flats}) > 1
        )


_MOST_NAMED = 5
"""Maximum number of arms that a remark names."""


def with_tags(name: str, tags: Iterable[str]) -> str:
    """Return the name of an arm with its tags: `bound [oracle]` for an arm `bound`."""
    return " ".join([name, *(f"[{tag}]" for tag in tags)])


def _listed(arms: Sequence[str]) -> str:
    more = f" and {len(arms) - _MOST_NAMED} more" if len(arms) > _MOST_NAMED else ""
    return ", ".join(arms[:_MOST_NAMED]) + more


_MOST_RANGES = 12
"""Maximum number of ranges of seeds that a text lists."""


def spell_seeds(seeds: Iterable[int]) -> str:
    """Return `seeds 0-4` or `one seed (3)`; never counts up to a seed, which may be a hash."""
    ranges: list[list[int]] = []
    for seed in sorted(seeds):
        if ranges and seed == ranges[-1][1] + 1:
            ranges[-1][1] = seed
        else:
            ranges.append([seed, seed])
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return f"one seed ({ranges[0][0]})"
    parts = (str(low) if low == high else f"{low}-{high}" for low, high in ranges[:_MOST_RANGES])
    more = sum(high - low + 1 for low, high in ranges[_MOST_RANGES:])
    return f"seeds {', '.join(parts)}" + (f" and {more} more" if more else "")
