"""A shop moves from one installation to another: everything comes along but secrets, or nothing is changed."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from config.settings import Settings
from config.tenants import load_tenant
from gateway.cli import Failed
from gateway.moving import arrival
from gateway.moving.commands import arrive, export

SECRET = "0123456789abcdef" * 2
FILES = {
    "config/tenants/shop.yaml": "extends: base.yaml\nname: Shop\nchannels:\n  line:\n    platform: line\n"
    f"    channel_secret: {SECRET}\n    channel_access_token: ${{SHOP_TOKEN}}\n"
    "agents: {default: {instructions_file: prompts/shop.md}}\n",
    "config/base.yaml": "channels: {web: {platform: web}}\n",
    "config/prompts/shop.md": "พูดสุภาพ",
    "config/secrets/SHOP_TOKEN": "hushhush\n",
    "config/knowledge/shop/menu/prices.md": "# Menu",
    "config/tenants/other.yaml": "name: Other\nchannels: {}\n",
    "data/longterm/shop/line:U1.json": '{"tenant_id": "shop", "user_id": "line:U1", "events": [], "attributes": {}}',
    "data/longterm/shop/line:U1.journal": '{"events": []}\n',
    "data/longterm/shop/_tenant.json": '{"tenant_id": "shop", "user_id": ""}',
    "data/longterm/shop/.locks/3": "",
    "data/longterm/other/line:U1.json": "{}",
    "data/transcripts/shop/line:U1/2026-11.jsonl": '{"message": "hello"}\n',
    "data/media/shop/line:U1/m1.jpg": "\x00picture",
    "data/media/shop/line:U1/.m2.jpg.7.tmp": "half",
    "data/archive/shop/line:U1.jsonl": "{}\n",
    "data/conversations/shop/c1.json": "{}",
    "data/understanding/shop/corrections.jsonl": "{}\n",
    "data/blocked/shop.json": '["line:U9"]',
    "data/keys/shop.json": '[{"hash": "hushhush"}]',
    "data/index/shop.sqlite": "derived",
}
COMES = 14  # of these
OLD = 1_600_000_000


@contextmanager
def no_bar(_name: str) -> Iterator[Callable[[int, int], None]]:
    yield lambda _done, _of: None


@pytest.fixture
def old(tmp_path: Path) -> Settings:
    home = tmp_path / "old"
    for name, text in FILES.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (OLD, OLD))
    packed = home / "data/longterm/shop/line:U2.json.gz"
    packed.write_bytes(gzip.compress(orjson.dumps({"tenant_id": "shop", "user_id": "line:U2"})))
    return Settings(config_dir=home / "config", data_dir=home / "data", variables={"SHOP_TOKEN": "hushhush"})


@pytest.fixture
def new(tmp_path: Path) -> Settings:
    return Settings(config_dir=tmp_path / "new" / "config", data_dir=tmp_path / "new" / "data")


async def packed(old: Settings, folder: Path) -> Path:
    archive = folder / "shop.tar.gz"
    if not archive.exists():
        await export(old, "shop", archive, no_bar)
    return archive


def held(settings: Settings) -> dict[str, bytes]:
    root = settings.data_dir.parent
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def test_everything_comes_along_but_secrets(old: Settings, new: Settings, tmp_path: Path) -> None:
    archive = await packed(old, tmp_path)
    assert archive.stat().st_mode & 0o777 == 0o600
    assert b"hushhush" not in gzip.decompress(archive.read_bytes())
    assert SECRET.encode() not in gzip.decompress(archive.read_bytes())
    lines, whole = await arrive(new, archive, None, False, no_bar)
    assert whole
    assert lines[0].startswith("shop: 2 people, 1 transcript, 1 media file, 1 knowledge file, ")
    assert lines[1].startswith(f"All {COMES} files are there, each checked by its SHA-256; of all: ")
    assert lines[2].endswith(f"{new.config_dir / 'secrets'}: SHOP_LINE_CHANNEL_SECRET, SHOP_TOKEN")
    now, before = held(new), held(old)
    written = FILES["config/tenants/shop.yaml"].replace(SECRET, "${SHOP_LINE_CHANNEL_SECRET}")
    assert now.pop("config/tenants/shop.yaml") == written.encode()
    assert len(now) == COMES - 1
    assert now == {name: before[name] for name in now}
    assert not {name for name in now if "other" in name or "keys" in name or "index" in name or "secrets" in name}
    assert (new.data_dir / "media/shop/line:U1/m1.jpg").stat().st_mtime == OLD  # retention goes by it
    there = replace(new, variables={"SHOP_TOKEN": "x", "SHOP_LINE_CHANNEL_SECRET": "y"})
    tenant = load_tenant(new.config_dir / "tenants" / "shop.yaml", there)
    assert (tenant.agents["default"].instructions, list(tenant.channels)) == ("พูดสุภาพ", ["line", "web"])


async def test_it_may_get_another_id(old: Settings, new: Settings, tmp_path: Path) -> None:
    _, whole = await arrive(new, await packed(old, tmp_path), "store-2", False, no_bar)
    assert whole
    folder = new.data_dir / "longterm" / "store-2"
    assert orjson.loads((folder / "line:U1.json").read_bytes())["tenant_id"] == "store-2"
    assert orjson.loads(gzip.decompress((folder / "line:U2.json.gz").read_bytes()))["tenant_id"] == "store-2"
    assert (new.config_dir / "tenants" / "store-2.yaml").exists()
    assert [name for name in held(new) if "/shop" in name.replace("prompts/shop", "")] == []


async def test_nothing_is_mixed_into_a_tenant_that_is_here_unless_told(
    old: Settings, new: Settings, tmp_path: Path
) -> None:
    archive = await packed(old, tmp_path)
    mine = new.data_dir / "longterm" / "shop" / "line:U1.json"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(Failed, match=r"there is something of shop here already .*, and nothing was changed"):
        await arrive(new, archive, None, False, no_bar)
    assert held(new) == {"data/longterm/shop/line:U1.json": b"mine"}
    lines, whole = await arrive(new, archive, None, True, no_bar)
    assert not whole
    assert lines[1:3] == [
        "1 were here already and are other ones; they were left as they are:",
        "  data/longterm/line:U1.json",
    ]
    assert mine.read_text() == "mine"
    assert len(held(new)) == COMES


async def test_a_template_of_the_same_name_that_is_another_one_stands_in_the_way(
    old: Settings, new: Settings, tmp_path: Path
) -> None:
    new.config_dir.mkdir(parents=True)
    (new.config_dir / "base.yaml").write_text("channels: {}\n")
    with pytest.raises(Failed, match="there is something of shop here already"):
        await arrive(new, await packed(old, tmp_path), None, False, no_bar)
    (new.config_dir / "base.yaml").write_text(FILES["config/base.yaml"])
    assert (await arrive(new, await packed(old, tmp_path), None, False, no_bar))[1]


async def test_what_was_broken_off_goes_on_with_the_next_call(
    old: Settings, new: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = await packed(old, tmp_path)
    moved, real = [], arrival._move

    def breaks(source: Path, path: Path) -> None:
        if len(moved) == 5:
            raise OSError(28, "No space left on device", str(path))
        moved.append(path)
        real(source, path)

    monkeypatch.setattr(arrival, "_move", breaks)
    with pytest.raises(OSError, match="No space left"):
        await arrive(new, archive, None, False, no_bar)
    assert not (new.config_dir / "tenants" / "shop.yaml").exists()  # half a shop is not served
    monkeypatch.setattr(arrival, "_move", real)
    lines, whole = await arrive(new, archive, None, False, no_bar)
    assert whole
    assert lines[1].startswith(f"All {COMES} files are there")
    assert len(held(new)) == COMES


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9])
async def test_an_archive_that_was_cut_off_changes_nothing(
    old: Settings, new: Settings, tmp_path: Path, cut: float
) -> None:
    whole = (await packed(old, tmp_path)).read_bytes()
    part = tmp_path / "part.tar.gz"
    part.write_bytes(whole[: int(len(whole) * cut)])
    with pytest.raises(Failed, match="nothing was changed"):
        await arrive(new, part, None, False, no_bar)
    assert held(new) == {}


async def test_a_file_that_is_damaged_missing_or_too_many_is_told(old: Settings, new: Settings, tmp_path: Path) -> None:
    archive = await packed(old, tmp_path)
    name = "data/media/line:U1/m1.jpg"
    with tarfile.open(archive) as tar:
        members = [(member.name, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    assert name in [member for member, _ in members]
    damaged = [(one, data.replace(b"picture", b"pictur3")) for one, data in members]
    missing = [one for one in members if one[0] != name]
    extra = [("data/media/line:U1/m9.jpg", b"x"), *members]
    for number, wrong in enumerate((damaged, missing, extra)):
        file = tmp_path / f"wrong-{number}.tar.gz"
        write(file, wrong)
        with pytest.raises(
            Failed, match=r"1 of \d+ files are missing or damaged, such as data/media.*nothing was changed"
        ):
            await arrive(new, file, None, False, no_bar)
    assert held(new) == {}


@pytest.mark.parametrize(
    "name",
    [
        "../evil", "/etc/evil", "data/longterm/../../evil", "config/secrets/X", "config/beside/secrets/X",
        "config/beside/tenants/other.yaml", "data/keys.json", "data/redis/x", "data/longterm/.hidden",
        "data/index.json",
        "config/beside/../evil", "other", "data/longterm",
    ],
)  # fmt: skip
async def test_an_archive_writes_nothing_outside_of_a_tenants_places(new: Settings, tmp_path: Path, name: str) -> None:
    file = tmp_path / "evil.tar.gz"
    head = orjson.dumps({"format": 1, "tenant": "shop", "made_at": "", "files": 1})
    write(file, [("chat-chat.json", head), (name, b"evil")])
    with pytest.raises(Failed, match="which no export writes; nothing was changed"):
        await arrive(new, file, None, False, no_bar)
    assert held(new) == {}


async def test_a_link_in_an_archive_is_refused(new: Settings, tmp_path: Path) -> None:
    file = tmp_path / "evil.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        link = tarfile.TarInfo("data/media/line:U1/m1.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
    with pytest.raises(Failed, match="nothing was changed"):
        await arrive(new, file, None, False, no_bar)
    assert held(new) == {}


async def test_an_export_overwrites_nothing_and_needs_a_tenant(old: Settings, tmp_path: Path) -> None:
    archive = await packed(old, tmp_path)
    before = archive.read_bytes()
    with pytest.raises(FileExistsError):
        await export(old, "shop", archive, no_bar)
    assert archive.read_bytes() == before
    with pytest.raises(Failed, match="nothing is kept of a tenant 'nobody'"):
        await export(old, "nobody", tmp_path / "nobody.tar.gz", no_bar)


def write(file: Path, members: list[tuple[str, bytes]]) -> None:
    with tarfile.open(file, "w:gz") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
