"""Tenant files are followed while the bot runs: with a real watcher, on real files."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path

import pytest

from config import stamps
from config import tenants as register
from config.settings import Settings
from config.tenants import Tenant, Tenants

WITHIN = 60.0  # seconds: the bot promises five, and a busy machine may need more


def shop(name: str, rest: str = "") -> str:
    return f"name: {name}\nchannels: {{web: {{platform: web}}}}\n{rest}"


def bot(name: str, token: str) -> str:
    return f"name: {name}\nchannels: {{tg: {{platform: telegram, bot_token: '{token}', mode: polling}}}}\n"


class Place:
    """A config folder, the tenants that are loaded from it, and what the callbacks were told."""

    def __init__(self, config: Path) -> None:
        self.config = config
        (config / "tenants").mkdir()
        self.later = 0.0  # seconds by which the clock is ahead
        self.tenants = Tenants(Settings(config_dir=config), lambda: time.time() + self.later)
        self.changes: list[tuple[str, str | None, str | None]] = []
        self.tenants.on_change(self._changed)

    def _changed(self, tenant_id: str, old: Tenant | None, new: Tenant | None) -> None:
        self.changes.append((tenant_id, old.name if old else None, new.name if new else None))

    def file(self, name: str) -> Path:
        return self.config / "tenants" / f"{name}.yaml"

    def write(self, name: str, text: str) -> None:
        self.file(name).write_text(text, encoding="utf-8")

    def name_of(self, tenant_id: str) -> str | None:
        tenant = self.tenants.get(tenant_id)
        return tenant.name if tenant else None

    def state_of(self, tenant_id: str) -> str | None:
        return next((status.state for status in self.tenants.status() if status.id == tenant_id), None)


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> None:
    """Commands that ran in this process before may have silenced what is told here."""
    caplog.set_level(logging.INFO, "config")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
async def watched(place: Place, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """A place with the shops `alpha` and `beta`, loaded and followed; with shorter waits than the bot's own."""
    monkeypatch.setattr(register, "POLL", 0.2)
    monkeypatch.setattr(register, "SETTLED", 0.3)
    monkeypatch.setattr(stamps, "SETTLED", 0.3)
    place.write("alpha", shop("Alpha"))
    place.write("beta", shop("Beta"))
    place.tenants.load()
    place.changes.clear()
    stop = asyncio.Event()
    task = asyncio.create_task(place.tenants.watch(stop))
    yield place
    stop.set()
    await asyncio.wait_for(task, WITHIN)


async def until(true: Callable[[], bool], within: float = WITHIN) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.02)


class TestAtTheStart:
    def test_a_broken_file_does_not_stop_the_others(self, place: Place, caplog: pytest.LogCaptureFixture) -> None:
        place.write("alpha", shop("Alpha", "languag: th\n"))
        place.write("beta", shop("Beta"))
        place.tenants.load()
        assert [tenant.id for tenant in place.tenants.all()] == ["beta"]
        alpha, beta = place.tenants.status()
        assert (alpha.id, alpha.state, dict(alpha.channels)) == ("alpha", "error", {})
        assert str(alpha.errors[0]).endswith("alpha.yaml:3:1: languag: is not a known field — did you mean language?")
        assert (beta.id, beta.state, dict(beta.channels), beta.errors) == ("beta", "ok", {"web": "web"}, ())
        assert beta.file == place.file("beta")
        assert [record.levelname for record in caplog.records].count("ERROR") == 1
        assert place.changes == [("beta", None, "Beta")]

    def test_files_that_are_no_tenants_are_passed_over_or_named(self, place: Place) -> None:
        for name in (".alpha.yaml.swp", "alpha.yaml~", ".#alpha.yaml", "README.md"):
            (place.config / "tenants" / name).write_text("x")
        (place.config / "tenants" / "beta.yml").write_text(shop("Beta"))
        place.tenants.load()
        assert [(status.file.name, status.state) for status in place.tenants.status()] == [("beta.yml", "error")]
        assert place.tenants.status()[0].errors[0].remedy == "rename it to beta.yaml"

    def test_of_two_tenants_with_the_same_token_the_second_is_refused(self, place: Place) -> None:
        place.write("alpha", bot("Alpha", "1:invented"))
        place.write("beta", bot("Beta", "1:invented"))
        place.write("gamma", bot("Gamma", "2:invented"))
        place.tenants.load()
        assert [tenant.id for tenant in place.tenants.all()] == ["alpha", "gamma"]
        (mistake,) = next(status.errors for status in place.tenants.status() if status.id == "beta")
        assert mistake.what == "has the same token as channel tg of tenant alpha"
        assert "invented" not in str(mistake)

    def test_without_a_folder_there_are_no_tenants(self, tmp_path: Path) -> None:
        tenants = Tenants(Settings(config_dir=tmp_path / "nowhere"))
        tenants.load()
        assert (tenants.all(), tenants.status(), tenants.get("alpha")) == ([], [], None)


