import random
from pathlib import Path

import pytest

from tests.soak.mutations import MUTATIONS, Mutation, mutated, verdict

STUDY = "study: x\nbase: {model: {name: mlp}, epochs: 4, batch_size: 8}\nseeds: 2\n"


@pytest.mark.parametrize(
    ("text", "told"), [(STUDY, "read"), (STUDY + "sedes: 3\n", "refused"), ("\t", "refused")]
)
def test_a_file_is_read_or_refused_line_by_line(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(text)
    assert verdict(file) == (told, None)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_each_mutation_changes_a_study(mutation: Mutation) -> None:
    texts = {mutation(STUDY, random.Random(seed)) for seed in range(20)}
    assert texts - {STUDY}
    assert mutated("", random.Random(0)) == ""
