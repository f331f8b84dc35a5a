"""Small portable helpers for repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Delete, Dialect, Insert, Row, Select, Update

IN_LIMIT = 300
"""Values in one IN list: as triples still under every database's limit of variables (SQLite's oldest: 999)."""

_LENGTHS = (1, 8, 64, IN_LIMIT)

T = TypeVar("T")

Plain = str | int | float | None
"""What every driver takes as it is."""


def chunks(values: Iterable[T]) -> Iterator[list[T]]:
    """The values in lists that one query can take."""
    remaining = iter(values)
    while some := list(islice(remaining, IN_LIMIT)):
        yield some


class ManyRows:
    """An insert, update or delete that is carried out for many rows at once, at the driver's own speed.

    SQLAlchemy turns the values of every row by their types and puts them in order, which costs more than the database
    takes to write them. Here the statement is compiled once for a dialect, and rows come as the driver takes them:
    instants as `schema.microseconds`, states as their words. ``names``: of all the statement's parameters, in the order
    in which rows bear them; a constant in it is written as a literal.
    """

    def __init__(self, statement: Insert | Update | Delete, names: Sequence[str]) -> None:
        self._statement = statement
        self._names = tuple(names)
        self._compiled: tuple[Dialect, str, Callable[[tuple[Plain, ...]], Any]] | None = None

    def write(self, connection: Connection, rows: Sequence[tuple[Plain, ...]]) -> None:
        """Carries it out for every row; nothing to do when there is none."""
        if not rows:
            return
        text, ordered = self._for(connection.dialect)
        connection.exec_driver_sql(text, [ordered(row) for row in rows])

    def _for(self, dialect: Dialect) -> tuple[str, Callable[[tuple[Plain, ...]], Any]]:
        if self._compiled is None or self._compiled[0] is not dialect:
            compiled = self._statement.compile(dialect=dialect, column_keys=list(self._names))
            self._compiled = (dialect, str(compiled), self._ordering(compiled.positiontup))
        _, text, ordered = self._compiled
        return text, ordered

    def _ordering(self, wanted: Sequence[str] | None) -> Callable[[tuple[Plain, ...]], Any]:
        """From a row to the parameters: a tuple in the order that the driver wants, else by name."""
        if wanted is None:
            return lambda row: dict(zip(self._names, row, strict=True))
        return itemgetter(*(self._names.index(name) for name in wanted))


class KeyedRows:
    """A query for the rows whose key (a column, or a tuple of columns) is one of many, at the driver's own speed.

    A list of values of unknown length makes SQLAlchemy write the statement anew for each call. Here there is a text
    for each of a few lengths, and the last key fills up what is left. Rows come as the driver gives them, so the
    statement's columns have types that every driver has (`schema.plain`).
    """

    def __init__(self, statement: Select[Any], key: ColumnElement[Any]) -> None:
        self._statement = statement
        self._key = key
        self._texts: dict[tuple[Dialect, int], str] = {}

    def read(self, connection: Connection, keys: Iterable[Plain | tuple[Plain, ...]]) -> Iterator[Row[Any]]:
        """The rows of every key, in no order. A key of several columns is a tuple."""
        for some in chunks(keys):
            length = next(each for each in _LENGTHS if each >= len(some))
            filled = [*some, *some[-1:] * (length - len(some))]
            if connection.dialect.positional:
                flat = tuple(value for key in filled for value in (key if isinstance(key, tuple) else (key,)))
                yield from connection.exec_driver_sql(self._text(connection.dialect, filled), flat).fetchall()
            else:
                yield from connection.execute(self._statement.where(self._key.in_(some)))

    def _text(self, dialect: Dialect, filled: Sequence[object]) -> str:
        text = self._texts.get((dialect, len(filled)))
        if text is None:
            statement = self._statement.where(self._key.in_(filled))
            compiled = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            text = self._texts[dialect, len(filled)] = str(compiled)
        return text
