"""The suite of tests/contracts/small.py on files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memory.conversation_files import ConversationFiles
from memory.lists import FileLists
from tests.contracts.small import ConversationsContract, ListsContract


class TestLists(ListsContract):
    @pytest.fixture
    def here(self, tmp_path: Path) -> FileLists:
        return FileLists(tmp_path)

    @pytest.fixture
    def there(self, tmp_path: Path) -> FileLists:
        return FileLists(tmp_path)

    @pytest.fixture
    def looked(self) -> Callable[[], None]:
        return lambda: None  # each question is a look


class TestConversations(ConversationsContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ConversationFiles:
        return ConversationFiles(tmp_path)

    @pytest.fixture
    def other(self, tmp_path: Path) -> ConversationFiles:
        return ConversationFiles(tmp_path)
