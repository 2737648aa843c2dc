"""Ledger: a list in the store of the studies that were launched there, with their settings.

    studies/<study>/<settings>.json    the newest launch of a study, with all settings of its arms
    data/<digest>.json                 class and image names of users' own datasets (image folders)

No result of a run depends on the ledger; a search with `warm_start` looks in it for points that
other launches have trained. A record that cannot be read is skipped, and the next launch writes it
again.
"""

import dataclasses
import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, Any, Self

from mixup_core.addresses import without_secrets
from mixup_core.config.written_forms import flatten, plugins_of
from mixup_core.keys import stage_keys
from mixup_core.plugins.stand_ins import entry_facts
from mixup_core.problem import KnownData
from mixup_core.rules import printable
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError, UnreadableError
from mixup_core.store.json_records import (
    AnyText,
    Key,
    Line,
    Natural,
    Time,
    matching,
    parse_note,
    record_in_note,
)
from mixup_core.store.manifests import STUDY_NAME
from sweeps.study.study import Study, spell_seeds

# Frozen: these names, and the fields of `Launch`. Studies of earlier launches could no longer be
# read by name; tests/contracts/test_homes.py fails.
_TOP = "studies"
_DATA = "data"
_NAME = re.compile(rf"{_TOP}/({STUDY_NAME})/([0-9a-f]+)\.json")
_PLUGIN = "plugin "
_DIGITS = 16
_MOST_NAMED = 3
"""Largest number of differing settings that a text lists; further ones are only counted."""


