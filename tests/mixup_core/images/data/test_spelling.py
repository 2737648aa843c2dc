"""Spelling: names that are one file on some disks, and the hint that tells them apart."""

import unicodedata

from mixup_core.images.data.spelling import spelled_alike, spelling_hint


def test_names_that_differ_in_capitals_or_accent_form_are_grouped() -> None:
    composed, split = (unicodedata.normalize(form, "Café.jpg") for form in ("NFC", "NFD"))
    assert spelled_alike([split, "a", composed, "A", "b", "b"]) == [["A", "a"], [split, composed]]
    assert spelled_alike(["STRASSE", "Straße", "Gasse"]) == [["STRASSE", "Straße"]]


def test_spelling_hint_names_similar_names_and_is_empty_for_others() -> None:
    assert spelling_hint(["cat", "dog"]) == ""
    assert spelling_hint(["cat", "dog", "Cat"]) == (
        " Cat and cat differ only in capital letters; give both folders the same name."
    )
    said = spelling_hint([unicodedata.normalize(form, "é") for form in ("NFC", "NFD")])
    assert said.startswith(r" The names 'e\u0301' and '\xe9' look equal")
