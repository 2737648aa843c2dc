"""Addresses: URLs and paths without passwords and other secrets, to be shown and recorded."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

HIDDEN = "***"
"""Text shown in place of a hidden part of an address."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+._-]{0,30}")
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_PATH = re.compile(r"/?([\w .,+=~-]+(/[\w .,+=~-]+)*/?)?")  # matches in linear time
_NO_PATH = re.compile(r"(?!/[^/]).*(:.*@|(//|:/).*[@?#])", re.DOTALL)
"""Matches a URL without its scheme (`USER:PASSWORD@HOST`), or with `//` or `:/` for `://`, that may
have a login or a query. An absolute path does not match."""
_ANYWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}(://|:/|//)\S*")
"""Matches a URL in a text, also one with `:/` or `//` for `://` by mistake."""
_BEFORE_SECRETS = re.compile(r"[@?#]")
_TRAILING = ".,;:!?'\"`)]}>"
"""Punctuation marks that can follow a URL in a sentence and are not part of the URL."""


@dataclass(frozen=True, slots=True)
class Address:
    """A URL or path, written so that login, query and parts that may be secret are hidden."""

    text: str
    is_whole: bool
    """False if a part is hidden; the text cannot be opened as a URL then."""

    def __str__(self) -> str:
        return self.text

    @classmethod
    def hidden(cls, scheme: str = "") -> "Address":
        """Return an address of which at most the scheme is shown."""
        is_known = _SCHEME.fullmatch(scheme) is not None
        return cls(f"{scheme}://{HIDDEN}" if is_known else HIDDEN, is_whole=False)

    @classmethod
    def of_parts(  # noqa: PLR0913  an address has as many
        cls,
        *,
        scheme: str,
        host: str = "",
        port: int | None = None,
        path: str = "",
        login: str = "",
        query: str = "",
    ) -> "Address":
        """Build an address from the components of a URL, hiding those that may be secret.

        The caller splits the URL with the library that opens it. If the password contains an
        unquoted reserved character, such as `/`, a part of the password and the `@` after it can be
        in the host, path or query. So if one of these contains `@`, only the scheme is shown.
        """
        if any("@" in part for part in (host, path, query)):
            return cls.hidden(scheme)
        host = host if not host or _HOST.fullmatch(host) else HIDDEN
        is_container = scheme in _CONTAINERS and _CONTAINER.fullmatch(login)
        shown = [
            scheme if _SCHEME.fullmatch(scheme) else HIDDEN,
            "://",
            f"{login if is_container else HIDDEN}@" if login else "",
            f"[{host}]" if ":" in host else host,
            "" if port is None else f":{port}",
            path if not path or _PATH.fullmatch(path) else f"/{HIDDEN}",
            f"?{HIDDEN}" if query else "",
        ]
        return cls("".join(shown), is_whole=HIDDEN not in "".join(shown))

    @classmethod
    def of_path(cls, path: str, scheme: str = "") -> "Address":
        """Return the address of a local path; hidden if the path may be or contain a URL."""
        is_url = _NO_PATH.match(path) is not None or "://" in path
        if is_url or without_secrets(path) != path:
            return cls.hidden(scheme)
        return cls(f"{scheme}://{path}" if scheme else path, is_whole=HIDDEN not in path)


def web_address(url: str) -> Address:
    """Return the URL of a server, or a text `HOST:PORT`, as an address that hides secrets."""
    if "://" in url:
        return _url_address(url)
    shown = _url_address(f"http://{url}")
    place = shown.text.removeprefix("http://")
    is_plain = shown.is_whole and "/" not in place
    return Address(place, is_whole=True) if is_plain else Address.hidden()


def store_address(url: str) -> Address:
    """Return a path or fsspec URL as an address that hides secrets.

    A chained URL (`filecache::s3://...`) is hidden except for the scheme of the last link (`s3`).
    """
    if "://" not in url:
        return Address.of_path(url)
    if url.startswith("file:///"):
        return Address.of_path(url.removeprefix("file://"), "file")
    link = url.rpartition("::")[2]
    return _url_address(link) if link == url else Address.hidden(link.rpartition("://")[0])


def _url_address(url: str) -> Address:
    scheme = url.partition("://")[0]
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return Address.hidden(scheme)
    place, host = parts.netloc.rpartition("@")[2], parts.hostname or ""
    start = place.lower().find(host)
    return Address.of_parts(
        scheme=parts.scheme or scheme,
        host=place[start : start + len(host)],  # as written: `hostname` is in lower case
        port=port,
        path=parts.path,
        login=parts.netloc.rpartition("@")[0] or HIDDEN * ("@" in parts.netloc),
        query=parts.query + parts.fragment,
    )


_CONTAINERS = {"abfs", "abfss"}
"""Azure protocols. Their URLs have the container before the `@`, where others have the login."""
_CONTAINER = re.compile(r"[a-z0-9-]{3,63}")


def reason(error: BaseException, shown: Address) -> str:
    """Return the text of a library's error, on one line; only its type if it may quote a secret."""
    text = " ".join(str(error).split()) if shown.is_whole else ""
    return text or type(error).__name__


def without_secrets(text: str) -> str:
    """Return a text in which the login, query and other secrets of each URL are hidden."""

    def replaced(found: re.Match[str]) -> str:
        whole = found[0]
        url = whole.rstrip(_TRAILING)
        is_plain = _BEFORE_SECRETS.search(url) is None
        if found[1] != "://":
            return whole if is_plain else HIDDEN + whole[len(url) :]
        path = url.removeprefix("file://").removeprefix("sqlite://")
        address = web_address(url)
        if path != url and path.startswith("/"):
            second = None if is_plain else _ANYWHERE.search(path)
            end = len(url) if second is None else len(url) - len(path) + second.start()
            shown = url[:end] + (HIDDEN if second else "")
        else:
            shown = url if address.is_whole else str(address)
        return shown.partition("?")[0] + whole[len(url) :]

    return _ANYWHERE.sub(replaced, text)


def local_path(text: str | Path) -> Path:
    """Return a path with a leading `~` or `~NAME` expanded, unless there is no such user."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)
