"""Published logs of the first use of each cluster file (`make clusters` writes them)."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = ROOT / "cluster"
LOGS = ROOT / "reports" / "published" / "measurements" / "first-use"
STARTS_NOTHING = {"runtime-env.yaml", "__init__.py"}


def test_every_file_that_starts_processes_has_a_log_of_its_first_use() -> None:
    heads = [path.read_text().partition("\n")[0] for path in LOGS.iterdir()]
    shipped = {path.name for path in FILES.iterdir() if path.is_file()} - STARTS_NOTHING
    for name in sorted(found for found in shipped if not found.endswith(".md")):
        told = f"First use of cluster/{name}, written by its test. "
        borders = [head.removeprefix(told) for head in heads if head.startswith(told)]
        assert any(borders), f"no log of a first use of {name}: make clusters"


def test_no_log_names_a_folder_of_the_machine_that_wrote_it() -> None:
    for path in LOGS.iterdir():
        for place in ("/mnt/", "/root/", "/home/runner/"):
            assert place not in path.read_text(), path.name
