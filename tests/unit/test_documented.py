"""What a schema tells of each field."""

from __future__ import annotations

from pydantic import Field

from config.documented import Documented
from config.tenant_model import Tenant


class Small(Documented):
    """A model."""

    size: int = 1
    """How many: it takes
    two lines."""
    bare: str = ""
    told: str = Field(default="", description="By itself.")
    """Not this."""


class Large(Small):
    within: Small = Small()
    """One more."""


def test_what_stands_below_a_field_is_its_description() -> None:
    schema = Large.model_json_schema()
    for properties in (schema["properties"], schema["$defs"]["Small"]["properties"]):
        assert properties["size"]["description"] == "How many: it takes\ntwo lines."
        assert "description" not in properties["bare"]
        assert properties["told"]["description"] == "By itself."
    assert schema["properties"]["within"]["description"] == "One more."


def test_a_tenants_schema_tells_of_its_fields() -> None:
    line = Tenant.model_json_schema()["$defs"]["LineChannel"]["properties"]
    assert line["allow_push"]["description"] == "May an answer cost quota when the reply token is gone?"
