"""Logged names: names and params under which a study's arms and runs are stored in MLflow."""

from collections.abc import Mapping
from functools import cached_property

from mixup_core.config.written_forms import flatten, plugins_of
from mixup_core.problem import Config, problem_of
from sweeps.study.study import Study


class LoggedNames:
    """Names of a study's arms and runs in MLflow, computed from run keys and cached."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._keys: dict[int, Mapping[str, str]] = {}

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Position of each run in the study, counted from 0, by run key."""
        return {run.key: index for index, run in enumerate(self.study.runs())}

    def config_id(self, arm: str) -> str:
        """Return an id of an arm's configuration that is the same for all seeds of the arm.

        It is the run key of the arm at seed 0, even if the study does not use this seed.
        """
        return self.keys_at(0)[arm]

    def keys_at(self, seed: int) -> Mapping[str, str]:
        """Return the run key of each arm at a seed; the study need not have this seed."""
        if seed not in self._keys:
            self._keys[seed] = self.study.keys_at(seed)
        return self._keys[seed]


def params_of(config: Config) -> dict[str, str]:
    """Return a configuration as MLflow params: values by dotted path, and its plugins.

    Settings without a value and settings that do not affect results are left out.
    """
    never = problem_of(config).keying.never
    params = {
        path: str(value)
        for path, value in flatten(config).items()
        if value is not None and path not in never
    }
    plugins = " ".join(f"{name}@{digest}" for name, digest in plugins_of(config).items())
    return params | ({"plugins": plugins} if plugins else {})
