"""Surroundings: commands work in an environment where everything is unusual at once."""

from pathlib import Path

import pytest

from tests.soak.surroundings import FEW, ODD, Surrounding, surroundings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
WORST = Surrounding(
    name="everything at once",
    variables={
        "HOME": f"{{folder}}/{ODD}",
        "MIXSWEEP_HOME": f"{{folder}}/{ODD}/runs",
        "XDG_CACHE_HOME": "/no/such/place",
        "TMPDIR": "/no/such/place",
        "LC_ALL": "POSIX",
        "TERM": "no-such",
        "COLUMNS": "0",
        "OPTUNA_STORAGE": "junk",
        "RAY_ADDRESS": "",
        "RAY_TMPDIR": "/no/such/place",
        "PYTHONWARNINGS": "error",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
        "PYTHONSAFEPATH": "1",
        **dict.fromkeys(_PROXIES, "http://127.0.0.1:9"),
    },
    prefix=("sh", "-c", 'umask 077 && exec "$@"', "sh"),
    commands=(*FEW[:3], "report {study} --epochs {out}"),
)


def test_commands_work_in_the_worst_combined_environment(tmp_path: Path) -> None:
    for verb, code, said in WORST.tried(tmp_path / "s"):
        assert code == 0, (verb, said)
        assert "Traceback" not in said, verb


def test_environments_have_unique_names_and_at_least_ten_use_ray() -> None:
    found = list(surroundings())
    assert len({each.name for each in found}) == len(found)
    assert sum("--slots" in " ".join(each.commands) for each in found) >= 10
