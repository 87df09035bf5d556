"""Models whose schema tells of each field what stands below it in the code."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise
from textwrap import dedent

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Documented(BaseModel):
    """As pydantic with `use_attribute_docstrings`, for classes at the top of a module. The source is read when a schema
    is asked for, which is seldom; pydantic reads it at each start."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, said in _below(cls).items():
            if name in properties:
                properties[name].setdefault("description", said)
        return schema


@cache
def _below(model: type[Documented]) -> dict[str, str]:
    """What stands below the fields, by their names, those it has from others included."""
    said: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if issubclass(one, Documented) and one is not Documented:
            [made] = ast.parse(dedent(inspect.getsource(one))).body
            assert isinstance(made, ast.ClassDef)
            for field, below in pairwise(made.body):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(below, ast.Expr)
                    and isinstance(below.value, ast.Constant)
                ):
                    said[field.target.id] = inspect.cleandoc(str(below.value.value))
    return said
