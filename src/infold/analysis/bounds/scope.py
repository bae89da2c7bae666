"""
One SELECT's FROM and WHERE: which columns follow the times of which inputs.

Every column of an entry of FROM comes with its shapes against the inputs that the entry reads. The
links that predicates state (:mod:`infold.analysis.times.distances`) carry them over to the
other entries: after ``b.ts BETWEEN a.ts - INTERVAL 1 DAY AND a.ts`` the times of b's rows are known
from a's. What is said ON an outer join, or a SEMI or ANTI one, holds only where a row was found; so
such an entry hands on what is known of its own inputs, and nothing else.

Its columns are NULL where no row was found, and what is known of a value is not said of its NULLs.
These are all one to GROUP BY and to windows, of whatever time the rows are; so it is kept of each
column what its NULLs come from (:data:`Gaps`).

A subquery in an expression is an entry too (:mod:`infold.analysis.bounds.subquery_joins`): EXISTS
is a SEMI join, NOT EXISTS an ANTI join, a scalar subquery a LEFT join to one group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from infold.analysis.bounds.transitive import (
    Gaps,
    Key,
    Needs,
    Shapes,
    Ways,
    apart,
    beyond,
    hull,
    under,
)
from infold.analysis.names.relation import Block, From, Origin, own
from infold.analysis.times.buckets import field_of
from infold.analysis.times.call_shapes import change_of
from infold.analysis.times.conditional_values import chosen, exploded, first_there
from infold.analysis.times.distances import FAR, Link, links, needed
from infold.analysis.times.floors import Floor, floor_of
from infold.analysis.times.shape import Grain, Shape, Span
from infold.core.interval import Granularity

Atom = tuple[int, str]
"""A value of one entry of FROM: the entry, and a column's name or an expression's text."""


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """``low <= outer - inner <= high``: how far a value here is from one of a subquery's rows."""

    outer: exp.Expr
    inner: Atom
    shapes: Shapes
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Tie:
    """
    A subquery as an entry of FROM: the inputs that it reads, and how far its rows are.

    ``origins`` are the columns that its own text names, those of the rows around it among them.
    """

    at: int
    inputs: frozenset[Key]
    near: tuple[Distance, ...]
    origins: Mapping[int, Origin | None]
    needs: Needs


