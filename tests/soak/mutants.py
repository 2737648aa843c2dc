"""Mutants: one token of a module is changed at a time, and its tests must fail.

Cosmic Ray determines the possible changes and makes them. For speed, a process that has imported
the libraries forks for each mutant; no file is written, so nothing has to be restored.
"""

import argparse
import ast
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal

import pytest
import yaml
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from tests.soak.findings import publish

MODULES: Mapping[str, Sequence[str]] = {
    "mixup_core/laws/schedules.py": ["tests/mixup_core/laws/test_schedules.py"],
    "mixup_core/mixing/mixed_losses.py": ["tests/mixup_core/mixing/test_mixed_losses.py"],
    "mixup_core/keys.py": [
        "tests/mixup_core/test_keys.py",
        "tests/golden/test_keys.py",
    ],
    "mixup_core/config/limits.py": ["tests/mixup_core/config/test_limits.py"],
    "mixup_core/config/checked.py": ["tests/mixup_core/config/test_checked.py"],
    "mixup_core/config/parts.py": [
        "tests/mixup_core/config/test_parts.py",
        "tests/mixup_core/config/test_building.py",
    ],
    "mixup_core/config/written_forms.py": [
        "tests/mixup_core/config/test_written_forms.py",
        "tests/mixup_core/plugins/test_loading.py",
    ],
    "mixup_core/config/building.py": ["tests/mixup_core/config/test_building.py"],
    "mixup_core/images/evaluation.py": ["tests/mixup_core/images/test_evaluation.py"],
    "mixup_core/images/choices/optimizers.py": [
        "tests/mixup_core/images/test_optimizers.py",
        "tests/golden/test_keys.py",
    ],
    "sweeps/study/claims.py": ["tests/sweeps/study/test_claims.py"],
    "sweeps/state/stages.py": ["tests/sweeps/state/test_stages.py"],
    "sweeps/searching/selection.py": ["tests/sweeps/searching/test_selection.py"],
    "sweeps/searching/search_source.py": ["tests/sweeps/searching/test_search_source.py"],
    "sweeps/reading/strict_yaml.py": [
        "tests/sweeps/reading/test_strict_yaml.py",
        "tests/sweeps/reading/test_study_file.py",
    ],
    "reports/numbers/summary.py": ["tests/reports/numbers/test_summary.py"],
    "reports/numbers/comparison.py": [
        "tests/reports/numbers/test_comparison.py",
        "tests/reports/numbers/test_summary.py",
        "tests/reports/tables/test_comparisons.py",
    ],
    "reports/numbers/calibration.py": ["tests/reports/numbers/test_calibration.py"],
    "mixup_core/images/networks.py": ["tests/mixup_core/images/test_networks.py"],
    "mixup_core/images/training_state.py": [
        "tests/mixup_core/images/test_training.py",
        "tests/mixup_core/images/test_optimizers.py",
    ],
    "mixup_core/images/training.py": [
        "tests/mixup_core/images/test_training.py",
        "tests/mixup_core/images/test_optimizers.py",
        "tests/sweeps/running/test_failing_plugins.py",
    ],
}
"""Modules of the core, the engine and the reports, with their tests; the slowest last."""
EQUIVALENTS = Path(__file__).with_name("equivalents.yaml")
"""Mutants that compute the same as the module, each with the reason."""
KEPT = Path("build") / "mutants.jsonl"
"""Earlier verdicts. A survivor is tested again if its tests have changed, a killed mutant if its
module has changed.
"""
_LEFT_OUT = {"core/ExceptionReplacer"}
"""Operators that fail, such as this one of Cosmic Ray 8.7 on a dotted name."""
_LIBRARIES = (
    "fsspec", "hypothesis", "jsonschema", "mlflow", "numpy", "optuna", "pandas", "ray.tune",
    "scipy.stats", "torch", "torchvision",
)  # fmt: skip

_OURS = tuple(
    f"{Path(place).resolve()}/"
    for place in ("cluster", "mixsweep", "mixup_core", "reports", "sweeps", "tests")
)

