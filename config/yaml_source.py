"""YAML with positions: plain data, and where in the file each part of it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from config.mistakes import Loc, Mistake, TenantError, field_name
from config.yaml_words import curly, invisible, said, tabs, without_line

MAX_BYTES = 512 * 1024
_MAX_NODES = 50_000  # aliases may name a part many times; a file can't blow up memory with them
_MAX_DEPTH = 20
_MAX_REPAIRS = 20

# YAML takes no braces in a plain value inside {…}, but `llm: {api_key: ${NAME}}` is what people write. So the braces of
# `${NAME}` go through the parser as two private characters, one for one: every position stays as it is. `*` is the
# tenant's id (config.secrets).
_OPEN, _CLOSE = "\ue000", "\ue001"
_PLACE = re.compile(r"\$\{([A-Za-z_*][A-Za-z0-9_*]*)\}")
_HIDDEN = re.compile(rf"\${_OPEN}([A-Za-z0-9_*]+){_CLOSE}")

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Position = tuple[int, int]


@dataclass(slots=True)
class Document:
    """A file's data and positions (line and column from 1) by path into the data.

    `mistakes`: what is wrong in its writing. Where `cut` is true, a part could not be read: what is missing is no news.
    """

    file: Path
    data: dict[str, Any]
    keys: dict[Loc, _Position] = field(default_factory=dict)
    values: dict[Loc, _Position] = field(default_factory=dict)
    files: dict[Loc, Path] = field(default_factory=dict)  # of the parts that another file brought in
    mistakes: list[Mistake] = field(default_factory=list)
    cut: bool = False

    def mistake(self, loc: Loc, what: str, remedy: str, *, at_key: bool = False) -> Mistake:
        """A mistake at `loc`, placed at the nearest part of the file that is there."""
        for end in range(len(loc), 0, -1):
            part = loc[:end]
            # A section is found by its name; a value that stands in its own line by itself.
            whole = end == len(loc) and not at_key
            position = (self.values.get(part) if whole else None) or self.keys.get(part) or self.values.get(part)
            if position:
                return Mistake(self.files.get(part, self.file), *position, field_name(loc), what, remedy)
        return Mistake(self.file, 1, 1, field_name(loc), what, remedy)


class _Syntax(Exception):
    """It is no YAML from here on."""

    def __init__(self, found: Mistake) -> None:
        super().__init__(str(found))
        self.mistake = found


def read_bytes(file: Path) -> bytes:
    """The file's content. Raises TenantError for one that is too big, no file, or unreadable."""
    what, remedy = "can't be read", "let the user that runs the bot read it"
    try:
        if not file.exists():
            what, remedy = "does not exist", "check its path"
        elif not file.is_file():  # opening a pipe would wait for ever
            what, remedy = "is not a file", "put a file in its place"
        else:
            with file.open("rb") as opened:
                raw = opened.read(MAX_BYTES + 1)
            if len(raw) <= MAX_BYTES:
                return raw
            what, remedy = f"is larger than {MAX_BYTES // 1024} KiB", "keep long instructions in instructions_file"
    except OSError as error:
        what = f"can't be read ({error.strerror})"
    raise TenantError([Mistake(file, 1, 1, "(file)", what, remedy)])