class TestWhileItRuns:
    async def test_a_file_dropped_in_is_served(self, watched: Place) -> None:
        watched.write("gamma", shop("Gamma"))
        await until(lambda: watched.name_of("gamma") == "Gamma")
        assert watched.changes == [("gamma", None, "Gamma")]

    async def test_a_changed_file_takes_effect_and_leaves_the_others_alone(self, watched: Place) -> None:
        beta = watched.tenants.get("beta")
        watched.write("alpha", shop("Alpha 2"))
        await until(lambda: watched.name_of("alpha") == "Alpha 2")
        assert watched.changes == [("alpha", "Alpha", "Alpha 2")]
        assert watched.tenants.get("beta") is beta

    async def test_a_removed_file_is_served_no_more(self, watched: Place) -> None:
        watched.file("alpha").unlink()
        await until(lambda: watched.name_of("alpha") is None)
        assert watched.changes == [("alpha", "Alpha", None)]
        assert watched.state_of("alpha") is None

    async def test_an_editor_that_renames_the_old_file_away_first_never_takes_the_tenant_down(
        self, watched: Place
    ) -> None:
        backup = watched.config / "tenants" / "alpha.yaml~"
        watched.file("alpha").rename(backup)
        await watched.tenants._look()  # the look that falls into the gap
        assert watched.name_of("alpha") == "Alpha"
        watched.write("alpha", shop("Alpha 2"))
        await until(lambda: watched.name_of("alpha") == "Alpha 2")
        assert watched.changes == [("alpha", "Alpha", "Alpha 2")]

    async def test_a_file_replaced_by_a_rename_takes_effect(self, watched: Place) -> None:
        new = watched.config / "tenants" / "alpha.yaml.new"
        new.write_text(shop("Alpha 2"))
        new.replace(watched.file("alpha"))
        await until(lambda: watched.name_of("alpha") == "Alpha 2")

    async def test_a_wrong_one_leaves_the_last_good_one_in_force_and_is_logged_once(
        self, watched: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        watched.write("alpha", shop("Alpha 2", "language: hushhush\n"))
        await until(lambda: watched.state_of("alpha") == "stale")
        for _ in range(3):
            await watched.tenants._look()
        assert watched.name_of("alpha") == "Alpha"
        assert watched.changes == []
        errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
        assert errors == [
            f"{watched.file('alpha')}:3:11: language: is none of th, en, auto — write one of th, en, auto "
            "(the last good one goes on serving)"
        ]
        watched.write("alpha", shop("Alpha 3"))
        await until(lambda: watched.state_of("alpha") == "ok")
        assert watched.changes == [("alpha", "Alpha", "Alpha 3")]

    async def test_a_half_written_file_is_no_mistake_yet(
        self, watched: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        whole = shop("Alpha 2")
        with watched.file("alpha").open("w") as file:
            for part in ("", whole[:12], whole[12:30]):
                file.write(part)
                file.flush()
                await watched.tenants._look()
                assert (watched.name_of("alpha"), watched.state_of("alpha")) == ("Alpha", "ok")
            file.write(whole[30:])
        await until(lambda: watched.name_of("alpha") == "Alpha 2")
        assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []

    async def test_two_changes_in_the_same_instant_with_the_same_size_are_both_seen(self, watched: Place) -> None:
        watched.write("alpha", shop("Alph1"))
        at = watched.file("alpha").stat().st_mtime_ns
        await until(lambda: watched.name_of("alpha") == "Alph1")
        watched.write("alpha", shop("Alph2"))
        os.utime(watched.file("alpha"), ns=(at, at))
        await until(lambda: watched.name_of("alpha") == "Alph2")

    async def test_a_secret_that_changes_or_comes_takes_effect(self, watched: Place) -> None:
        watched.write("alpha", shop("${SHOP_NAME}"))
        await until(lambda: watched.state_of("alpha") == "stale")
        (watched.config / "secrets").mkdir()
        (watched.config / "secrets" / "SHOP_NAME").write_text("One\n")
        await until(lambda: watched.name_of("alpha") == "One")
        (watched.config / "secrets" / "SHOP_NAME").write_text("Two\n")
        await until(lambda: watched.name_of("alpha") == "Two")

    async def test_instructions_that_change_take_effect(self, watched: Place) -> None:
        (watched.config / "prompts").mkdir()
        prompt = watched.config / "prompts" / "alpha.md"
        prompt.write_text("first")
        watched.write("alpha", shop("Alpha", "agents: {default: {instructions_file: prompts/alpha.md}}\n"))

        def instructions() -> str:
            tenant = watched.tenants.get("alpha")
            return tenant.agents["default"].instructions if tenant else ""

        await until(lambda: instructions() == "first")
        prompt.write_text("second")
        await until(lambda: instructions() == "second")

    async def test_a_token_is_free_again_once_its_tenant_gave_it_up(self, watched: Place) -> None:
        watched.write("alpha", bot("Alpha", "1:invented"))
        await until(lambda: "tg" in watched.tenants.get("alpha").channels)  # type: ignore[union-attr]
        watched.write("beta", bot("Beta 2", "1:invented"))
        await until(lambda: watched.state_of("beta") == "stale")
        assert watched.name_of("beta") == "Beta"
        watched.file("alpha").unlink()
        await until(lambda: watched.name_of("beta") == "Beta 2")
        assert watched.state_of("beta") == "ok"

    async def test_a_folder_that_cannot_be_read_takes_nobody_down(
        self, watched: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        away = watched.config / "away"
        (watched.config / "tenants").rename(away)
        for _ in range(3):
            await watched.tenants._look()
        assert [tenant.id for tenant in watched.tenants.all()] == ["alpha", "beta"]
        assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1
        away.rename(watched.config / "tenants")
        watched.write("alpha", shop("Alpha 2"))
        await until(lambda: watched.name_of("alpha") == "Alpha 2")


async def test_changes_are_seen_where_the_file_system_tells_of_none(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_inotify(*_paths: object, **_options: object) -> AsyncIterator[set[object]]:
        raise OSError("no watch left")

    monkeypatch.setattr(register, "awatch", no_inotify)
    place.write("alpha", shop("Alpha"))
    place.tenants.load()
    stop = asyncio.Event()
    task = asyncio.create_task(place.tenants.watch(stop))
    place.write("alpha", shop("Alpha 2"))
    await until(lambda: place.name_of("alpha") == "Alpha 2")
    place.file("alpha").unlink()
    await until(lambda: place.name_of("alpha") is None)
    stop.set()
    await asyncio.wait_for(task, WITHIN)


async def test_a_look_that_takes_long_comes_less_often(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_inotify(*_paths: object, **_options: object) -> AsyncIterator[set[object]]:
        raise OSError("no watch left")

    monkeypatch.setattr(register, "awatch", no_inotify)
    monkeypatch.setattr(register, "POLL", 0.02)
    monkeypatch.setattr(register, "LONGEST", 0.5)
    monkeypatch.setattr(register, "PART", 1e-9)
    place.write("alpha", shop("Alpha"))
    place.tenants.load()
    looks: list[float] = []
    look = place.tenants._scan_changed

    def counted() -> object:
        looks.append(time.monotonic())
        return look()

    monkeypatch.setattr(place.tenants, "_scan_changed", counted)
    stop = asyncio.Event()
    task = asyncio.create_task(place.tenants.watch(stop))
    await until(lambda: place.tenants._still is not None)  # the file has settled
    looks.clear()
    await until(lambda: len(looks) == 3)
    assert min(later - earlier for earlier, later in pairwise(looks)) > 0.48
    place.write("alpha", shop("Alpha 2"))
    await until(lambda: place.name_of("alpha") == "Alpha 2")
    stop.set()
    await asyncio.wait_for(task, WITHIN)


async def test_the_watch_ends_at_once_when_it_is_told_to(watched: Place) -> None:
    stop = asyncio.Event()
    task = asyncio.create_task(watched.tenants.watch(stop))
    watched.write("alpha", shop("Alpha 2"))
    await until(lambda: watched.name_of("alpha") == "Alpha 2")
    stop.set()
    await asyncio.wait_for(task, WITHIN)


class TestAFileThatIsStillComing:
    """Looks are made by hand here, and the clock is moved."""

    async def test_over_a_slow_line_waits_until_it_is_whole_though_its_beginning_is_good(self, place: Place) -> None:
        place.write("alpha", shop("Alpha", "faq: [{questions: [a], answer: b}]\n"))
        place.tenants.load()
        whole = shop("Alpha 2", "language: en\nfaq: [{questions: [a], answer: c}]\n")
        cuts = [whole.index("language") + 11, whole.index("faq") - 1, len(whole)]
        with place.file("alpha").open("w") as file:
            begin = 0
            for cut in cuts:
                file.write(whole[begin:cut])
                file.flush()
                begin = cut
                for place.later in (0.0, 0.5):
                    await place.tenants._look()
                    assert (place.name_of("alpha"), place.state_of("alpha")) == ("Alpha", "ok")
                if cut < len(whole):  # it ends in the middle of a line: a longer pause is waited out too
                    place.later = 2.0
                    await place.tenants._look()
                    assert (place.name_of("alpha"), place.state_of("alpha")) == ("Alpha", "ok")
        place.later = 1.5
        await place.tenants._look()
        assert place.name_of("alpha") == "Alpha 2"
        assert [change[2] for change in place.changes] == ["Alpha", "Alpha 2"]

    async def test_that_keeps_its_old_time_is_not_taken_for_an_old_one(self, place: Place) -> None:
        place.write("alpha", shop("Alpha"))
        place.tenants.load()
        new = place.config / "tenants" / ".alpha.yaml.Xy12"  # what rsync -t writes, and renames when it is whole
        new.write_text(shop("Alpha 2"))
        os.utime(new, (1_600_000_000, 1_600_000_000))
        new.replace(place.file("alpha"))
        await place.tenants._look()
        assert place.name_of("alpha") == "Alpha"
        place.later = 1.5
        await place.tenants._look()
        assert place.name_of("alpha") == "Alpha 2"

    async def test_that_never_gets_whole_is_told_as_wrong_in_the_end(self, place: Place) -> None:
        place.write("alpha", shop("Alpha"))
        place.tenants.load()
        place.write("alpha", "name: Alpha 2\nchannels: {web: {plat")
        for later, state in ((0.0, "ok"), (2.0, "ok"), (4.0, "stale")):
            place.later = later
            await place.tenants._look()
            assert (place.name_of("alpha"), place.state_of("alpha")) == ("Alpha", state)


class TestWhatIsToldOfAChange:
    async def test_fields_and_numbers_but_no_text_and_no_secret(
        self, place: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        place.write(
            "alpha", bot("Alpha", "1:invented") + "memory: {sm_ttl: 60}\nfaq: [{questions: [a], answer: hushhush}]\n"
        )
        place.tenants.load()
        caplog.clear()
        place.write(
            "alpha",
            bot("Alpha", "2:hushhush") + "language: en\nmemory: {sm_ttl: 90}\nfaq:\n- {questions: [a], answer: hush}\n"
            "- {questions: [b], answer: c}\nreplies: {welcome: hushhush}\nbehaviour: {ask_rating: true}\n",
        )
        place.later = 1.5
        await place.tenants._look()
        (line,) = [record.getMessage() for record in caplog.records]
        assert line == (
            f"tenant alpha: changed in {place.file('alpha')}: language (auto → en), "
            "channels.tg.bot_token (secret), memory.sm_ttl (60 → 90), behaviour.ask_rating (false → true), "
            "replies.welcome (new), faq (1 → 2)"
        )

    async def test_a_comment_changes_nothing(self, place: Place, caplog: pytest.LogCaptureFixture) -> None:
        place.write("alpha", shop("Alpha"))
        place.tenants.load()
        caplog.clear()
        before = place.tenants.get("alpha")
        place.write("alpha", "# hello\n" + shop("Alpha"))
        place.later = 1.5
        await place.tenants._look()
        assert place.tenants.get("alpha") is before
        assert caplog.records == []

    async def test_a_renamed_file_is_explained_and_its_channels_go_on(
        self, place: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        place.write("alpha", bot("Alpha", "1:invented"))
        place.tenants.load()
        place.changes.clear()
        place.file("alpha").rename(place.file("store"))
        place.later = 1.5
        await place.tenants._look()
        assert place.changes == [("alpha", "Alpha", None), ("store", None, "Alpha")]
        assert [status.id for status in place.tenants.status()] == ["store"]
        (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert line == (
            "tenant alpha: its file was renamed to store.yaml, so it is tenant store from now on, with other webhook "
            "addresses. What is remembered stays with alpha: rename it back, or take it along with "
            "`chat-chat tenants export alpha` and `import --as store --add`"
        )


async def test_a_change_of_a_template_reloads_those_that_extend_it(place: Place) -> None:
    base = place.config / "base.yaml"
    base.write_text("channels: {web: {platform: web}}\nmemory: {sm_ttl: 60}\n")
    for name in ("alpha", "beta"):
        place.write(name, f"extends: base.yaml\nname: {name}\n")
    place.write("gamma", shop("gamma"))
    place.tenants.load()
    gamma = place.tenants.get("gamma")
    place.changes.clear()
    base.write_text("channels: {web: {platform: web}}\nmemory: {sm_ttl: 90}\n")
    place.later = 1.5
    await place.tenants._look()
    assert [change[0] for change in place.changes] == ["alpha", "beta"]
    assert [tenant.memory.sm_ttl for tenant in place.tenants.all()] == [90, 90, 1800]
    assert place.tenants.get("gamma") is gamma
    base.write_text("memory: {sm_tll: 90}\n")
    place.later = 3.0
    await place.tenants._look()
    assert [status.state for status in place.tenants.status()] == ["stale", "stale", "ok"]
    base.unlink()
    place.later = 6.0
    await place.tenants._look()
    assert [tenant.memory.sm_ttl for tenant in place.tenants.all()] == [90, 90, 1800]