Verdict = Literal["killed", "survived", "hung"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """A module with one token changed."""

    module: str
    line: int
    before: str
    """The unchanged line."""
    after: str
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A token of a module, and the ways to change it."""

    module: str
    start: tuple[int, int]
    """Line (from 1) and column (from 0)."""
    changes: tuple[tuple[str, int], ...]
    """Operators of Cosmic Ray, each with the number of its mutant in the module."""

    def mutant(self, source: str, rng: random.Random) -> Mutant | None:
        """Return the source with the token changed so that it compiles; None if no change does."""
        for operator, occurrence in rng.sample(self.changes, len(self.changes)):
            mutated = mutate_code(source, get_operator(operator)(), occurrence)
            with suppress(SyntaxError), warnings.catch_warnings(action="ignore"):
                compile(mutated, self.module, "exec")
                return self._mutant(source, mutated)
        return None

    def _mutant(self, source: str, mutated: str) -> Mutant:
        old, new = source.splitlines(), mutated.splitlines()
        first = next(n for n, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1])
        return Mutant(
            module=self.module,
            line=first + 1,
            before=old[first].strip(),
            after=new[first].strip(),
            source=mutated,
        )


def places(module: str, source: str) -> list[Place]:
    """Return the tokens of a module that can be changed, in order.

    Operators that need names of variables are not used. Annotations and decorators are left out:
    most of their mutants would fail on import, or never.
    """
    declared = list(_declarations(source))
    tree = get_ast(source)
    changes: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for name in operator_names():
        operator = get_operator(name)
        if operator.arguments() or name in _LEFT_OUT:
            continue
        positions = (
            span for node in ast_nodes(tree) for span in operator().mutation_positions(node)
        )
        for occurrence, (start, _) in enumerate(positions):
            if not any(first <= start < last for first, last in declared):
                changes.setdefault(start, []).append((name, occurrence))
    return [
        Place(module=module, start=start, changes=tuple(found))
        for start, found in sorted(changes.items())
    ]


def judge(module: str, source: str, tests: Sequence[str], seconds: float) -> Verdict:
    """Run the tests of a module with another source in their own process; return the result."""
    child = os.fork()
    if child == 0:
        _test(module, source, tests)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            is_passed = os.waitstatus_to_exitcode(status) == pytest.ExitCode.OK
            return "survived" if is_passed else "killed"
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


def main() -> None:
    """Test a sample of mutants and publish the verdicts; exit with 1 if too many survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="no mutant is judged after")
    parser.add_argument("--least", type=float, default=0.92, help="fraction that must be killed")
    options = parser.parse_args()
    sources = {module: Path(module).read_text() for module in MODULES}
    found = [place for module, source in sources.items() for place in places(module, source)]
    rng = random.Random(options.seed)
    drawn = (place.mutant(sources[place.module], rng) for place in rng.sample(found, len(found)))
    sample = list(islice((mutant for mutant in drawn if mutant), options.mutants))
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # as the product does before it loads MLflow
    for library in _LIBRARIES:
        importlib.import_module(library)
    started, verdicts = time.monotonic(), list[Verdict]()
    kept, limits = _kept(), dict[str, float]()
    sample.sort(key=lambda mutant: list(MODULES).index(mutant.module))
    for mutant in sample:
        tests = MODULES[mutant.module]
        keys = _key(mutant), _key(mutant, tests)
        verdict = next((kept[key] for key in keys if key in kept), None)
        if verdict is None:
            if time.monotonic() - started > 60 * options.minutes:
                raise SystemExit(f"{len(verdicts)} of {len(sample)} mutants judged; go on later")
            if mutant.module not in limits:
                limits[mutant.module] = _limit(mutant.module, sources[mutant.module], tests)
            verdict = judge(mutant.module, mutant.source, tests, limits[mutant.module])
            _keep(keys[verdict == "survived"], verdict)
            if verdict == "survived":
                print(_line(mutant), flush=True)  # noqa: T201
        verdicts.append(verdict)
    told = Counter(verdicts)
    survivors = [m for m, v in zip(sample, verdicts, strict=True) if v == "survived"]
    reasons = {
        (entry["module"], entry["before"], entry["after"]): entry["why"]
        for entry in yaml.safe_load(EQUIVALENTS.read_text())
    }
    why = {_line(m): reasons.get((m.module, m.before, m.after)) for m in survivors}
    fraction = 1 - told["survived"] / len(sample)
    figures = {
        "mutants": len(sample),
        "places": len(found),
        "modules": {module: sum(m.module == module for m in sample) for module in MODULES},
        "told": dict(told),
        "killed_fraction": fraction,
        "equivalent": {line: reason for line, reason in why.items() if reason is not None},
        "survivors": [line for line, reason in why.items() if reason is None],
        "seed": options.seed,
    }
    publish("mutants", f"{len(sample)} mutants of one token each", figures, kind="mutants")
    raise SystemExit(0 if fraction >= options.least else 1)


