"""Lock files: the versions and checksums that `make` installs."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")


def _pins(lock: str) -> dict[str, str]:
    """Return the pinned version of each package; every line must have checksums."""
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    pins = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            stated, *sums = re.split(r"\s+--hash=", line.strip())
            assert sums, f"no sum: {line}"
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in sums), line
            requirement = Requirement(stated)
            (pin,) = requirement.specifier
            assert pin.operator == "=="
            pins[requirement.name.replace("_", "-")] = pin.version
    return pins


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_files_pin_the_versions_of_constraints_txt(lock: str) -> None:
    constraints = dict(
        line.lower().replace("_", "-").split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    )
    pins = _pins(lock)
    assert len(pins) > 100
    differing = {name for name in pins if pins[name] != constraints.get(name, pins[name])}
    assert not differing
    assert lock != "requirements-dev.lock" or constraints.keys() <= pins.keys()


def test_runtime_pins_are_a_subset_of_development_pins() -> None:
    run, dev = map(_pins, LOCKS)
    assert run.items() <= dev.items()
