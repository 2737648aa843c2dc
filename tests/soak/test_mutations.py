import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.soak import mutations
from tests.soak.mutations import MUTATIONS, Mutation, mutated, verdict

STUDY = "study: x\nbase: {model: {name: mlp}, epochs: 4, batch_size: 8}\nseeds: 2\n"


@pytest.mark.parametrize(
    ("text", "told"), [(STUDY, "read"), (STUDY + "sedes: 3\n", "refused"), ("\t", "refused")]
)
def test_the_verdict_on_a_study_file_is_read_or_refused(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(text)
    assert verdict(file) == (told, None)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_each_mutation_changes_the_text_of_a_study(mutation: Mutation) -> None:
    texts = {mutation(STUDY, random.Random(seed)) for seed in range(20)}
    assert texts - {STUDY}
    assert mutated("", random.Random(0)) == ""


def test_a_text_of_one_character_can_be_mutated() -> None:
    assert {mutated("x", random.Random(seed)) for seed in range(100)} >= {"", "x"}


@pytest.mark.parametrize(("minutes", "code"), [("10", 0), ("0", 1)])
def test_a_soak_that_read_too_few_files_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], minutes: str, code: int
) -> None:
    monkeypatch.setattr(sys, "argv", ["mutations", "--files", "2", "--minutes", minutes])
    published: list[Mapping[str, Any]] = []
    monkeypatch.setattr(mutations, "publish", lambda *told: published.append(told[-1]))
    with pytest.raises(SystemExit) as ended:
        mutations.main()
    assert ended.value.code == code
    assert ("1 of 2 files were read" in capsys.readouterr().out) == (code == 1)
    assert 0 < published[-1]["memory_mb_before_the_first"] <= published[-1]["largest_memory_mb"]