def decode(file: Path, raw: bytes) -> str:
    """UTF-8, with or without a byte order mark. Raises TenantError with the place of the first wrong byte."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        what = "is saved as UTF-16 (Windows calls it Unicode)"
        raise _at(file, 1, 1, what, "save the file as UTF-8 in the editor")
    try:
        return raw.decode("utf-8-sig").lstrip("\ufeff")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, len(before.rsplit(b"\n", 1)[-1].decode("utf-8", "replace")) + 1
        raise _at(file, line, column, "is not UTF-8 text", "save the file as UTF-8 in the editor") from None


def parse(file: Path, text: str) -> Document:
    """As much as can be read; `mistakes` says what could not. Raises TenantError where nothing is left to read.

    After a place that is no YAML it goes on without that line, so that all such places are told at once.
    """
    mistakes: list[Mistake] = []
    cut: set[int] = set()
    for _ in range(_MAX_REPAIRS):
        try:
            document = _read(file, text)
        except _Syntax as error:
            found = tabs(file, text)
            if found:
                text = re.sub(r"(?m)^[ \t]+", lambda indent: indent[0].replace("\t", "  "), text)
                mistakes += found
                continue
            line = error.mistake.line
            if not any(one.line == line for one in mistakes):
                mistakes.append(error.mistake)
            text = without_line(text, line, whole=line in cut)
            cut.add(line)
        except TenantError:
            if mistakes:  # what is left after the repairs means nothing
                break
            raise
        else:
            document.mistakes += mistakes
            document.cut = document.cut or bool(cut)
            return document
    raise TenantError(mistakes)


def _read(file: Path, text: str) -> Document:
    try:
        loader = _Loader(_PLACE.sub(rf"${_OPEN}\1{_CLOSE}", text))
        try:
            root = loader.get_single_node()
            if root is None:
                raise _at(file, 1, 1, "is empty", "write a tenant in it: `chat-chat tenants new ID` shows how")
            if not isinstance(root, yaml.MappingNode):
                raise _at(file, 1, 1, "is not a set of fields", "write fields as `name: …`, one a line")
            walk = _Walk(Document(file, {}), loader)
            walk.document.data = walk.value(root, ())
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise _Syntax(said(file, text, error)) from None
    return walk.document


class _Walk:
    """Turns YAML nodes into plain data and writes down their positions."""

    def __init__(self, document: Document, loader: Any) -> None:
        self.document = document
        self._loader = loader
        self._left = _MAX_NODES

    def value(self, node: yaml.Node, loc: Loc) -> Any:
        position = _position(node)
        self.document.values[loc] = position
        self._left -= 1
        if self._left < 0 or len(loc) > _MAX_DEPTH:
            raise _at(self.document.file, *position, "is nested too deep or repeats too much", "write it out plainly")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, loc)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*loc, index)) for index, item in enumerate(node.value)]
        tag = node.tag.removeprefix("tag:yaml.org,2002:")
        if tag in ("int", "float", "bool", "null"):
            try:
                return self._loader.construct_object(node)
            except ValueError:
                return _plain(node)
        if tag not in ("str", "timestamp", "value", "merge", "binary"):
            self._wrong(loc, "has a YAML tag", "write the plain value, without `!`")
        if not getattr(node, "style", None) and curly(node.value):
            remedy = 'type straight ones ("), or put straight ones around them if customers should see them'
            self._wrong(loc, "stands in curly quotes, which YAML takes for letters", remedy)
            return _plain(node)[1:-1]
        return _plain(node)

    def _wrong(self, loc: Loc, what: str, remedy: str) -> None:
        self.document.mistakes.append(self.document.mistake(loc, what, remedy))

    def _mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            position = _position(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise _at(self.document.file, *position, "has a field whose name is no word", "put braces in quotes")
            key = _plain(key_node)
            if invisible(key):  # it may be indentation: what belongs where is not known
                what, remedy = "has an invisible character before or in its name", "delete it and type plain spaces"
                name = field_name((*loc, key.strip()))
                self.document.mistakes.append(Mistake(self.document.file, *position, name, what, remedy))
                self.document.cut = True
                continue
            if key == "<<":
                raise _at(self.document.file, *position, "uses a merge key (<<)", "write the fields out")
            if key in out:
                first = self.document.keys[(*loc, key)][0]
                what, remedy = f"stands twice, first in line {first}", "keep one of the two"
                name = field_name((*loc, key))
                self.document.mistakes.append(Mistake(self.document.file, *position, name, what, remedy))
                continue
            self.document.keys[(*loc, key)] = position
            out[key] = self.value(value_node, (*loc, key))
        return out


def _plain(node: yaml.Node) -> str:
    return _HIDDEN.sub(r"${\1}", str(node.value))


def _position(node: yaml.Node) -> _Position:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _at(file: Path, line: int, column: int, what: str, remedy: str) -> TenantError:
    return TenantError([Mistake(file, line, column, "(file)", what, remedy)])
