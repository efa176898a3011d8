"""Which methods and adaptations there are: one file each, or an entry point of another package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedomain.data.registry import Registry

if TYPE_CHECKING:
    from onedomain.methods.adapt.base import Adaptation
    from onedomain.methods.base import Method

METHODS: Registry[Method] = Registry("method", "onedomain.methods", "Method")
ADAPTATIONS: Registry[Adaptation] = Registry("method", "onedomain.methods.adapt", "Adaptation")
