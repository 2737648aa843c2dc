"""Study: arms compared at the same seeds, as a value. No YAML, no Ray."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from mixup_core.keys import run_key, stage_keys
from mixup_core.problem import Config, Problem, problem_of
from mixup_core.tree.building import with_values
from mixup_core.tree.parts import leaves
from mixup_core.tree.written_forms import flatten
from sweeps.study.budget import Budget
from sweeps.study.claims import Claim
from sweeps.study.readouts import Last, Readout
from sweeps.study.search import CONFIRM, Point, Search, confirming
from sweeps.study.until_decided import UntilDecided


@dataclass(frozen=True, kw_only=True)
class Run:
    """One configuration trained once at one seed, and the place it has in a study."""

    arm: str
    config: Config
    """Complete, its seed included."""
    teacher: Config | None = None
    """The finished run that this one learns from; None if from none."""

    @property
    def seed(self) -> int:
        """Seed of the run; runs of different arms with one seed are paired."""
        return self.config.seed

    @cached_property
    def key(self) -> str:
        """The run's name (`mixup_core.keys.run_key`)."""
        return run_key(self.config)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One other setting under which the claims of a study are judged."""

    label: str
    """Name in captions: `lr_schedule=cosine`."""
    arms: Mapping[str, str]
    """Arm of a claim to the arm that differs from it in the setting alone."""
    readout: Readout | None = None
    """Another read-out of the same runs; None: that of the study."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """Arms and the seeds at which each is trained."""

    name: str
    """Lower-case letters, digits and hyphens; names the MLflow experiment."""
    description: str
    arms: Mapping[str, Config]
    """Arm to configuration, in the order of the file; grid points are arms of their own. The seed
    in a configuration here has no meaning."""
    seeds: tuple[int, ...]
    """Distinct; every arm is trained at each."""
    baseline: str
    """The arm that the others are compared with."""
    source: str
    """The study file as read, overrides applied, as YAML: what `provenance.json` keeps."""
    search: Search | None = None
    """Search beside the arms; its points become arms as they are proposed (`grown`)."""
    readout: Readout = field(default_factory=Last)
    """Read-out: the number of a run in tables and claims."""
    lead: str | None = None
    """The `headline` that the study file names."""
    claims: tuple[Claim, ...] = ()
    """Statements of the study's sources, in the order of the file."""
    references: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Arm to metric to the value that a paper prints, in the unit of the metric."""
    differs: tuple[str, ...] = ()
    """Differences from the source of the references, one sentence each."""
    equivalence: float | None = None
    """Differences of the headline metric below this count as none, in its unit; None: not said."""
    variants: tuple["Variant", ...] = ()
    """Variants under which the claims are judged again (`sensitivity:`)."""
    beside: tuple[str, ...] = ()
    """Arms that are trained for variants alone, and stand in no table of arms."""
    budget: Budget = field(default_factory=Budget)
    """Limit after which no more seeds begin (`sweeps.state.results.ended_on_budget`); of a search,
    none."""
    until: UntilDecided | None = None
    """Looks at which seeds are added while claims are open; None: every arm gets all seeds."""
    reached: Mapping[str, int] = field(default_factory=dict)
    """Arm to how many of `seeds` it gets by now; an arm that is absent gets all."""
    own_seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Arms that joined the study while it ran, in the order of joining, to the seeds they have
    instead of `seeds`."""
    folder: str = field(default="", compare=False)
    """Folder from which relative paths of the study file count."""
    outside: Mapping[str, Config] = field(default_factory=dict)
    """Arms of the study that this one is a part of, from which its own may learn (`part`)."""

    @property
    def problem(self) -> Problem:
        """The problem that the runs of the study solve."""
        return problem_of(next(iter(self.arms.values())))

    @property
    def headline(self) -> str:
        """The metric that arms are compared by: `lead`, or the first of the problem's measured."""
        problem = self.problem
        if self.lead is not None:
            return self.lead
        for metric in problem.headline:
            if any(problem.measures(config, metric) for config in self.arms.values()):
                return metric
        return problem.headline[-1]

    def tags_of(self, arm: str) -> tuple[str, ...]:
        """Return the tags of an arm for tables, figures and records (`Problem.tags`)."""
        return self.problem.tags(self.arms[arm])

    def remarks(self) -> tuple[str, ...]:
        """Return remarks on the data of the runs for plans and captions, each once."""
        found = (
            remark
            for arm, config in self.arms.items()
            for remark in self.problem.remarks(config, self.seeds_of(arm))
        )
        return tuple(dict.fromkeys(found))

    def seeds_of(self, arm: str) -> tuple[int, ...]:
        """Return the seeds at which an arm is trained."""
        return self.own_seeds.get(arm, self.seeds[: self.reached.get(arm)])

    def runs(self) -> tuple[Run, ...]:
        """Return every run, in an order in which an arm that joins changes no other's place.

        Seed by seed in the order of the arms, so that tables fill evenly; then, arm by arm, those
        that joined.
        """
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
            if arm not in self.own_seeds and place < self.reached.get(arm, len(self.seeds))
        ]
        joined = [(arm, seed) for arm, seeds in self.own_seeds.items() for seed in seeds]
        return tuple(self._run(arm, seed) for arm, seed in together + joined)

    def _run(self, arm: str, seed: int) -> Run:
        """Return a run; one that learns from another names it by what it computes."""
        config = with_values(self._known[arm], {"seed": seed})
        teaching = self.problem.teaching
        teacher_arm = None if teaching is None else teaching.arm(config)
        if teaching is None or teacher_arm is None:
            return Run(arm=arm, config=config)
        confirms = f"{CONFIRM}{teacher_arm}"
        is_confirming = arm.startswith(CONFIRM) and confirms in self._known
        teacher = self._run(confirms if is_confirming else teacher_arm, seed).config
        config = teaching.taught(config, stage_keys(teacher)[-1])
        return Run(arm=arm, config=config, teacher=teacher)

    @cached_property
    def _known(self) -> Mapping[str, Config]:
        return {**self.outside, **self.arms}

    def teachers(self) -> frozenset[str]:
        """Return the final stage keys of the runs that others learn from, points to come too."""
        taught = {stage_keys(run.teacher)[-1] for run in self.runs() if run.teacher}
        teaching = self.problem.teaching
        if teaching is not None and self.search is not None:
            points = map(self.search.config_of, self.search.space.corners())
            arms = {arm for point in points if (arm := teaching.arm(point)) is not None}
            taught |= {stage_keys(run.config)[-1] for arm in arms for run in self.runs_of(arm)}
        return frozenset(taught)

    @cached_property
    def _runs_by_arm(self) -> Mapping[str, list[Run]]:
        by_arm: dict[str, list[Run]] = {arm: [] for arm in self.arms}
        for run in self._runs:
            by_arm[run.arm].append(run)
        return by_arm

    @property
    def fixed(self) -> tuple[str, ...]:
        """The arms that the study file names; the others joined while it ran."""
        return tuple(arm for arm in self.arms if arm not in self.own_seeds)

    def keys_at(self, seed: int) -> Mapping[str, str]:
        """Return the run key of each arm at a seed, which the study need not have."""
        runs = replace(self, seeds=(seed,), own_seeds={}).runs()
        return {run.arm: run.key for run in runs}

    @cached_property
    def settings(self) -> str:
        """The name of the study as resolved: 32 digits that change with what any arm computes.

        More seeds or points extend a study and leave it as it is.
        """
        keys = self.keys_at(0)
        ids = " ".join(f"{arm} {keys[arm]}" for arm in self.fixed)
        return hashlib.sha256(ids.encode()).hexdigest()[:32]

    def points(self) -> tuple[str, ...]:
        """Return the arms that are points of the search."""
        return tuple(arm for arm in self.own_seeds if not arm.startswith(CONFIRM))

    def primary(self) -> "Study":
        """Return the study without the arms that are trained for variants alone."""
        if not self.beside:
            return self
        return self.part(arm for arm in self.arms if arm not in self.beside)

    def under(self, variant: "Variant") -> "Study":
        """Return the study as a variant has it: its arms, under the names of those they vary."""
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
            variants=(),
            beside=(),
            reached={a: self.reached[v] for a, v in variant.arms.items() if v in self.reached},
        )

    def part(self, arms: Iterable[str]) -> "Study":
        """Return the study with some of its arms alone, in the order given."""
        arms = tuple(arms)
        return replace(
            self,
            arms={arm: self.arms[arm] for arm in arms},
            baseline=self.baseline if self.baseline in arms else arms[0],
            own_seeds={arm: self.own_seeds[arm] for arm in arms if arm in self.own_seeds},
            reached={arm: self.reached[arm] for arm in arms if arm in self.reached},
            outside={**self.outside, **self.arms},
        )

    def grown(self, points: Iterable[Point], winner: Point | None = None) -> "Study":
        """Return the study with points of its search as arms, and with its confirmation.

        Args:
            points: Each becomes an arm, at the seeds it was given.
            winner: The point to confirm beside the arms; None while the search goes on.
        """
        search = self.search
        assert search is not None, "points belong to a search"
        arms = dict(self.arms)
        seeds = {}
        for point in points:
            arms[point.arm] = search.config_of(point.values)
            seeds[point.arm] = self.seeds[: point.num_seeds]
        if winner is not None:
            for arm in (*self.arms, winner.arm):
                arms[f"{CONFIRM}{arm}"] = confirming(arms[arm])
                seeds[f"{CONFIRM}{arm}"] = search.strategy.confirm_seeds
        return replace(self, arms=arms, own_seeds=seeds)

    def confirmation(self) -> "Study | None":
        """Return the confirmation as a study of its own, arms named as they are confirmed.

        None if there is none, or not yet.
        """
        confirming_arms = [arm for arm in self.own_seeds if arm.startswith(CONFIRM)]
        if self.search is None or not confirming_arms:
            return None
        return replace(
            self,
            arms={arm.removeprefix(CONFIRM): self.arms[arm] for arm in confirming_arms},
            seeds=self.search.strategy.confirm_seeds,
            own_seeds={},
        )

    def winning_run(self) -> Run | None:
        """Return the run that stands for what a search found; None before its confirmation.

        It is the winner's at the first seed of the confirmation: chosen by no result.
        """
        points = set(self.points())
        for arm in self.own_seeds:
            if arm.startswith(CONFIRM) and arm.removeprefix(CONFIRM) in points:
                return self.runs_of(arm)[0]
        return None

    def varying(self) -> tuple[str, ...]:
        """Return the dotted paths whose values differ between arms, in the order of the tree."""
        flats = [flatten(config) for config in self.arms.values()]
        paths = leaves(self.problem.config)
        return tuple(
            path
            for path in paths
            if path != "seed" and len({json.dumps(flat.get(path)) for flat in flats}) > 1
        )
