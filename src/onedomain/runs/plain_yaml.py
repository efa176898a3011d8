"""YAML of a folder that anybody may have written: plain values that fit a schema, or one line of what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from onedomain.errors import UserError
from onedomain.settings import first_problem

DEEPEST = 30  # mappings and lists inside each other
Schema = TypeVar("Schema", bound=BaseModel)


def parse_yaml(path: Path, content: bytes, kind: type[Schema], allowed: str) -> Schema:
    """The content of `path`; `allowed` is what a file may be, if it cannot be understood."""
    try:
        # By way of JSON, of which a list is a tuple and a text no number.
        return kind.model_validate_json(json.dumps(yaml.load(content, _Plain), allow_nan=False), strict=True)
    except ValidationError as error:
        field, given, expected = first_problem(error)
        raise UserError(str(path), f"{field or 'cannot be understood:'} {given}", expected or allowed) from None
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:150]
        raise UserError(str(path), f"cannot be understood ({reason})", allowed) from None


class _Plain(yaml.SafeLoader):
    """YAML without aliases, which make a small file huge, and without endless depth."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has an alias")
        self.depth += 1
        if self.depth > DEEPEST:
            raise yaml.YAMLError(f"it is nested more than {DEEPEST} deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node
