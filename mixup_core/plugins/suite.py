"""Suite: the contracts of everything that can be trained; `mixsweep check` and our tests run it.

A check is a pair: a statement, such as `it trains`, and a function that raises `BrokenError` if the
statement is wrong. Text that the function returns is appended to the statement.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mixup_core.config.building import built, with_values
from mixup_core.config.parts import leaves
from mixup_core.config.written_forms import SpellingError, flatten, possible_values, spellings
from mixup_core.contracts import ContractError
from mixup_core.keys import run_key, stage_keys
from mixup_core.plugins.fields import unlimited
from mixup_core.plugins.loading import message_of
from mixup_core.problem import Metric, Problem, Process
from mixup_core.records import EpochRecord
from mixup_core.rules import RuleError
from mixup_core.seeding import seeded_globally, watched

_MOST_TRAINED = 3
"""Maximum number of values per field that are trained to compare results under equal stage keys."""

Checks = Iterable[tuple[str, Callable[[], str | None]]]
Change = tuple[Any, Any]


class BrokenError(Exception):
    """Error: an entry of a plugin, such as a model, fails a check. The text describes the fault."""


class BaselessError(BrokenError):
    """Error: a plugin's entry fails a check that all its later checks need; they are skipped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of one check of one model, law, dataset, ... that a plugin adds."""

    entry: str
    """Noun and name of the entry, for example `model tiny`."""
    contract: str
    """The statement that was checked, for example `it trains`."""
    broken: str = ""
    """Description of the fault; empty if the statement holds."""


