"""Tables of a web page."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from onedomain.reporting.table import MARKS, Table, one_line

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup


def as_html(table: Table) -> Markup:
    """A figure with the table, and its notes below; safe to be put into a page."""
    from markupsafe import Markup

    return Markup(_template().render(table=table, marks=MARKS))


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("onedomain.reporting.render"),
        autoescape=True,  # names of domains, classes and folders are the user's
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: one_line(value) if type(value) is str else value,
    )
    return environment.get_template("table.html")
