"""`make bench` runs all benches; if one fails, the others still run."""

from pathlib import Path

from tests.bench import __main__ as benches


def test_every_bench_that_publishes_results_is_in_the_list_to_run() -> None:
    publishing = {
        file.stem
        for file in Path(__file__).parent.glob("*.py")
        if 'kind="bench' in file.read_text() and file != Path(__file__)
    }
    assert publishing == set(benches.LEAST)
