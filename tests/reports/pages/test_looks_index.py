from reports.pages.looks_index import looks_index
from reports.pages.published import PUBLISHED


def test_the_replay_of_published_studies_is_the_committed_one() -> None:
    assert looks_index() == (PUBLISHED / "looks.md").read_text(encoding="utf-8")
