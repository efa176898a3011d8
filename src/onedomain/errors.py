"""What goes wrong through no fault of the program, told in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class OnedomainError(Exception):
    """An error whose text is for the user: the command line prints it as one line, without a traceback."""

    exit_code = 1


class UserError(OnedomainError):
    """A mistake in what was asked or given.

    The line names the field, what was given, and what is allowed instead:

    >>> print(UserError("batch_size", "got 0", "a whole number from 1"))
    batch_size: got 0; allowed: a whole number from 1
    """

    exit_code = 2

    def __init__(self, field: str, problem: str, allowed: str = "") -> None:
        super().__init__(f"{field}: {problem}" + (f"; allowed: {allowed}" if allowed else ""))
        self.field = field

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is made again from its text alone, which `__init__` does not take: what another process raised
        # could not come back from there.
        return _with_text, (type(self), str(self)), vars(self)


def _with_text(kind: type[UserError], text: str) -> UserError:
    return kind.__new__(kind, text)


class TrainingDiverged(OnedomainError):
    """The loss became NaN or infinite; the last good checkpoint is kept."""


class Interrupted(OnedomainError):
    """Ctrl-C or SIGTERM; a training ends after the running step, and its state is saved."""

    def __init__(self, text: str, exit_code: int = 130) -> None:
        super().__init__(text)
        self.exit_code = exit_code  # 128 and the signal's number, as shells have it


def unknown(field: str, given: str, names: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> print(unknown("method", "ERN", ["erm", "sdg"]))
    method: 'ERN' is not known, did you mean 'erm'?; allowed: erm, sdg
    """
    names = sorted(names)
    # A typo changes a letter or two: a word of quite another length was meant as it is, or begins one of the names.
    like = [name for name in names if abs(len(name) - len(given)) <= 2 or name.startswith(given.lower())]
    near = difflib.get_close_matches(given.lower(), like, n=1, cutoff=0.5)
    hint = f", did you mean {near[0]!r}?" if near else ""
    return UserError(field, f"{given!r} is not known{hint}", ", ".join(names))


def one_line(given: str) -> str:
    r"""A name can be anything: what breaks a line becomes a space, and what a screen would obey is spelled out.

    >>> one_line("a\nb\x1b[2J\udc80")
    'a b\\x1b[2J\\udc80'
    """
    return "".join(_shown(character) for character in given)


def _shown(character: str) -> str:
    if character.isprintable() or character == "\u00a0":
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode()
