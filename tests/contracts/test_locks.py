"""Lock files: the versions that `make` installs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")


def _pins(lock: str) -> dict[str, str]:
    """Return the pinned version of each package; pip refuses a lock that lacks a checksum."""
    pins = re.findall(r"^([\w.-]+)(?:\[.*\])?==([^ ;\n]+)", (ROOT / lock).read_text(), re.MULTILINE)
    return {name.replace("_", "-"): version for name, version in pins}


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
