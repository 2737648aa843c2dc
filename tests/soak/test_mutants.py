from pathlib import Path
from random import Random

import pytest

pytest.importorskip("cosmic_ray", reason="of the extra `dev`")
from tests.soak.mutants import MODULES, judge, places

SOURCE = """\
@dataclass(frozen=True)
class Pair:
    first: int | None = 3

def both(pair: Pair) -> bool:
    return pair.first > 1 and not False
"""


def test_declarations_are_not_mutated() -> None:
    found = places("pair.py", SOURCE)
    changed = {SOURCE.splitlines()[place.start[0] - 1][place.start[1] :] for place in found}
    assert {"3", "1 and not False", "False", "> 1 and not False"} <= changed
    assert not any(text.startswith(("|", "True", "None")) for text in changed)


def test_a_mutant_differs_in_one_line() -> None:
    for place in places("pair.py", SOURCE):
        mutant = place.mutant(SOURCE, Random(0))
        assert mutant is not None
        lines = zip(SOURCE.splitlines(), mutant.source.splitlines(), strict=True)
        assert [new.strip() for old, new in lines if old != new] == [mutant.after], mutant
        assert mutant.after != mutant.before


def test_every_mutated_module_has_test_files() -> None:
    assert MODULES
    for module, tests in MODULES.items():
        assert Path(module).is_file()
        assert all(Path(test).is_file() for test in tests)


@pytest.mark.long
def test_a_mutant_is_judged_survived_killed_or_hung() -> None:
    module = "mixup_core/seeding.py"
    source, tests = Path(module).read_text(), ["tests/mixup_core/test_seeding.py"]
    assert judge(module, source, tests, 100) == "survived"
    assert judge(module, source.replace("sha256", "sha512"), tests, 100) == "killed"
    assert judge(module, source + "\nwhile True: pass\n", tests, 3) == "hung"
    assert Path(module).read_text() == source
