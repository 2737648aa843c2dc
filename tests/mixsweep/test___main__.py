"""`mixsweep` reacts to signals even while it is still importing modules."""

import signal
from pathlib import Path

import pytest

from tests.interpreters import run_python

SAID = "interrupted; to continue, run\nmixsweep schema\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("module", ["mixsweep.cli.main", "click", "mixsweep.cli.run"])
def test_a_signal_in_the_first_moments_ends_the_process_in_one_line(
    number: signal.Signals, module: str
) -> None:
    program = f"""
    import signal, sys

    class AtThatMoment:
        def find_spec(self, name, path=None, target=None):
            if name == {module!r}:
                signal.raise_signal({int(number)})

    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    from mixsweep.__main__ import main

    sys.meta_path.insert(0, AtThatMoment())
    sys.argv = ["mixsweep", "schema"]
    main()
    """
    ran = run_python(program, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", SAID)


def test_all_shipped_commands_start_the_program_that_sets_signal_handlers_first() -> None:
    root = Path(__file__).parents[2]
    files = [p for room in ("cluster", "mixsweep") for p in (root / room).rglob("*") if p.is_file()]
    texts = {p: p.read_text() for p in files if p.suffix in {".py", ".yaml", ".sbatch", ".md"}}
    started = "mixsweep.cli" + ".main"
    late = [
        str(p) for p, text in texts.items() if f"-m {started}" in text or f'"{started}"' in text
    ]
    assert late == []
    assert any('"-m", "mixsweep"' in text for text in texts.values())
