"""YAML with positions: plain data, and where in the file each part of it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from config.mistakes import Loc, Mistake, TenantError, field_name

MAX_BYTES = 512 * 1024
_MAX_NODES = 50_000  # aliases may name a part many times; a file can't blow up memory with them
_MAX_DEPTH = 20

# YAML takes no braces in a plain value inside {…}, but `llm: {api_key: ${NAME}}` is what people write. So the braces of
# `${NAME}` go through the parser as two private characters, one for one: every position stays as it is.
_OPEN, _CLOSE = "\ue000", "\ue001"
_PLACE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HIDDEN = re.compile(rf"\${_OPEN}([A-Za-z0-9_]+){_CLOSE}")

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Position = tuple[int, int]


@dataclass(slots=True)
class Document:
    """A file's data and positions (line and column from 1) by path into the data."""

    file: Path
    data: dict[str, Any]
    keys: dict[Loc, _Position] = field(default_factory=dict)
    values: dict[Loc, _Position] = field(default_factory=dict)

    def mistake(self, loc: Loc, what: str, remedy: str, *, at_key: bool = False) -> Mistake:
        """A mistake at `loc`, placed at the nearest part of the file that is there."""
        for end in range(len(loc), 0, -1):
            part = loc[:end]
            # A section is found by its name; a value that stands in its own line by itself.
            whole = end == len(loc) and not at_key
            position = (self.values.get(part) if whole else None) or self.keys.get(part) or self.values.get(part)
            if position:
                return Mistake(self.file, *position, field_name(loc), what, remedy)
        return Mistake(self.file, 1, 1, field_name(loc), what, remedy)


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
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, len(before.rsplit(b"\n", 1)[-1].decode("utf-8", "replace")) + 1
        mistake = Mistake(file, line, column, "(file)", "is not UTF-8 text", "save the file as UTF-8 in the editor")
        raise TenantError([mistake]) from None


def parse(file: Path, text: str) -> Document:
    """Raises TenantError for what is not YAML, is no mapping, or has a field twice."""
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
        raise _syntax(file, text, error) from None
    if walk.mistakes:
        raise TenantError(walk.mistakes)
    return walk.document


class _Walk:
    """Turns YAML nodes into plain data and writes down their positions."""

    def __init__(self, document: Document, loader: Any) -> None:
        self.document = document
        self.mistakes: list[Mistake] = []
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
            self.mistakes.append(self.document.mistake(loc, "has a YAML tag", "write the plain value, without `!`"))
        return _plain(node)

    def _mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            position = _position(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise _at(self.document.file, *position, "has a field whose name is no word", "put braces in quotes")
            key = _plain(key_node)
            if key == "<<":
                raise _at(self.document.file, *position, "uses a merge key (<<)", "write the fields out")
            if key in out:
                first = self.document.keys[(*loc, key)][0]
                self.mistakes.append(
                    Mistake(
                        self.document.file,
                        *position,
                        field_name((*loc, key)),
                        f"stands twice, first in line {first}",
                        "keep one of the two",
                    )
                )
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


def _syntax(file: Path, text: str, error: yaml.YAMLError) -> TenantError:
    """The parser's complaint in plain words. What it quotes is left out: it may be part of a secret."""
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position] if isinstance(error.position, int) else ""
        line, column = before.count("\n") + 1, len(before.rsplit("\n", 1)[-1]) + 1
        return _at(file, line, column, "holds a control character", "delete the invisible character in that place")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    lines = text.splitlines()
    for number in (line, line - 1):
        here = lines[number - 1] if 0 < number <= len(lines) else ""
        if "\t" in here[: len(here) - len(here.lstrip())]:
            tab = here.index("\t") + 1
            return _at(file, number, tab, "is indented with a tab", "indent with spaces: YAML takes no tabs there")
    problem = re.sub(r"'[^']{3,}'", "…", str(getattr(error, "problem", None) or "can't be parsed"))
    return _at(file, line, column, f"is not valid YAML: {problem}", _syntax_remedy(problem))


def _syntax_remedy(problem: str) -> str:
    if "mapping values are not allowed" in problem:
        return "put a text with `: ` in it in quotes, and indent the fields of one section alike"
    if "alias" in problem or "cannot start any token" in problem:
        return "put a value that begins with @, %, *, & or ` in quotes"
    if "end of stream" in problem:
        return "close the quotes"
    if "did not find expected" in problem or "expected" in problem:
        return "check commas, brackets and indentation in this line and the one before"
    return "check quotes, brackets and indentation in this line and the one before"
