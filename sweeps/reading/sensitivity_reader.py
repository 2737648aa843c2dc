"""SensitivityReader: read the section `sensitivity` of a study file.

The section lists alternative settings under which every claim is judged again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mixup_core.config.building import with_values
from mixup_core.config.written_forms import flatten
from mixup_core.keys import run_key
from mixup_core.problem import Config, Problem, with_named_teacher
from mixup_core.rules import RuleError
from sweeps.reading.arm_names import arm_name
from sweeps.reading.strict_yaml import REFUSED, At
from sweeps.reading.tree_reader import TreeReader
from sweeps.study.claims import Claim
from sweeps.study.readouts import Readout
from sweeps.study.study import Variant


class SensitivityReader:
    """Reads the section `sensitivity` of a study file; faulty parts are reported and skipped.

    The section lists alternative settings under which every claim is judged again.
    """

    def __init__(
        self,
        read: TreeReader,
        problem: Problem,
        arms: Mapping[str, Config],
        claims: Sequence[Claim],
        check_readout: Callable[[At, Readout], None],
    ) -> None:
        """Create a reader."""
        self._read = read
        self._problem = problem
        self._arms = arms
        self._check_readout = check_readout
        self._claimed = list(dict.fromkeys(arm for claim in claims for arm in claim.that.arms))
        self._by_key = {run_key(with_named_teacher(config)): arm for arm, config in arms.items()}

    def variants(self, written: Any) -> tuple[tuple[Variant, ...], dict[str, Config]]:
        """Return a study's variants, and the extra arms to train for them.

        A variant that changes only the read-out uses the same runs and needs no extra arm.
        """
        found: list[Variant] = []
        beside: dict[str, Config] = {}
        at: At = ("sensitivity",)
        if written is REFUSED:
            return (), {}
        if not self._claimed:
            self._read.report(at, "the study has no claims to judge; leave this section out")
            return (), {}
        for name, values in self._read.mapping(written, at).items():
            here = (*at, name)
            path = name if name == "readout" else self._read.known(name, here)
            if not path:
                continue
            for place, value in self._read.filled(values, here, "value").items():
                if path == "readout":
                    readout = self._read.value(Readout, value, place)
                    if readout is not REFUSED:
                        self._check_readout(place, readout)
                        same = {arm: arm for arm in self._claimed}
                        found.append(Variant(label=str(readout), arms=same, readout=readout))
                elif (variant := self._variant(path, value, place, beside)) is not None:
                    found.append(variant)
        return tuple(found), beside

    def _variant(self, path: str, value: Any, at: At, beside: dict[str, Config]) -> Variant | None:
        """Return a variant, in which one value of the arms of the claims is changed."""
        setting = self._read.setting(path, value, at).value
        if setting is REFUSED:
            return None
        arms: dict[str, str] = {}
        for arm in self._claimed:
            own = self._arms[arm]
            try:
                config = with_values(own, {path: setting})
                faults = list(self._problem.reading.feasibility(config))
            except RuleError as error:
                faults = [error]
            if faults:
                self._read.report(at, f"{arm}: {faults[0]}")
                return None
            key = run_key(with_named_teacher(config))
            if key not in self._by_key:
                name = arm_name(arm, {path: flatten(config).get(path, setting)})
                self._by_key[key] = name
                beside[name] = config
            arms[arm] = self._by_key[key]
        if all(arm == varied for arm, varied in arms.items()):
            return None
        label = arm_name("", {path: flatten(config).get(path, setting)})
        return Variant(label=label, arms=arms)
