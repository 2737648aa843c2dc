"""TreeReader: read nested dataclasses from a document, and collect the faults."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from itertools import islice
from typing import Any, get_args, get_origin

from mixup_core.plugins.registers import REGISTERS
from mixup_core.problem import DataError
from mixup_core.rules import RuleError, shown
from mixup_core.tree.building import parsed
from mixup_core.tree.catalogue import kind_name
from mixup_core.tree.parts import members, unmarked
from mixup_core.tree.spelling_errors import SpellingError
from sweeps.reading.strict_yaml import REFUSED, At, Document, Refused, holds_refused
from sweeps.reading.study_keys import range_hint
from sweeps.reading.tree_paths import Setting, Settings, TreePaths, blamed

_MOST_NAMED = 8
"""Number of arms that an error names if there are more."""
MAX_HINTS = 20
"""Number of faults after which no similar name is suggested any longer, because suggestions are
slow."""

PLUGIN = "--plugin"
"""Option that loads a plugin; faults of unknown names suggest it."""


class TreeReader:
    """Reads values of a document into a nested dataclass; reports and skips faulty values."""

    def __init__(
        self,
        document: Document,
        paths: TreePaths,
        elsewhere: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Create a reader.

        Args:
            document: Content of a study file; faults are added to it.
            paths: The paths of the dataclass.
            elsewhere: Returns names that belong in another place of the file, with their path.
        """
        self._elsewhere = elsewhere
        self.document = document
        self.faults = document.faults
        self.paths = paths

    def report(
        self, at: At, text: str, word: str = "", known: Iterable[str] = (), noun: str = ""
    ) -> None:
        """Add a fault at a path of the document; suggest a similar known word, if there is one.

        If a plugin may define the unknown word, the message says how to load the plugin.

        Args:
            at: Path of the fault.
            text: Text of the message.
            word: A word that may be misspelt; empty for none.
            known: Words that would be correct.
            noun: Noun of the registry that lacks the word; empty if no registry has such words.
        """
        plugin = (
            f"; if a plugin defines this {noun}, add {PLUGIN} FILE" if noun in REGISTERS else ""
        )
        self.document.report(at, f"{text}{self._hint(word, known)}{plugin}")

    def _hint(self, word: str, known: Iterable[str]) -> str:
        return did_you_mean(word, known) if word and len(self.faults) < MAX_HINTS else ""

    def mapping(self, value: Any, at: At) -> Mapping[str, Any]:
        """Return a value if it is a mapping; otherwise report it and return an empty mapping."""
        if not isinstance(value, dict | Refused):
            self.report(at, f"expected a mapping, got {shown(value)}")
        return value if isinstance(value, dict) else {}

    def filled(self, value: Any, at: At, what: str) -> Mapping[At, Any]:
        """Return the items of a non-empty list, by path; for any other value, report a fault.

        Args:
            value: The value in the file.
            at: Its path in the file.
            what: Noun for the items in messages, such as `value`.
        """
        if value is not REFUSED and not (isinstance(value, list) and value):
            self.report(at, f"expected a list of at least one {what}, got {shown(value)}")
        items = value if isinstance(value, list) else ()
        return {(*at, number): item for number, item in enumerate(items)}

    def value(self, hint: Any, value: Any, at: At, noun: str = "") -> Any:
        """Return a value converted to a type; `REFUSED` if it or one of its parts has a fault.

        Args:
            hint: The type, as a field annotation; `object` to return the value unchanged.
            value: The value in the file.
            at: Its path in the file.
            noun: Noun of the registry that has the values of the type, if the type does not say.
        """
        if hint is object:
            return value
        kinds = [member for member in members(hint) if member is not type(None)]
        plain = [kind for kind in kinds if is_dataclass(kind) and not kind_name(kind)]
        is_one = len(kinds) == 1 and value is not None
        if plain and (is_one or isinstance(value, dict)):
            kind: Any = plain[0]
            before = len(self.faults)
            tree, gone = TreeReader(self.document, TreePaths(kind)).section(value, at)
            return REFUSED if gone or len(self.faults) > before else tree
        lists = [kind for kind in map(unmarked, members(hint)) if get_origin(kind) is tuple]
        if lists and isinstance(value, list):
            item, _ = get_args(lists[0])
            items = tuple(self.value(item, part, (*at, n)) for n, part in enumerate(value))
            return REFUSED if any(part is REFUSED for part in items) else items
        try:
            return REFUSED if holds_refused(value) else parsed(hint, value)
        except SpellingError as error:
            is_scalar = isinstance(error.value, bool | int | float)
            quote = "; quote it" if is_scalar and "expected text" in str(error) else ""
            word = error.value if isinstance(error.value, str) else ""
            quote = quote or range_hint(at, word)
            self.report(
                at, f"{error}{quote}", word, error.names, error.noun or (noun if word else "")
            )
        except RuleError as error:
            self.report(at, str(error))
        return REFUSED

    def section(self, value: Any, at: At) -> tuple[Any, frozenset[str]]:
        """Return the dataclass for a mapping, and its paths replaced by defaults; report faults.

        Args:
            value: The mapping in the file.
            at: Its path in the file.
        """
        return self.joined([self.nested(value, at)], at)

    def joined(self, levels: Sequence[Settings], at: At) -> tuple[Any, frozenset[str]]:
        """Return the dataclass for settings, and its paths replaced by defaults; report faults.

        Args:
            levels: Levels of settings; earlier levels have priority.
            at: Path to report for faults that no given value causes.
        """
        given = self.paths.merged(levels)
        for name in self.paths.required:
            if name not in given:
                self.report(at, f"missing key {name!r}")
        tree, gone, errors = self.paths.join(given)
        for error in errors:
            self.blame(error, levels, at)
        return tree, gone

    def blame(self, error: RuleError | DataError, levels: Sequence[Settings], at: At) -> None:
        """Report an error at the most specific setting that it involves, one mistake a line.

        Args:
            error: The broken rule.
            levels: Levels of settings, the most specific first.
            at: Path to report if no setting is involved.
        """
        setting = blamed(error, levels)
        missing = (*at, *(error.fields[0].split(".") if error.fields else ()))
        for line in str(error).split("\n"):
            self.report(missing if setting is None else setting.at, line)

    def nested(self, value: Any, at: At, prefix: str = "") -> dict[str, Setting]:
        """Return the settings in a mapping whose groups are nested mappings, by dotted path.

        Args:
            value: The mapping.
            at: Its path in the file.
            prefix: Dotted path of the group, with a final dot; empty for the whole dataclass.
        """
        leaves = self.paths.leaves
        if not isinstance(value, dict):
            self.mapping(value, at)
            refused = Setting(value=REFUSED, at=at)
            return {path: refused for path in leaves if path.startswith(prefix)}
        settings: dict[str, Setting] = {}
        for key, part in value.items():
            path, head, here = f"{prefix}{key}", f"{prefix}{key.partition('.')[0]}", (*at, key)
            if "." not in key and path in self.paths.groups:
                settings |= self.nested(self._by_name(part, path), here, f"{path}.")
            elif path in leaves and ("." not in key or head in self.paths.choices):
                settings[path] = self.setting(path, part, here)
            else:
                self._report_unknown(key, prefix, here)
        return settings

    def _by_name(self, value: Any, path: str) -> Any:
        """Return `{name: timm, architecture: A}` for the short form `{timm: {architecture: A}}`.

        Other values are returned unchanged.
        """
        leaf = self.paths.leaves.get(f"{path}.name")
        if leaf is None or not isinstance(value, dict) or len(value) != 1:
            return value
        ((name, content),) = value.items()
        is_whole = name in leaf.part.options and f"{path}.{name}" not in self.paths.leaves
        return {"name": name, **content} if is_whole and isinstance(content, dict) else value

    def dotted(self, value: Any, at: At) -> dict[str, Setting]:
        """Return the settings in a mapping with dotted keys; groups may be nested mappings."""
        if not isinstance(value, dict):
            return self.nested(value, at)
        settings: dict[str, Setting] = {}
        for path, part in value.items():
            here = (*at, path)
            if path in self.paths.groups and isinstance(part, dict):
                settings |= self.nested(part, here, f"{path}.")
            elif self.is_path(path, here):
                settings[path] = self.setting(path, part, here)
        return settings

    def setting(self, path: str, value: Any, at: At) -> Setting:
        """Return the setting for a dotted path, with its value converted to the path's type."""
        part, reserved = self.paths.leaves[path].part, self.paths.reserved
        for tag, content in value.items() if part.options and isinstance(value, dict) else ():
            for key in content if isinstance(content, dict) else ():
                if (inside := f"{path}.{key}") in reserved:
                    self.report((*at, tag, key), reserved[inside])
        is_kind = isinstance(value, str) and value in part.options
        read = value if is_kind else self.value(part.hint, value, at, part.noun)
        return Setting(value=read, at=at)

    def is_path(self, path: str, at: At) -> bool:
        """Return True if a dotted path names one value of the dataclass; report it if not."""
        if path in self.paths.leaves:
            return True
        if path in self.paths.reserved:
            self.report(at, self.paths.reserved[path])
        elif path in self.paths.groups:
            inside = ", ".join(known for known in self.paths.leaves if known.startswith(f"{path}."))
            self.report(at, f"names a group of values; give one of {inside}")
        else:
            hint = self._other_name(path) or self._hint(path, self.paths.leaves)
            self.report(at, f"unknown path{hint}")
        return False

    def _report_unknown(self, key: str, prefix: str, at: At) -> None:
        path, leaves = f"{prefix}{key}", self.paths.leaves
        if path in self.paths.reserved:
            self.report(at, f"{key!r} {self.paths.reserved[path]}")
        elif path in leaves or path in self.paths.groups:
            nested = path.replace(".", ": {", 1)
            self.report(at, f"unknown key {key!r}; this is nested, write {nested}: ...}}")
        else:
            inside = [name.removeprefix(prefix) for name in leaves if name.startswith(prefix)]
            siblings = dict.fromkeys(name.partition(".")[0] for name in inside)
            hint = self._other_name(path) or self._hint(key, siblings) or self._hint(path, leaves)
            self.report(at, f"unknown key {key!r}{hint}")

    def _other_name(self, path: str) -> str:
        name = path.rpartition(".")[2]
        meant = self.paths.other_names.get(name) or self._elsewhere().get(path)
        return f" (did you mean {meant}?)" if meant else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` with the most similar known word; empty if none is similar.

    The last part of a dotted path is enough: `lr` finds `optimizer.lr`. Only the first 1,000 known
    words are compared.
    """
    known = list(islice(known, 1000))
    by_tail = {path.rpartition(".")[2]: path for path in reversed(known)}
    nearest = difflib.get_close_matches(word, known, n=1) or [
        by_tail[tail] for tail in difflib.get_close_matches(word.rpartition(".")[2], by_tail, n=1)
    ]
    return f" (did you mean {nearest[0]}?)" if nearest else ""


def named(word: str, known: Iterable[str]) -> str:
    """Return known words as text; of many only those most similar to a word, and their number."""
    known = list(known)
    if len(known) <= _MOST_NAMED:
        return ", ".join(known)
    likeness = {name: difflib.SequenceMatcher(None, name, word).ratio() for name in known[:1000]}
    near = sorted(likeness, key=likeness.__getitem__, reverse=True)[:_MOST_NAMED]
    shown = [name for name in known[:1000] if name in near]
    return f"{', '.join(shown)} and {len(known) - len(shown)} more"
