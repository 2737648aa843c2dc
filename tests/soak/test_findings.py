import shutil
from importlib import import_module
from pathlib import Path

import pytest

from tests.soak.findings import MEASUREMENTS, write_table

ROOT = Path(__file__).parents[2]
PUBLISHED = sorted((ROOT / MEASUREMENTS).glob("*.jsonl"))


@pytest.mark.parametrize("lines", PUBLISHED, ids=lambda lines: lines.stem)
def test_a_published_table_is_the_one_of_its_findings(lines: Path, tmp_path: Path) -> None:
    shutil.copy(lines, tmp_path)
    write_table(tmp_path, lines.stem)
    table = f"{lines.stem}.md"
    assert lines.with_name(table).read_text() == (tmp_path / table).read_text()


@pytest.mark.long
def test_soaks_and_benches_import_only_names_that_exist() -> None:
    """A soak runs for hours and by hand, so that a renamed name would be found late."""
    modules = [
        f"tests.{folder}.{file.stem}"
        for folder in ("soak", "bench")
        for file in sorted((ROOT / "tests" / folder).glob("*.py"))
        if not file.stem.startswith(("test_", "__"))
    ]
    assert len(modules) > 15
    for module in modules:
        import_module(module)
