"""Secrets: no address with a secret is shown, whichever library reads it and fails."""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

from fsspec.core import url_to_fs
from sqlalchemy.engine import make_url

from mixup_core.addresses import Address, reason, store_address, web_address, without_secrets
from sweeps.machine.databases import database_address
from tests.hostile_addresses import CANARIES, addresses
from tests.soak.findings import publish
from tests.soak.place import Place

READERS: dict[str, tuple[Callable[[str], Address], Callable[[str], object]]] = {
    "SQLAlchemy": (database_address, make_url),
    "fsspec": (store_address, lambda url: url_to_fs(url.replace("://", "x://", 1))),
    "urllib": (web_address, lambda url: urlopen(url.replace("://", "x://", 1), timeout=1)),
}
"""Libraries by name: how addresses are shown, and a function that parses one offline."""
TOKEN = CANARIES[0]
FAILING = {
    "--optuna": (
        f"postgresql+psycopg://bob:{TOKEN}/z@127.0.0.1:1/db",
        f"postgresql+psycopg://bob:a@{TOKEN}@127.0.0.1/db?connect_timeout=2",
        f"postgresql+psycopg://127.0.0.1:1/db?passwd={TOKEN}",
        f"mysql+nosuch://bob:{TOKEN}@h/d",
    ),
    "--store": (
        f"ftp://bob:{TOKEN}@127.0.0.1:1/x",
        f"ftp://bob:{TOKEN}/d@127.0.0.1:1/x",
        f"nosuch://bob:{TOKEN}@h/x",
        f"zip://a::http://u:{TOKEN}@127.0.0.1:1/x.zip",
        f"http://127.0.0.1:1/x?sig={TOKEN}",
    ),
    "--tracking-uri": (
        f"foo://bob:{TOKEN}@127.0.0.1:1/db",
        f"http://127.0.0.1:1/?token={TOKEN}",
    ),
    "--address": (f"bob:{TOKEN}@127.0.0.1:1", f"http://bob:{TOKEN}@127.0.0.1:1"),
}
"""Addresses of unreachable servers, by command line option."""
COMMANDS = {
    "--address": ("run", "submit"),
    "--tracking-uri": ("plan", "report", "submit"),
}
"""Commands that are tested with the addresses of an option; others use `_ALL`."""
_ALL = ("plan", "run", "report", "sync", "export", "submit")
STUDY = """
study: hidden
base: {data: {name: digits, val_size: 200}, model: {name: mlp}, epochs: 1, batch_size: 512}
arms: {erm: {mix.law: erm}}
seeds: 1
search:
  space: {mix.law: {beta: {log_uniform: [0.5, 2.0]}}}
  points: 1
  objective: val/error
"""


def leaks(text: str) -> bool:
    """Return whether a text contains a canary, in upper or lower case."""
    return any(canary.lower() in text.lower() for canary in CANARIES)


def texts_of(url: str) -> Iterator[str]:
    """Yield all texts shown for an address, and each library's error message about it."""
    if " " not in url:
        yield without_secrets(f"at {url}: refused")
    for shown_of, read in READERS.values():
        shown = shown_of(url)
        yield f"{shown} {shown!r}"
        try:
            read(url)
        except Exception as error:  # each library has its own
            yield reason(error, shown)


def said_by_commands(place: Place) -> Iterator[tuple[str, str]]:
    """Yield command line and output, for each command and failing address."""
    study = place.folder / "hidden.yaml"
    study.write_text(STUDY)
    mixsweep = place.home("home")
    for option, urls in FAILING.items():
        for url in urls:
            for verb in COMMANDS.get(option, _ALL):
                arguments = [verb, str(study), option, url]
                if verb == "submit" and option != "--address":
                    arguments += ["--address", "http://127.0.0.1:1"]
                if verb == "run" and option != "--address":
                    arguments += ["--engine", "inline"]
                process = mixsweep.start(*arguments)
                out, err = process.communicate(timeout=300)
                yield f"{verb} {option} {url}", f"{out}{err}"


def main() -> None:
    """Parse addresses, run commands, search their files, and publish; exit with 1 on any secret."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--addresses", type=int, default=100_000)
    asked, place = parser.parse_args(), Place()
    num_texts, num_commands = 0, 0
    wrong: list[str] = []
    for url in addresses(asked.addresses):
        for text in texts_of(url):
            num_texts += 1
            wrong += [f"{url} shown as {text}"] if leaks(text) else []
    for line, said in said_by_commands(place):
        num_commands += 1
        wrong += [f"{line} says {said}"] if leaks(said) else []
        wrong += [f"{line} ends in a traceback"] if "Traceback" in said else []
    files = [file for file in Path(place.folder).rglob("*") if file.is_file()]
    wrong += [str(file) for file in files if leaks(file.read_bytes().decode(errors="replace"))]
    figures = {
        "addresses": asked.addresses,
        "texts": num_texts,
        "commands": num_commands,
        "files": len(files),
        "violations": wrong,
    }
    title = f"{asked.addresses:,} addresses with a secret, and {num_commands} failing commands"
    publish("secrets", title, figures)
    print("\n".join(wrong) or "every promise was kept")  # noqa: T201
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