def _declarations(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield start and end of every annotation and every decorator."""
    for node in ast.walk(ast.parse(source)):
        found: list[ast.expr] = []
        match node:
            case ast.AnnAssign(annotation=declared) | ast.arg(annotation=ast.expr() as declared):
                found = [declared]
            case ast.FunctionDef(decorator_list=decorators, returns=returned):
                found = [*decorators, *([returned] if returned else [])]
            case ast.ClassDef(decorator_list=decorators):
                found = decorators
        for span in found:
            yield (span.lineno, span.col_offset - 1), (span.end_lineno, span.end_col_offset)


class _Mutated(importlib.abc.MetaPathFinder):
    """Import hook that gives one module another source."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source
        self.name = path.removesuffix(".py").replace("/", ".")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        with warnings.catch_warnings(action="ignore"):  # of comparisons that make no sense
            code = compile(self.source, self.path, "exec", dont_inherit=True)

        class Loader(importlib.machinery.SourceFileLoader):
            def get_code(self, fullname: str) -> CodeType:
                return code

        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=Loader(fullname, self.path)
        )


def _test(module: str, source: str, tests: Sequence[str]) -> None:
    """Test a module with another source, and end this process with pytest's result."""
    from hypothesis import Phase, settings

    os.setpgid(0, 0)
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silent, stream)
    tried = (Phase.explicit, Phase.generate)  # to shrink a failure takes long and tells nothing
    settings.register_profile("mutants", derandomize=True, database=None, phases=tried)
    settings.load_profile("mutants")
    sys.dont_write_bytecode = True
    for name, loaded in list(sys.modules.items()):
        if str(getattr(loaded, "__file__", "")).startswith(_OURS):
            del sys.modules[name]  # whoever judges may have loaded it, or its tests, as they are
    sys.meta_path.insert(0, _Mutated(module, source))
    code: int = pytest.ExitCode.INTERNAL_ERROR
    try:
        code = pytest.main(
            ["-x", "-m", "not long", "-p", "no:cacheprovider",
             "-W", "ignore::pytest.PytestAssertRewriteWarning", *tests]
        )  # fmt: skip
    finally:
        os._exit(code)


def _limit(module: str, source: str, tests: Sequence[str]) -> float:
    """Return the time limit of a mutant, many times that of the module's own tests."""
    started = time.monotonic()
    if judge(module, source, tests, 300) != "survived":
        raise RuntimeError(f"`{tests}` must pass before anything is changed")
    return 20 + 5 * (time.monotonic() - started)


def _key(mutant: Mutant, tests: Sequence[str] = ()) -> str:
    content = [mutant.module, mutant.source, *(Path(test).read_text() for test in tests)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _kept() -> dict[str, Verdict]:
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    return dict(json.loads(line) for line in lines)


def _keep(key: str, verdict: Verdict) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    with KEPT.open("a") as file:
        file.write(json.dumps([key, verdict]) + "\n")


def _line(mutant: Mutant) -> str:
    return f"{mutant.module}:{mutant.line}: {mutant.before}  ->  {mutant.after}"


if __name__ == "__main__":
    main()
