import json
from pathlib import Path

import pytest

from tests.soak.epochs_log import EpochsLog

FIRST = [("long", "trained", "abc"), ("long", "trained", "bc"), ("long", "trained", "c")]
ENDED = [*FIRST, ("long", "ended", "abc")]
SHORT = [("short", "trained", "ab"), ("short", "trained", "b")]


@pytest.mark.parametrize(
    ("notes", "killed", "found"),
    [
        ([*ENDED, *SHORT], (), ()),  # the long run had its stage `b` as a middle
        ([*SHORT, ("short", "ended", "ab"), *SHORT[1:]], (), ("b by short and ['short']",)),
        (
            [("short", "ended", "ab"), ("other", "trained", "b")],
            (),
            ("b by other, although it was stored",),
        ),
        ([*FIRST, ("again", "trained", "c")], (), ("c by again and ['long']",)),
        ([*FIRST, ("again", "trained", "c")], ("long",), ()),
        ([*ENDED, ("again", "trained", "c")], ("long",), ("c by again, although it was stored",)),
    ],
)
def test_only_a_run_that_is_trained_whole_again_counts(
    notes: list[tuple[str, str, str]],
    killed: tuple[str, ...],
    found: tuple[str, ...],
    tmp_path: Path,
) -> None:
    lines = [{"launch": name, "what": what, "keys": list(keys)} for name, what, keys in notes]
    (tmp_path / "epochs.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    counted = EpochsLog(folder=tmp_path).count(killed).twice
    assert len(counted) == len(found)
    assert all(map(str.startswith, counted, found))