def findings(entry: str, checks: Checks) -> Iterator[Finding]:
    """Run the checks of a plugin's entry, such as a law, and yield the result of each.

    After a `BrokenError` the next check runs. After another exception no more checks run, as they
    would fail, too.
    """
    for statement, check in checks:
        try:
            yield Finding(entry=entry, contract=statement + (check() or ""))
        except (BrokenError, ContractError) as error:
            yield Finding(entry=entry, contract=statement, broken=str(error))
            if type(error) is not BrokenError:
                return
        except (Exception, SystemExit) as error:
            broken = message_of(error) or f"{type(error).__name__}: {error}"
            yield Finding(entry=entry, contract=statement, broken=broken)
            return


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A configuration that checks train, change and train again."""

    config: Any
    start: Callable[[Any], Process]
    """Starts a run of a configuration."""
    of: Any
    """The dataclass whose fields are varied: the configuration or a part of it."""
    holding: Callable[[Any], Any]
    """Returns the configuration that holds another value of `of`."""
    is_left_out: Callable[[str], bool]
    """Returns True for fields of `of` that need not change keys."""
    metrics: Mapping[str, Metric]
    """Metrics whose values are checked."""
    never: Collection[str] = ()
    """Fields that enter no key, because they must not change results."""

    def trained(self, config: Any = None) -> list[tuple[EpochRecord, bytes]]:
        """Train a run; return the record of each epoch, and the state after it."""
        process = self.start(self.config if config is None else config)
        return [(record, process.to_bytes()) for record in process]

    def pairs(self) -> Iterator[tuple[str, list[Change]]]:
        """Yield each field with pairs of configurations that differ in it alone."""
        for path, leaf in leaves(type(self.of)).items():
            one_kind = len(leaf.part.options) == 1 and not leaf.part.is_optional
            if one_kind or self.is_left_out(path):
                continue
            pairs = list(self._pairs(path))
            if pairs or len(set(map(repr, possible_values(leaf.part.hint)))) > 1:
                yield path, pairs

    def _pairs(self, path: str) -> Iterator[Change]:
        for base in self._bases(path):
            for other in _others(base, path):
                with suppress(RuleError, SpellingError, KeyError):
                    pair = self.holding(base), self.holding(other)
                    run_key(pair[1])
                    yield pair

    def _bases(self, path: str) -> Iterator[Any]:
        """Yield `of`, then its variants with other options of the choices that contain `path`."""
        yield self.of
        for above, leaf in leaves(type(self.of)).items():
            whole = above.removesuffix(".name") if leaf.part.is_named else above
            if leaf.part.options and path.startswith(f"{whole}."):
                yield from _others(self.of, above)


def _others(node: Any, path: str) -> Iterator[Any]:
    """Yield valid dataclasses that differ from `node` only in the field at `path`."""
    part = leaves(type(node))[path].part
    whole = path.removesuffix(".name") if part.is_named else path
    kinds = [value for kind in part.options.values() for value in spellings(kind)]
    for value in kinds or possible_values(part.hint):
        with suppress(RuleError, SpellingError, KeyError):
            other = with_values(node, {whole: value})
            if other != node:
                yield other


def _require_ranges(trial: Trial) -> None:
    if names := unlimited(type(trial.of)):
        raise BrokenError(
            f"{', '.join(names)} of {type(trial.of).__name__} accepts every number; give it a type "
            "with a range, such as Share, Positive, Count, Seed or Annotated[float, Range(0, 2)]"
        )


def _require_written(trial: Trial) -> None:
    written = flatten(trial.config)
    if built(type(trial.config), written) != trial.config:
        raise BrokenError(f"the configuration {written} changes when it is written and read back")


def _require_keyed(trial: Trial) -> str:
    """Check that each field changes the run key, and the stage keys of the results it changes."""
    varied = dict(trial.pairs())
    for field, pairs in varied.items():
        is_keyed = field not in trial.never
        if is_keyed and not pairs:
            raise BrokenError(
                f"found only one valid value of `{field}`, but the check must change it; "
                "widen the limits in its type"
            )
        if is_keyed and any(run_key(one) == run_key(other) for one, other in pairs):
            raise BrokenError(
                f"runs that differ in `{field}` have the same key, so the store would give one run "
                "the results of the other"
            )
        shared = [(one, other, _num_shared(one, other)) for one, other in pairs]
        is_part = trial.of is not trial.config
        if is_part and all(epochs == one.epochs for one, _, epochs in shared):
            raise BrokenError(
                f"runs that differ in `{field}` have the same last stage key, so one run would "
                "continue from the state of the other"
            )
        for one, other, epochs in [each for each in shared if each[2]][:_MOST_TRAINED]:
            with suppress(RuleError):  # a rule about the teacher
                if trial.trained(other)[epochs - 1] == trial.trained(one)[epochs - 1]:
                    continue
                raise BrokenError(
                    f"changing `{field}` changes the results of epoch {epochs} but not its stage "
                    "key: `in_epoch` or `Keying.of_epoch` must return every field on which an "
                    "epoch depends, and `Keying.never` must not list it"
                )
    return f" ({len(varied)} {'field' if len(varied) == 1 else 'fields'})"


def _num_shared(one: Any, other: Any) -> int:
    return sum(a == b for a, b in zip(stage_keys(one), stage_keys(other), strict=False))


def _require_own_draws(trial: Trial) -> None:
    results = []
    for seed in (1, 2):
        with seeded_globally(seed), watched() as drawn:
            results.append(trial.trained())
    if drawn:
        raise BaselessError(
            f"the code draws from the global generator of {' and '.join(drawn)}: draw only from "
            "the given generator (dropout and stochastic depth draw from the generator of torch)"
        )
    if results[0] != results[1]:
        raise BaselessError(
            "two runs with the same seed give different results; possible causes: a generator "
            "without a seed, a use of the time, or state outside of the network and the optimizer"
        )


def _require_resumed(trial: Trial) -> None:
    whole = trial.trained()
    for epoch in range(1, len(whole)):
        content = whole[epoch - 1][1]
        process = trial.start(trial.config)
        process.load_bytes(content, [record for record, _ in whole[:epoch]])
        if process.to_bytes() != content:
            raise BrokenError(
                f"the state after epoch {epoch} changes when it is written and read back"
            )
        if [(record, process.to_bytes()) for record in process] != whole[epoch:]:
            raise BrokenError(
                f"a run resumed after epoch {epoch} gives other results than an uninterrupted run: "
                "some state is kept outside of what `to_bytes` returns (network and optimizer)"
            )


def _require_possible(trial: Trial) -> None:
    for record, _ in trial.trained():
        for name in (name for name in trial.metrics if name in record.metrics):
            value, (least, most) = record.metrics[name], trial.metrics[name].bounds
            got = f"got {value} after epoch {record.epoch}"
            if not math.isfinite(value):
                raise BrokenError(f"{name} must be finite, {got}")
            if not trial.metrics[name].allows(value):
                raise BrokenError(
                    f"{name} must be in [{least:g}, {most:g}], {got}; correct the value, or the "
                    "bounds in `metrics` (`least`, `most`; with the unit `%` they are 0 and 1)"
                )


def _timed(trial: Trial) -> str:
    started = time.perf_counter()
    count = sum(1 for _ in trial.start(trial.config))
    return f": {(time.perf_counter() - started) / count * 1e3:.1f} ms"


FIRST_CHECKS: dict[str, Callable[[Trial], str | None]] = {
    "every field of numbers has a range": _require_ranges,
    "it is unchanged after it is written and read back": _require_written,
}
"""Checks that need no training, by statement."""
LATER_CHECKS: dict[str, Callable[[Trial], str | None]] = {
    "changing a field changes the keys of the results it affects": _require_keyed,
    "numbers do not depend on global random generators": _require_own_draws,
    "a run resumed after any epoch ends with equal bits": _require_resumed,
    "recorded values are within their bounds": _require_possible,
    "time per epoch": _timed,
}
"""Checks that train the configuration, its variants, and it again, by statement."""


def checks_of_problem(problem: Problem) -> Checks:
    """Yield the checks of a problem, of its smallest configuration."""
    config = smallest(problem)
    if problem.data is not None:
        needs = problem.data()
        config = needs.prepare(config, Path.cwd())
        if missing := needs.missing(config):
            yield f"not checked: {missing}", lambda: None
            return
    trial = Trial(
        config=config,
        start=lambda config: problem.start(config, None, "cpu"),
        of=config,
        holding=lambda config: config,
        is_left_out=lambda path: path in problem.keying.stands_for,
        metrics=problem.metrics,
        never=problem.keying.never,
    )
    for statement, check in (FIRST_CHECKS | LATER_CHECKS).items():
        yield statement, partial(check, trial)
    yield "it records the metrics that it declares", partial(_declared, problem, trial)


def smallest(problem: Problem) -> Any:
    """Return a valid configuration of a problem: of 3 epochs, else 2, else the default number."""
    for epochs in ({"epochs": 3}, {"epochs": 2}, {}):
        for values in spellings(problem.config):
            with suppress(RuleError, SpellingError, KeyError):
                config: Any = built(problem.config, {**values, **epochs})
                if not any(True for _ in problem.reading.feasibility(config)):
                    return config
    raise BrokenError(
        f"no configuration of {problem.config.__name__} is valid; give the class a class variable "
        "`example` with valid values of its required fields"
    )


def _declared(problem: Problem, trial: Trial) -> str:
    records = [record for record, _ in trial.trained()]
    if len(records) != trial.config.epochs:
        raise BrokenError(
            f"a run of {trial.config.epochs} epochs yielded {len(records)} records; yield one per "
            "epoch"
        )
    names = {name for record in records for name in record.metrics}
    heads = tuple(f"{series.head}/" for series in problem.presentation.series)
    unknown = [n for n in sorted(names - problem.metrics.keys()) if not n.startswith(heads)]
    if unknown:
        raise BrokenError(
            f"records metrics that its `metrics` does not declare: {', '.join(unknown)}"
        )
    missing = partial(problem.measuring.missing, trial.config, records=1, seeds=[trial.config.seed])
    if absent := [n for n in sorted(problem.metrics.keys() - names) if missing(n) is None]:
        raise BrokenError(
            f"declared in `metrics`, but never recorded: {', '.join(absent)}; record them, or let "
            "`Measuring.lacks` say what to set"
        )
    if names.isdisjoint(problem.headline):
        raise BrokenError(f"none of the headline metrics {', '.join(problem.headline)} is recorded")
    return f" ({', '.join(sorted(names))})"
