"""Study: arms compared at the same seeds, as a value. No YAML, no Ray."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from mixup_core.images.config import TrainConfig
from mixup_core.keys import run_key
from mixup_core.tree import flatten, with_values
from sweeps.search import CONFIRM, Point, Search, confirming


@dataclass(frozen=True, kw_only=True)
class Run:
    """One configuration trained once at one seed, and the place it has in a study."""

    arm: str
    config: TrainConfig
    """Complete, its seed included."""

    @property
    def seed(self) -> int:
        """Seed of the run; runs of different arms with one seed are paired."""
        return self.config.seed

    @cached_property
    def key(self) -> str:
        """The run's name (`mixup_core.images.config.run_key`)."""
        return run_key(self.config)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Arms and the seeds at which each is trained."""

    name: str
    """Lower-case letters, digits and hyphens; names the MLflow experiment."""
    description: str
    arms: Mapping[str, TrainConfig]
    """Arm to configuration, in the order of the file; grid points are arms of their own. The seed
    in a configuration here has no meaning."""
    seeds: tuple[int, ...]
    """Distinct; every arm is trained at each."""
    source: str
    """The study file as read, overrides applied, as YAML: what `provenance.json` keeps."""
    search: Search | None = None
    """What is searched beside the arms; its points become arms as they are proposed (`grown`)."""
    own_seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Arms that joined the study while it ran, in the order of joining, to the seeds they have
    instead of `seeds`."""

    def seeds_of(self, arm: str) -> tuple[int, ...]:
        """Return the seeds at which an arm is trained."""
        return self.own_seeds.get(arm, self.seeds)

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
            (arm, seed) for seed in self.seeds for arm in self.arms if arm not in self.own_seeds
        ]
        joined = [(arm, seed) for arm, seeds in self.own_seeds.items() for seed in seeds]
        return tuple(
            Run(arm=arm, config=with_values(self.arms[arm], {"seed": seed}))
            for arm, seed in together + joined
        )

    @cached_property
    def _runs_by_arm(self) -> Mapping[str, list[Run]]:
        by_arm: dict[str, list[Run]] = {arm: [] for arm in self.arms}
        for run in self._runs:
            by_arm[run.arm].append(run)
        return by_arm

    def points(self) -> tuple[str, ...]:
        """Return the arms that are points of the search."""
        return tuple(arm for arm in self.own_seeds if not arm.startswith(CONFIRM))

    def part(self, arms: Iterable[str]) -> "Study":
        """Return the study with some of its arms alone, in the order given."""
        arms = tuple(arms)
        return replace(
            self,
            arms={arm: self.arms[arm] for arm in arms},
            own_seeds={arm: self.own_seeds[arm] for arm in arms if arm in self.own_seeds},
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
                seeds[f"{CONFIRM}{arm}"] = search.confirm_seeds
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
            seeds=self.search.confirm_seeds,
            own_seeds={},
        )

    def varying(self) -> tuple[str, ...]:
        """Return the dotted paths whose values differ between arms, in the order of the tree."""
        flats = [flatten(config) for config in self.arms.values()]
        tree = [path for path in flats[0] if not path.endswith(".alpha")]
        paths = sorted(
            {path for flat in flats for path in flat},
            key=lambda path: (tree.index(path.removesuffix(".alpha")), path),
        )
        return tuple(
            path for path in paths if path != "seed" and len({flat.get(path) for flat in flats}) > 1
        )
