from typing import Any

import pytest

from mixup_core.config.short_forms import Pairs, Under, short_form, tag_meant
from mixup_core.laws import Beta, BetaAb

NAMES = ("a", "b")


@pytest.mark.parametrize("value", [{"beta": 1}, {"beta": {}}, {"beta": {"c": 1}}, "beta", {}, [1]])
def test_the_under_form_reads_no_fields_from_another_form(value: Any) -> None:
    assert Under("beta").fields(value, NAMES) is None


@pytest.mark.parametrize("value", [{}, {"a": 1}, {None: 1}, {(): 1}, [1], "1", 1.0])
def test_the_pairs_form_reads_no_fields_from_a_value_without_number_keys(value: Any) -> None:
    assert Pairs("a", "b").fields(value, NAMES) is None


@pytest.mark.parametrize(
    ("form", "fields"), [(Under("beta"), {"a": 1.0, "b": 2.0}),
                         (Pairs("a", "b"), {"a": [0.25, 1e-9], "b": [0.5, 0.5]})]
)  # fmt: skip
def test_a_written_short_form_is_read_back(form: Any, fields: dict[str, Any]) -> None:
    fields = {name: sorted(part) if isinstance(part, list) else part
              for name, part in fields.items()}  # fmt: skip
    assert form.fields(form.written(fields), NAMES) == fields


def test_tag_meant_finds_the_kind_from_the_names_of_its_fields() -> None:
    kinds, names = {"beta": Beta, "beta-ab": BetaAb}, {"beta": ["alpha"], "beta-ab": ["a", "b"]}
    assert tag_meant(kinds, {"beta": {"a": {}, "b": {}}}, names) == "beta-ab"
    assert tag_meant(kinds, {"beta": {"alpha": {}}}, names) == "beta"
    assert short_form(Beta) is None
