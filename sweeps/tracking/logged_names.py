"""Logged names: the names and params in MLflow of the arms and runs of a study."""

from collections.abc import Mapping
from functools import cached_property

from mixup_core.problem import Config, problem_of
from mixup_core.tree.written_forms import flatten, plugins_of
from sweeps.study.study import Study


class LoggedNames:
    """A study, with the names of its runs and arms in MLflow."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._keys: dict[int, Mapping[str, str]] = {}

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Position of each run in the study, by run key."""
        return {run.key: index for index, run in enumerate(self.study.runs())}

    def config_id(self, arm: str) -> str:
        """Return the name of an arm's configuration, which does not depend on seeds."""
        return self.keys_at(0)[arm]

    def keys_at(self, seed: int) -> Mapping[str, str]:
        """Return the run key of each arm at a seed, which may be outside the study."""
        if seed not in self._keys:
            self._keys[seed] = self.study.keys_at(seed)
        return self._keys[seed]


def params_of(config: Config) -> dict[str, str]:
    """Return the params of a configuration, without those that do not affect results."""
    never = problem_of(config).keying.never
    params = {
        path: str(value)
        for path, value in flatten(config).items()
        if value is not None and path not in never
    }
    plugins = " ".join(f"{name}@{digest}" for name, digest in plugins_of(config).items())
    return params | ({"plugins": plugins} if plugins else {})
