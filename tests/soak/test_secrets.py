from tests.hostile_addresses import CANARIES, addresses
from tests.soak.secrets import leaks, texts_of


def test_a_secret_is_seen_in_any_case_and_nothing_else_is() -> None:
    assert leaks(f"x{CANARIES[0].upper()}y")
    assert leaks(CANARIES[1])
    assert not leaks("postgresql://***@host/db")


def test_each_address_gives_what_is_shown_and_the_errors_of_libraries() -> None:
    texts = [text for url in addresses(200) for text in texts_of(url)]
    assert len(texts) > 200 * 4
    assert [text for text in texts if leaks(text)] == []