_RunText = Annotated[str, matching("[0-9a-f]{4,64} [0-9]{1,19} .{1,1000}", "KEY SEED ARM")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """Record of a study's launch in the store: its settings, seeds, runs and command line."""

    study: str
    settings: Key
    """Hash of the study's settings (`Study.settings`)."""
    command: Line
    at_ms: Time
    """Time at which the launch started, Unix time in ms."""
    seeds: tuple[Natural, ...]
    arms: Mapping[str, Mapping[str, Any]]
    """Configuration of each arm of the study file by dotted path, without the seed."""
    ends: tuple[Key, ...]
    """Final stage key of every run that the study had at that time."""
    runs: tuple[_RunText, ...] = ()
    """A text `KEY SEED ARM` for every run that the study had at that time; empty if not
    recorded.
    """
    source: AnyText = ""
    """Text of the study file with the overrides applied (`Study.source`); empty if not recorded."""
    folder: AnyText = ""
    """Folder that relative paths in the study file start from."""
    parts: tuple[Any, ...] = ()
    """Facts about the plugin entries that the study names, for tables (`stand_ins.entry_facts`)."""
    archive: str = ""
    """sha256 of the archive that brought this record; empty for a launch in this store."""

    @classmethod
    def of(cls, study: Study, command: str, at_ms: int | None = None) -> Self:
        return cls(
            study=study.name,
            settings=study.settings,
            command=command,
            at_ms=at_ms or time.time_ns() // 1_000_000,
            seeds=study.seeds,
            arms=settings_of(study),
            ends=tuple(dict.fromkeys(stage_keys(run.config)[-1] for run in study.runs())),
            runs=tuple(f"{run.key} {run.seed} {run.arm}" for run in study.runs()),
            source=study.source,
            folder=study.folder,
            parts=tuple(entry_facts(study.source, study.arms.values())),
        )

    def num_finished(self, stored: Iterable[str]) -> int:
        """Return how many of the launch's runs are completely stored."""
        return len(set(self.ends) & set(stored))


def enter(study: Study, store: Store, command: str, at_ms: int | None = None) -> int:
    """Record a launch, whose lease the caller holds; return its start as Unix time in ms."""
    launch = Launch.of(study, command, at_ms)
    facts: dict[str, Mapping[str, Any]] = {}
    if study.problem.data is not None:
        needs = study.problem.data()
        for config in study.arms.values():
            facts |= needs.facts(config)
    note(launch, facts, store)
    return launch.at_ms


def note(launch: Launch, facts: Mapping[str, Mapping[str, Any]], store: Store) -> None:
    """Write a record of a launch and facts of its datasets.

    That of an archive replaces only the record that an archive of an earlier launch has brought.
    """
    notes = {f"{_TOP}/{launch.study}/{launch.settings}.json": dataclasses.asdict(launch)} | {
        _data_name(digest): dict(of_digest)
        for digest, of_digest in facts.items()
        if _is_name(digest)
    }
    with suppress(StoreError, IsADirectoryError):
        for one in launches(store, launch.study) if launch.archive else ():
            if one.archive and one.settings == launch.settings and one.at_ms < launch.at_ms:
                forget_launch(one, store)
        for name, content in notes.items():
            write = store.files.create if launch.archive else store.files.write
            write(name, json.dumps(content).encode())


def forget_launch(launch: Launch, store: Store) -> None:
    store.files.remove(f"{_TOP}/{launch.study}/{launch.settings}.json")


def was_last(study: Study, store: Store) -> bool:
    """Return True unless the newest launch of the study had other settings.

    Reports of a driver name arms and seeds, which other settings have too.
    """
    last = launches(store, study.name)[-1:]
    return all(launch.archive or launch.settings == study.settings for launch in last)


def known_data(store: Store, study: str) -> KnownData:
    """Return the configurations of launches, newest first, and facts of image folders by digest."""
    configs = [
        config for launch in reversed(launches(store, study)) for config in launch.arms.values()
    ]
    names = {_data_name(digest): digest for digest in digests_in(configs)}
    contents = store.files.read_present(list(names))
    notes = {names[name]: parse_note(content) for name, content in contents}
    facts = {digest: note for digest, note in notes.items() if note is not None}
    return KnownData(configs=configs, facts=facts)


def digests_in(configs: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the digests of image folders in configurations by dotted path."""
    values = (value for arm in configs for path, value in arm.items() if path.endswith(".digest"))
    return set(filter(_is_name, values))


def stored_launch(store: Store, reference: str) -> Launch | None:
    """Return the newest launch of a study in a store; None if there is none."""
    name, _, settings = reference.partition("@")
    if not re.fullmatch(STUDY_NAME, name):
        return None
    matches = [
        launch for launch in launches(store, name)
        if launch.source and launch.settings.startswith(settings)
    ]  # fmt: skip
    return matches[-1] if matches else None


def reference_of(study: str, settings: str) -> str:
    """Return the name of a study with the first digits of its settings, for `stored_launch`."""
    return f"{study}@{settings[:8]}"


def _data_name(digest: str) -> str:
    return f"{_DATA}/{digest}.json"


def _is_name(digest: object) -> bool:
    return isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest) is not None


def launches(store: Store, study: str | None = None) -> tuple[Launch, ...]:
    """Return the newest launch of each study and settings: those of archives, then this store's."""
    top = _TOP if study is None else f"{_TOP}/{study}"
    names = sorted(name for name in store.files.names(top) if _NAME.fullmatch(name))
    records = [_launch(name, content) for name, content in store.files.read_present(names)]
    readable = (launch for launch in records if launch is not None)
    return tuple(sorted(readable, key=lambda launch: (not launch.archive, launch.at_ms)))


def settings_of(study: Study) -> dict[str, dict[str, Any]]:
    """Return each arm of the file by dotted path, with digests of its plugins, without seed."""
    return {
        arm: {
            **{path: value for path, value in flatten(study.arms[arm]).items() if path != "seed"},
            **plugin_settings(plugins_of(study.arms[arm])),
        }
        for arm in study.fixed
    }


def plugin_settings(digests: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of an arm's settings that name its plugins."""
    return {f"{_PLUGIN}{name}": digest[:_DIGITS] for name, digest in digests.items()}


def same_plugins(stored: Mapping[str, Mapping[str, Any]], study: Study) -> bool:
    """Return True if a launch and a study have the same code of each plugin that both use."""
    ours = {path: code for arm in settings_of(study).values() for path, code in arm.items()}
    theirs = (item for arm in stored.values() for item in arm.items())
    return all(ours.get(path, code) == code for path, code in theirs if path.startswith(_PLUGIN))


def spell_differences(
    stored: Mapping[str, Mapping[str, Any]], study: Study, seeds: Iterable[int] = ()
) -> str:
    """Return how a stored and a requested study differ: `base.epochs=50; you asked for 2`."""
    asked = json.loads(json.dumps(settings_of(study)))
    shared = [arm for arm in asked if arm in stored]
    paths = dict.fromkeys(path for arm in shared for path in (*stored[arm], *asked[arm]))
    rows = _plugin_differences([stored[arm] for arm in shared], [asked[arm] for arm in shared])
    for path in paths:
        if path.endswith(".folder") or path.startswith(_PLUGIN):
            continue
        pairs = {
            arm: (stored[arm].get(path), asked[arm].get(path))
            for arm in shared
            if stored[arm].get(path) != asked[arm].get(path)
        }
        is_common = len(pairs) == len(shared) and len(set(map(json.dumps, pairs.values()))) == 1
        for arm, (old, new) in list(pairs.items())[: 1 if is_common else None]:
            place = f"base.{path}" if is_common else f"arms.{arm}.{path}"
            if path.endswith(".digest"):
                folder_path = f"{path.removesuffix('digest')}folder"
                folder = asked[arm].get(folder_path) or stored[arm].get(folder_path)
                old, new = f"other files in {folder} ({str(old)[:8]})", str(new)[:8]
            rows.append((f"{place}={_plain(old)}", _plain(new)))
    rows += [(f"no arm {arm}", f"arm {arm}") for arm in asked if arm not in stored]
    rows += [(f"arm {arm}", f"no arm {arm}") for arm in stored if arm not in asked]
    seeds = tuple(seeds)
    if seeds and not set(study.seeds) <= set(seeds):
        rows.append((spell_seeds(seeds), spell_seeds(study.seeds)))
    if not rows:
        return ""
    hidden = len(rows) - _MOST_NAMED
    more = f" and {hidden} more" if hidden > 0 else ""
    if len(rows) > 1:
        rows = [(old, f"{old.partition('=')[0]}={new}" if "=" in old else new) for old, new in rows]
    have, wanted = zip(*rows[:_MOST_NAMED], strict=True)
    return f"{', '.join(have)}{more}; you asked for {', '.join(wanted)}{more}"


def _plugin_differences(
    stored: Iterable[Mapping[str, Any]], asked: Iterable[Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """Return the plugins of stored and of requested arms whose source is not in both."""
    before, now = (
        {_plain(sha): path for arm in arms for path, sha in arm.items() if path.startswith(_PLUGIN)}
        for arms in (stored, asked)
    )
    gone, come = (
        sorted((path, sha) for sha, path in own.items() if sha not in other)
        for own, other in ((before, now), (now, before))
    )
    rows = []
    for old, new in zip_longest(gone, come):
        have = "no plugin"
        if old is not None:
            have = f"another version of the {old[0]} (source {old[1][:8]})"
        if new is None:
            rows.append((have, "no plugin"))
        else:
            wanted = "the version" if old is not None and old[0] == new[0] else f"the {new[0]}"
            rows.append((have, f"{wanted} with source {new[1][:8]}"))
    return rows


def _launch(name: str, content: bytes | UnreadableError) -> Launch | None:
    """Return the launch recorded in a file; None if it is unreadable or has another name."""
    launch = record_in_note(Launch, name, content)
    if launch is None or not is_printable(launch):
        return None
    if name != f"{_TOP}/{launch.study}/{launch.settings}.json":
        return None
    # Earlier versions recorded command lines with passwords.
    return dataclasses.replace(launch, command=without_secrets(launch.command))


def is_printable(launch: Launch) -> bool:
    """Return True if no name in a launch, which may be of other users, disturbs a terminal."""
    paths = (path for of_arm in launch.arms.values() for path in of_arm)
    return all(name.isprintable() for name in (*launch.arms, *paths))


def _plain(value: Any) -> str:
    return "nothing" if value is None else printable(str(value))
