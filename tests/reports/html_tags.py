"""Tags of an HTML page, for tests: ids, addresses, headings and text."""

from html.parser import HTMLParser

_VOID = {"meta", "img", "br", "link", "hr", "input"}


class Tags(HTMLParser):
    """HTML parser that fails on tags closed out of order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.headings: list[str] = []
        self.words = ""
        self.feed(page)
        self.close()
        assert self.open == []

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.found]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))
        if tag not in _VOID:
            self.open.append(tag)
        kept = {"id": self.ids, "data-heading": self.headings}
        kept |= {"src": self.addresses, "href": self.addresses}
        for name, value in attrs:
            if name in kept:
                kept[name].append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data
