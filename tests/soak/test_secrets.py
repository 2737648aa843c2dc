from tests.hostile_addresses import CANARIES, addresses
from tests.soak.secrets import leaks, texts_of


def test_secrets_are_found_in_any_letter_case_and_a_masked_address_is_not() -> None:
    assert leaks(f"x{CANARIES[0].upper()}y")
    assert leaks(CANARIES[1])
    assert not leaks("postgresql://***@host/db")


def test_texts_shown_for_addresses_and_library_errors_contain_no_secret() -> None:
    texts = [text for url in addresses(200) for text in texts_of(url)]
    assert len(texts) > 200 * 4
    assert [text for text in texts if leaks(text)] == []
