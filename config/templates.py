"""`extends: base.yaml`: a tenant's file over a template that many share.

Sections are put together field by field, the tenant's own value going before the template's. A list stands instead of
the template's, and so do hours, where a day that is left out means something; but of `faq` the template's entries
follow the tenant's own, except those that ask the same. Nothing after a field's colon leaves the template's in force.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from config.mistakes import Loc, TenantError, nearest
from config.yaml_source import Document, decode, parse, read_bytes

EXTENDS = "extends"
_WHOLE: tuple[Loc, ...] = (("business_hours",), ("holidays",))
_MOST = 5  # templates above one another


def extended(document: Document, config_dir: Path, depends: set[Path]) -> Document:
    """The document over its templates. `depends` takes in every template's path, also of one that is missing.

    Raises TenantError for a template that can't be had; what is wrong in one is among the document's mistakes.
    """
    return _extended(document, config_dir.resolve(), depends, [document.file.resolve()])


def _extended(document: Document, root: Path, depends: set[Path], chain: list[Path]) -> Document:
    if EXTENDS not in document.data:
        return document
    name = document.data.pop(EXTENDS)
    if name is None:
        return document
    path = _found(document, name, root, depends)
    if path in chain:
        way = " → ".join(one.name for one in [*chain[chain.index(path) :], path])
        raise _wrong(document, f"leads back to itself: {way}", "remove it from one of these files")
    if len(chain) > _MOST:
        raise _wrong(document, f"is the template of a template over {_MOST} levels", "put some of them together")
    try:
        base = parse(path, decode(path, read_bytes(path)))
    except TenantError as error:
        raise TenantError([*document.mistakes, *error.mistakes]) from None
    base = _extended(base, root, depends, [*chain, path])
    return _Put(document, base).together()


def _found(document: Document, name: Any, root: Path, depends: set[Path]) -> Path:
    """The template's file: beside the one that names it, else in CONFIG_DIR; never outside CONFIG_DIR."""
    remedy = "name a file beside this one or in the config folder, such as base.yaml"
    if not isinstance(name, str) or "\0" in name or not name.strip():
        raise _wrong(document, "names no file", remedy)
    try:
        places = list(dict.fromkeys((base / name).resolve() for base in (document.file.parent, root)))
        inside = [place for place in places if place.is_relative_to(root)]
        depends.update(inside)
        path = next((place for place in places if place.is_file()), None)
        if Path(name).is_absolute() or (path is not None and path not in inside) or not inside:
            raise _wrong(document, "names a file outside the config folder", remedy)
        if path is None:
            raise _wrong(document, "names a template that does not exist", _hint(name, places) or remedy)
    except (OSError, RuntimeError):  # a name that is too long, links that go in a circle
        raise _wrong(document, "names a template that can't be found", remedy) from None
    return path


def _hint(name: str, places: list[Path]) -> str | None:
    """The template that was meant: a name like it, in one of the folders where it would be."""
    folders = {place.parent for place in places if place.parent.is_dir()}
    names = [path.name for folder in folders for path in folder.glob("*.y*ml")]
    near = nearest(Path(name).name, names)
    return f"did you mean {Path(name).parent / near}?" if near else None


def _wrong(document: Document, what: str, remedy: str) -> TenantError:
    return TenantError([*document.mistakes, document.mistake((EXTENDS,), what, remedy)])


class _Put:
    """Two documents as one, each part with its place in the file it came from."""

    def __init__(self, own: Document, base: Document) -> None:
        self._own, self._base = own, base
        self._made = Document(own.file, {}, dict(own.keys), dict(own.values), dict(own.files))
        self._made.mistakes = [*own.mistakes, *base.mistakes]
        self._made.cut = own.cut or base.cut

    def together(self) -> Document:
        self._made.data = self._section(self._own.data, self._base.data, ())
        return self._made

    def _section(self, own: dict[str, Any], base: dict[str, Any], loc: Loc) -> dict[str, Any]:
        out = dict(own)
        for key, value in base.items():
            here = (*loc, key)
            mine = own.get(key)
            if isinstance(mine, dict) and isinstance(value, dict) and here not in _WHOLE:
                out[key] = self._section(mine, value, here)
            elif here == ("faq",) and isinstance(mine, list) and isinstance(value, list):
                out[key] = self._faq(mine, value)
            elif mine is None:
                out[key] = value
                self._take(here, here)
        return out

    def _faq(self, own: list[Any], base: list[Any]) -> list[Any]:
        asked = {question for entry in own for question in _questions(entry)}
        out = list(own)
        for index, entry in enumerate(base):
            if not asked.intersection(_questions(entry)):
                self._take(("faq", index), ("faq", len(out)))
                out.append(entry)
        return out

    def _take(self, source: Loc, to: Loc) -> None:
        """The places of a part of the template, and of all below it."""
        base, made = self._base, self._made
        for places, taken in ((base.keys, made.keys), (base.values, made.values)):
            for loc, place in places.items():
                if loc[: len(source)] == source:
                    here = (*to, *loc[len(source) :])
                    taken[here] = place
                    made.files[here] = base.files.get(loc, base.file)


def _questions(entry: Any) -> set[str]:
    given = entry.get("questions") if isinstance(entry, dict) else None
    asked = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return {" ".join(str(one).casefold().split()) for one in asked}
