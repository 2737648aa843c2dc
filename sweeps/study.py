"""Study: arms compared at the same seeds, as a value. No YAML, no Ray."""

from collections.abc import Mapping
from dataclasses import dataclass

from mixup_core.config import TrainConfig, flatten, run_key, with_values


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One configuration trained once at one seed, and the place it has in a study."""

    arm: str
    config: TrainConfig
    """Complete, its seed included."""

    @property
    def seed(self) -> int:
        """Seed of the run; runs of different arms with one seed are paired."""
        return self.config.seed

    @property
    def key(self) -> str:
        """The run's name (`mixup_core.config.run_key`)."""
        return run_key(self.config)


@dataclass(frozen=True, kw_only=True, slots=True)
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

    def runs(self) -> tuple[Run, ...]:
        """Return every run, seed by seed in the order of the arms, so that tables fill evenly."""
        return tuple(
            Run(arm=arm, config=with_values(config, {"seed": seed}))
            for seed in self.seeds
            for arm, config in self.arms.items()
        )

    def varying(self) -> tuple[str, ...]:
        """Return the dotted paths whose values differ between arms, in the order of the tree."""
        flats = [flatten(config) for config in self.arms.values()]
        paths = max(flats, key=len)  # the laws with a parameter have a path more
        return tuple(
            path for path in paths if path != "seed" and len({flat.get(path) for flat in flats}) > 1
        )
