from pathlib import Path

import pytest


@pytest.mark.long
def test_every_mutated_module_has_test_files() -> None:
    pytest.importorskip("cosmic_ray", reason="of the extra `dev`")
    from tests.soak.mutants import MODULES

    assert MODULES
    for module, tests in MODULES.items():
        assert Path(module).is_file()
        assert all(Path(test).is_file() for test in tests)
