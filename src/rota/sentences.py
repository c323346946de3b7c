"""Builds sentences with a code and values beside them, so that a page can show them in another language.

The English sentence is written once, as a template where it is made: `sentence("ended", "job {job} has ended", job=j)`.
The `str` of an error that is raised with one is the English sentence.
"""

from __future__ import annotations

from typing import Any


class Sentence:
    """One sentence. A value may be a sentence itself."""

    __slots__ = ("code", "template", "values")

    def __init__(self, code: str, template: str, values: dict[str, Any]) -> None:
        self.code = code
        self.template = template
        self.values = values

    def __str__(self) -> str:
        return self.template.format(**self.values)

    def __repr__(self) -> str:
        return repr(str(self))

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, (str, Sentence)) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # another process gets the English sentence alone


Said = str | Sentence


def sentence(code: str, template: str, /, **values: Any) -> Sentence:
    return Sentence(code, template, values)


def sentence_of(err: Exception) -> Said:
    """The message of an error, with its code and values if it has them."""
    return err.args[0] if len(err.args) == 1 and isinstance(err.args[0], Sentence) else str(err)


def with_fix(reason: Said, fix: Said) -> Said:
    """The problem, then what to do about it."""
    return sentence("fix.after", "{reason}; {fix}", reason=reason, fix=fix) if fix else reason