@dataclass(slots=True, eq=False)
class Scope:
    """
    The rows of a block before it groups them.

    ``given`` are the shapes of each entry's columns, by entry and lower-case name; ``inputs`` what
    each entry reads. ``ties`` are the subqueries in its expressions, as far as they are looked at.
    """

    block: Block
    given: Mapping[Atom, Shapes]
    inputs: Mapping[int, frozenset[Key]]
    ties: tuple[Tie, ...] = ()
    absent: Mapping[Atom, Gaps] = field(default_factory=dict)
    """Where the NULLs of an entry's columns come from, before they are joined here."""
    needed: Mapping[int, Needs] = field(default_factory=dict)
    """What each entry's inputs need in it."""
    granularity: Granularity = Granularity.DAY
    """Of cells: what is known in several ways is kept as is best for these."""
    lenient: bool = False
    """Whether what is known against one input is taken for known against all."""
    known: dict[Atom, dict[Key, Shape]] = field(default_factory=dict)
    nullable: set[int] = field(default_factory=set)
    stated: dict[tuple[Atom, Atom], Span] = field(default_factory=dict)
    asserted: set[Atom] = field(default_factory=set)
    """The values that WHERE compares: what it says of them holds of every row."""
    present: set[Key] = field(default_factory=set)
    """What is missing in no row, as WHERE or an inner join asks for a value of it."""
    with_it: dict[int, Gaps] = field(default_factory=dict)
    """What is there wherever a LEFT JOIN has found a row of an entry, as its ON asks for it."""
    closed: bool = False
    kept: set[int] = field(default_factory=set)
    """The lookups whose rows an outer join keeps without a match."""
    needs: dict[Key, Gaps | None] = field(default_factory=dict)
    """What has to be there for each input."""

    def __post_init__(self) -> None:
        self.known = {atom: dict(shapes) for atom, shapes in self.given.items()}
        for at, entry in enumerate(self.block.entries):
            self._join(at, entry)
            self._explode(entry)
        where = self.block.node.args.get("where")
        for link in links(where):
            self._state(link)
            atoms = self.atom(link.left), self.atom(link.right)
            self.asserted.update(atom for atom in atoms if atom is not None)
        self._ask(where)
        for tie in self.ties:
            self._tie(tie)
        for at, needs in self.needed.items():
            self.needs |= under(at, needs, optional=self._optional(at))
        for tie in self.ties:
            self.needs |= tie.needs
        self._close()
        self.closed = True

    @property
    def every(self) -> frozenset[Key]:
        """All inputs with a time column that the block reads."""
        tied = (tie.inputs for tie in self.ties)
        return frozenset(key for keys in (*self.inputs.values(), *tied) for key in keys)

    def full(self, shapes: Shapes) -> bool:
        """Whether something is known against every input."""
        return bool(shapes) and (self.lenient or self.every <= shapes.keys())

    def connected(self, upto: int) -> bool:
        """Whether something of the first ``upto`` entries, and one more, is known against all."""
        entries = self.block.entries[: upto + 1]
        if self.lenient:
            return self._linked(entries)
        wanted = {key for entry in entries for key in self.inputs.get(id(entry), ())}
        ids = {id(entry) for entry in entries}
        return any(atom[0] in ids and wanted <= known.keys() for atom, known in self.known.items())

    def _linked(self, entries: list[From]) -> bool:
        """Whether something is known against the last of some entries, and any of the others."""
        last, others = id(entries[-1]), {id(entry) for entry in entries[:-1]}
        return any(
            any(key[0] == last for key in known) and any(key[0] in others for key in known)
            for known in self.known.values()
        )

    def tied(self, inputs: frozenset[Key]) -> bool:
        """Whether a value that every row here has is known against a subquery's inputs as well."""
        own = {
            id(entry)
            for entry in self.block.entries
            if id(entry) not in self.nullable and not entry.hidden
        }
        here = frozenset(key for keys in self.inputs.values() for key in keys)
        whole = self.connected(len(self.block.entries))
        wanted = inputs | here if whole else inputs
        return any(atom[0] in own and wanted <= known.keys() for atom, known in self.known.items())

    # -- expressions

    def shapes(self, node: exp.Expr) -> Shapes:
        """What is known of an expression over one row."""
        if isinstance(node, (exp.Paren, exp.Alias)):
            return self.shapes(node.this)
        if isinstance(node, exp.Column):
            if id(node) in self.block.aliases:
                return self.shapes(self.block.aliases[id(node)])
            atom = self._column(node)
            if self.closed and self.lenient and atom is not None and atom[0] in self.kept:
                return self.known.get(atom) or {key: Shape() for key in self.every}
            return self.known.get(atom, {}) if atom is not None else {}
        if isinstance(node, exp.Dot) and isinstance(node.this, exp.Column):
            return self._field(node)
        found = self._computed(node)
        atom = self.atom(node)
        if atom is not None and atom in self.known and self._holds(atom, node):
            return {**self.known[atom], **found}
        return found

    def _field(self, node: exp.Dot) -> Shapes:
        """What is known of a field of a column, or of what an alias of the SELECT stands for."""
        name = node.expression.name.lower()
        if id(node.this) in self.block.aliases:
            return self.shapes(field_of(self.block.aliases[id(node.this)], name))
        atom = self._column(node.this, name)
        return self.known.get(atom, {}) if atom is not None else {}

    def _computed(self, node: exp.Expr) -> Shapes:
        change = change_of(node)
        if change is None:
            return self._one_of(node)
        inner, how = change
        return {key: how(shape) for key, shape in self.shapes(inner).items()}

    def _one_of(self, node: exp.Expr) -> Shapes:
        """What holds of every value that an expression may be, where NULLs are accounted for."""
        values = chosen(node) or first_there(node) or exploded(node)
        if values is None or self._several_gaps(node) is None:
            return {}
        if isinstance(node, exp.Coalesce) and not self.gaps(values[0]):
            return self.shapes(values[0])  # it is never NULL
        known = [self.shapes(value) for value in values]
        shared = [key for key in known[0] if all(key in shapes for shapes in known)]
        return {key: hull(shapes[key] for shapes in known) for key in shared}

    def _several_gaps(self, node: exp.Expr) -> Gaps | None:
        """Where such a value is NULL, and nowhere else; None where that cannot be told."""
        each, there = chosen(node) or exploded(node), first_there(node)
        if each is not None:
            found = {self._missing(value) for value in each if self.shapes(value)}
            return found.pop() if len(found) == 1 else None
        known = [self._missing(value) for value in there or () if self.shapes(value)]
        if any(not gaps - self.present for gaps in known):
            return frozenset()
        return known[0] if known and len(set(known)) == 1 else None

    def _holds(self, atom: Atom, node: exp.Expr) -> bool:
        """
        Whether what is known of an expression holds wherever it is not NULL.

        ``coalesce(o.ts, DATE '2020-01-01') = x.ts`` ON an outer join to ``o`` is not said of the
        rows without one; a call that makes NULL of NULL has no other value there.
        """
        strict = self._under(node) is not None
        return strict or atom[0] not in self.nullable or atom in self.asserted

    def _under(self, node: exp.Expr) -> exp.Column | None:
        """The column that an expression is NULL with, and only with."""
        while not isinstance(node, exp.Column):
            of_column = isinstance(node, exp.Dot) and isinstance(node.this, exp.Column)
            if isinstance(node, (exp.Paren, exp.Alias)) or of_column:
                node = node.this
                continue
            change = change_of(node)
            if change is None:
                return None
            node = change[0]
        if id(node) in self.block.aliases:
            return self._under(self.block.aliases[id(node)])
        return node

    def made_of(self, value: exp.Expr | Origin) -> tuple[Atom, Shape] | None:
        """The column that a value is NULL with, and the value's shape against that column's."""
        if isinstance(value, Origin):
            atom: Atom | None = (id(value.entry), "\0".join((value.column, *value.fields)))
        elif isinstance(value, (exp.Paren, exp.Alias)):
            return self.made_of(value.this)
        elif isinstance(value, exp.Column):
            if id(value) in self.block.aliases:
                return self.made_of(self.block.aliases[id(value)])
            atom = self._column(value)
        else:
            change = change_of(value)
            inner = self.made_of(change[0]) if change is not None else None
            return None if inner is None or change is None else (inner[0], change[1](inner[1]))
        return (atom, Shape(grain=grain_of(self.known.get(atom, {})))) if atom else None

    def gaps(self, node: exp.Expr) -> Gaps:
        """Where the NULLs come from of an expression that something is known of."""
        return self._missing(node) - self.present

    def _missing(self, node: exp.Expr) -> Gaps:
        """The same before it is asked what is there in all rows."""
        while (change := change_of(node)) is not None or isinstance(node, (exp.Paren, exp.Alias)):
            node = change[0] if change is not None else node.this
        column = self._under(node)
        atom = self._column(column) if column is not None else None
        if column is None or atom is None:
            if isinstance(node, exp.Column) and id(node) in self.block.aliases:
                return self._missing(self.block.aliases[id(node)])
            return self._several_gaps(node) or frozenset()
        return self._gaps(atom, merged=not column.table)

    def column_gaps(self, entry: From, name: str, *, merged: bool) -> Gaps:
        """
        Where the NULLs come from of a column of an entry, lower case.

        ``merged``: whether it is asked for by its name alone, which after an outer join with USING
        is the value of either side.
        """
        return self._gaps((id(entry), name), merged=merged) - self.present

    def _gaps(self, atom: Atom, *, merged: bool) -> Gaps:
        for entry in self.block.entries if merged else ():
            join = entry.join
            if join is None or join.side.upper() not in ("RIGHT", "FULL"):
                continue
            if atom[1] in self._merged(entry):
                return frozenset({(id(join),)})  # missing where neither side has the value
        own = {(atom[0],)} if atom[0] in self.nullable else set()
        whole = atom[0], atom[1].partition("\0")[0]  # a field of a struct is NULL with the struct
        return self.absent.get(whole, frozenset()) | own

    def _ask(self, predicate: exp.Expr | None) -> None:
        """What is there in all rows for which a predicate is true."""
        for node in needed(predicate):
            self.present |= self._missing(node)

    def column(self, entry: From, name: str) -> Shapes:
        """What is known of a column of an entry, lower case; nothing of one that is not there."""
        here = any(one is entry for one in self.block.entries)
        return self.known.get((id(entry), name), {}) if here and not entry.hidden else {}

    def _column(self, node: exp.Column, *fields: str) -> Atom | None:
        origin = self.block.origins.get(id(node))
        for tie in self.ties:
            origin = origin or tie.origins.get(id(node))
        if origin is None or not any(one is origin.entry for one in self.block.entries):
            return None
        return id(origin.entry), "\0".join((origin.column, *origin.fields, *fields))

    def atom(self, node: exp.Expr) -> Atom | None:
        """The value that an expression is, where it draws on one entry alone."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            return self._column(node)
        floor = floor_of(node)
        if floor is not None and self._floored_already(floor):
            return self.atom(floor.inner)
        entries = set()
        for part in own(node):
            if isinstance(part, exp.Column):
                atom = self._column(part)
                if atom is None:
                    return None
                entries.add(atom[0])
            elif isinstance(part, (exp.Query, exp.Window)):
                return None
        if len(entries) != 1:
            return None
        return entries.pop(), self._by_atoms(node)

    def _by_atoms(self, node: exp.Expr) -> str:
        """The SQL of an expression over one entry, alike however its columns are written."""
        bare = node.copy()
        written = list(node.find_all(exp.Column))
        for one, column in zip(written, list(bare.find_all(exp.Column)), strict=True):
            atom = self._column(one)
            for key in ("table", "db", "catalog"):
                column.set(key, None)
            column.set("this", exp.to_identifier(atom[1] if atom else "", quoted=True))
        return bare.sql("spark", normalize=True)

    def _floored_already(self, floor: Floor) -> bool:
        """Whether a floor leaves each value as it is."""
        unit, shapes = floor.unit, self.shapes(floor.inner).values()
        if unit is None:
            return True
        grains = [shape.grain for shape in shapes]
        return bool(grains) and all(grain is not None and grain.holds(unit) for grain in grains)

    # -- joins and links

    def _explode(self, entry: From) -> None:
        """The column of LATERAL VIEW explode(…), which is what the rows before it make it."""
        node, columns = entry.node, entry.relation.columns
        if not isinstance(node, exp.Lateral) or not node.args.get("view"):
            return
        if node.args.get("outer"):  # its NULLs are of rows of any time
            return
        if columns is None or len(columns) != 1 or not isinstance(node.this, exp.Explode):
            return
        shapes, gaps = self.shapes(node.this), self._missing(node.this)
        if shapes and not gaps:
            self.known[id(entry), columns[0].lower()] = dict(shapes)

    def _join(self, at: int, entry: From) -> None:
        join = entry.join
        if join is None:
            return
        side, kind = join.side.upper(), join.kind.upper()
        if side in ("LEFT", "FULL") or kind in ("SEMI", "ANTI"):
            self.nullable.add(id(entry))
        if side in ("RIGHT", "FULL"):
            self.nullable.update(id(one) for one in self.block.entries[:at])
            self.present.clear()
        outer = side in ("LEFT", "RIGHT", "FULL") or kind in ("SEMI", "ANTI")
        self._keep(side, at, entry)
        if side == "LEFT":
            asked = (self._missing(node) for node in needed(join.args.get("on")))
            self.with_it[id(entry)] = frozenset(gap for gaps in asked for gap in gaps)
        for link in links(join.args.get("on")):
            self._state(link, only=id(entry) if outer else None)
        if not outer:
            self._ask(join.args.get("on"))
        for name in self._merged(entry):
            for other in self.block.entries[:at]:
                left, right = (id(other), name), (id(entry), name)
                if left in self.known and right in self.known:
                    self._put(left, right, (0, 0))

    def _merged(self, entry: From) -> list[str]:
        """The columns by which a join with USING, or a NATURAL one, is, in lower case."""
        join = entry.join
        if join is None or join.args.get("method") != "NATURAL":
            return [name.name.lower() for name in (join.args.get("using") if join else None) or ()]
        before = self.block.entries[: self.block.entries.index(entry)]
        there = {name.lower() for one in before for name in one.relation.columns or ()}
        return [name.lower() for name in entry.relation.columns or () if name.lower() in there]

    def _keep(self, side: str, at: int, entry: From) -> None:
        """Note the lookups whose rows an outer join keeps."""
        before = self.block.entries[:at]
        if side == "LEFT" and not any(self.inputs.get(id(one)) for one in before):
            self.kept.update(id(one) for one in before)
        if side == "RIGHT" and not self.inputs.get(id(entry)):
            self.kept.add(id(entry))

    def _state(self, link: Link, only: int | None = None) -> None:
        left, right = self.atom(link.left), self.atom(link.right)
        if left is None or right is None or left == right:
            return
        if only is not None and only not in (left[0], right[0]):
            return  # it chooses matches, and holds for no row without one
        if link.or_null and not (self._there(left, only) or self._there(right, only)):
            return  # two NULLs, of rows of any time
        for atom, node in ((left, link.left), (right, link.right)):
            if atom not in self.known:
                self.known[atom] = dict(self.shapes(node))
        self._put(left, right, (link.low, link.high))

    def _there(self, atom: Atom, joined: int | None) -> bool:
        """Whether a value is never NULL where a predicate is asked, that of a join for one."""
        missing = self._gaps(atom, merged=False) - self.present
        return atom in self.given and missing <= ({(joined,)} if joined is not None else set())

    def _tie(self, tie: Tie) -> None:
        """What a subquery says of its own rows; of the rows here it says nothing."""
        self.nullable.add(tie.at)
        for near in tie.near:
            atom = self.atom(near.outer)
            if atom is None:
                continue
            if atom not in self.known:
                self.known[atom] = dict(self.shapes(near.outer))
            self.known.setdefault(near.inner, dict(near.shapes))
            self._put(atom, near.inner, near.span)

    def _put(self, left: Atom, right: Atom, span: Span) -> None:
        if (right, left) in self.stated:
            left, right, span = right, left, (-span[1], -span[0])
        low, high = self.stated.get((left, right), (-FAR, FAR))
        self.stated[left, right] = max(low, span[0]), min(high, span[1])

    def _close(self) -> None:
        """Carry what is known along the links until nothing new comes of it."""
        both = dict(self.stated)
        both |= {(right, left): (-high, -low) for (left, right), (low, high) in both.items()}
        spans = [
            (left, right, span)
            for (left, right), span in self._completed(both)
            if -FAR < span[0] <= span[1] < FAR
        ]
        grains = {atom: grain_of(shapes) for atom, shapes in self.known.items()}
        while any([*self._carried(spans, grains), *self._shared()]):
            pass

    def _completed(
        self, stated: Mapping[tuple[Atom, Atom], Span]
    ) -> Iterator[tuple[tuple[Atom, Atom], Span]]:
        """
        The links, and those that have one end from a value and the other from a neighbour of it.

        ``b.ts >= cast(a.ts AS date) AND b.ts <= a.ts`` bounds ``b.ts`` by a.ts on both sides.
        """
        for (left, right), (low, high) in stated.items():
            for (other, beside), (least, most) in stated.items():
                apart = self._apart(beside, right) if other == left else None
                if apart is None:
                    continue
                if low == -FAR < least:
                    low = least + apart[0]
                if high == FAR > most:
                    high = most + apart[1]
            yield (left, right), (low, high)

    def _apart(self, one: Atom, other: Atom) -> Span | None:
        """How far apart two values of one entry are, as both are known against one input."""
        if one == other or one[0] != other[0]:
            return None
        ways = self._between(one, other)
        return apart(self.known[one], self.known[other], ways) if ways else None

    def _carried(
        self, spans: list[tuple[Atom, Atom, Span]], grains: Mapping[Atom, Grain]
    ) -> Iterator[bool]:
        for left, right, span in spans:
            for key in self._handed_on(right, left):
                shape = self.known[right][key]
                self.known[left][key] = shape.among(span, grains[left])
                yield True

    def _shared(self) -> Iterator[bool]:
        """What one value knows of an input, another knows by an input that both know."""
        atoms = [atom for atom, shapes in self.known.items() if shapes]
        for atom in atoms:
            for bridge in atoms:
                ways = self._between(atom, bridge) if atom != bridge else []
                if not ways:
                    continue
                mine, theirs = dict(self.known[atom]), self.known[bridge]
                for key in self._handed_on(bridge, atom):
                    found = beyond(mine, theirs, theirs[key], ways, self.granularity)
                    self.known[atom][key] = found
                    yield True

    def _between(self, atom: Atom, bridge: Atom) -> Ways:
        """The inputs that tie two values wherever the first is not NULL."""
        both = self.known[atom].keys() & self.known[bridge].keys()
        return self.ways(both, self._gaps(atom, merged=False)) if both else []

    def ways(self, shared: Collection[Key], gaps: Gaps) -> Ways:
        """
        By which of the inputs that two values are known against one says something of the other.

        Of a value whose NULLs come from ``gaps``, and where it is not NULL.
        """
        found: Ways = []
        for key, wanted in self.needs.items():
            if key in shared and wanted is not None and wanted - self.present <= gaps:
                found.append((key,))
        for at in dict.fromkeys(key[0] for key in self.needs):
            group = [key for key in self.needs if key[0] == at]
            there = not self._optional(at) or (at,) in gaps
            if len(group) > 1 and there and all(key in shared for key in group):
                found.append(tuple(group))
        return found

    def _optional(self, at: int) -> bool:
        """Whether rows may lack a row of an entry."""
        return at in self.nullable and (at,) not in self.present

    def _handed_on(self, giver: Atom, taker: Atom) -> list[Key]:
        """The inputs that one value may tell another of, and that are news to it."""
        keys = [key for key in self.known[giver] if key not in self.known[taker]]
        if self._optional(giver[0]) and giver[0] != taker[0]:
            # Where such a row is, there is a row of the giver's too.
            keys = [
                key
                for key in keys
                if key[0] == giver[0] or (giver[0],) in self.with_it.get(key[0], ())
            ]
        return keys


def grain_of(shapes: Shapes) -> Grain:
    """How coarse a value is, as all its shapes agree."""
    grains = {shape.grain for shape in shapes.values()}
    return grains.pop() if len(grains) == 1 else None
