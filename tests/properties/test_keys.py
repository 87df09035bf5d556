"""Keys and paths: equal if and only if their parts are, and never outside the tenant's folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import keys
from memory.keys import ConversationRef, InvalidId
from memory.short_term import lua

BASE = Path("/base")

# Any text at all, lone surrogates included, and often signs that mean something in keys, paths or globs.
signs = st.one_of(st.sampled_from("./_~%:{}*\\\x00 a1ก"), st.characters(codec=None))
ids = st.one_of(st.text(signs, min_size=1, max_size=12), st.text(signs, min_size=180, max_size=260))
tenants = st.from_regex(keys.TENANT_ID, fullmatch=True)
refs = st.builds(ConversationRef, tenants, ids, ids, ids)


@given(ids, ids)
def test_different_ids_have_different_names(one: str, other: str) -> None:
    assert (keys.escape(one) == keys.escape(other)) == (one == other)


@given(refs, refs)
def test_different_conversations_have_different_keys(one: ConversationRef, other: ConversationRef) -> None:
    def same(ref: ConversationRef) -> ConversationRef:
        return ref._replace(agent=keys.agent_name(ref.agent))

    assert (keys.session(one) == keys.session(other)) == (same(one) == same(other))
    assert (lua.member(one) == lua.member(other)) == (same(one) == same(other))


@given(tenants, ids, ids)
def test_a_main_conversation_never_meets_another_users_side_conversation(tenant: str, user: str, other: str) -> None:
    main = keys.session(ConversationRef(tenant, user))
    side = keys.session(ConversationRef(tenant, other, "sales", "c1"))
    assert main != side


@given(refs)
def test_a_conversation_comes_back_from_the_index_as_it_went_in(ref: ConversationRef) -> None:
    assert lua.conversation_of(lua.member(ref)) == ref._replace(agent=keys.agent_name(ref.agent))


@given(refs)
def test_a_key_holds_no_brace_so_that_it_can_be_a_cluster_tag(ref: ConversationRef) -> None:
    assert not set(keys.session(ref)) & set("{}")


@given(tenants, ids)
def test_no_file_lies_outside_its_tenants_folder(tenant: str, user: str) -> None:
    for path in (keys.longterm_file(BASE, tenant, user), keys.transcript_dir(BASE, tenant, user)):
        assert PurePosixPath(path).parent == BASE / tenant
        assert not path.name.startswith((".", "_"))
        assert len(path.name.encode()) <= 205
    assert keys.longterm_file(BASE, tenant, user) != keys.tenant_file(BASE, tenant)


@given(ids)
def test_a_name_that_was_not_shortened_gives_its_id_back(user: str) -> None:
    name = keys.escape(user)
    assert keys.unescape(name) == (None if "~" in name else user)


@given(st.from_regex(r"[A-Za-z0-9:@+-][A-Za-z0-9._:@+-]{0,199}", fullmatch=True))
def test_plain_ids_stand_as_they_are(user: str) -> None:
    assert keys.escape(user) == user


@given(st.text(max_size=80))
def test_a_tenant_id_is_a_file_name_or_refused(tenant: str) -> None:
    if keys.TENANT_ID.match(tenant):
        assert keys.check_tenant(tenant) == tenant
    else:
        with pytest.raises(InvalidId):
            keys.check_tenant(tenant)


def test_an_empty_part_is_refused() -> None:
    for ref in (ConversationRef("t", ""), ConversationRef("", "u"), ConversationRef("t", "u", "", "c")):
        with pytest.raises(InvalidId):
            keys.session(ref)


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ("line:U4af", "line:U4af"),
        ("telegram:group:-100", "telegram:group:-100"),
        ("../../x", "%2E.%2F..%2Fx"),
        ("_tenant", "%5Ftenant"),
        ("a/b\x00", "a%2Fb%00"),
        ("ก", "%E0%B8%81"),
        ("~", "%7E"),
    ],
)
def test_names_as_the_contract_gives_them(user: str, name: str) -> None:
    assert keys.escape(user) == name


def test_a_long_name_is_shortened_to_its_beginning_and_its_hash() -> None:
    name = keys.escape("x" * 4096)
    assert (name[:121], len(name)) == ("x" * 120 + "~", 185)
