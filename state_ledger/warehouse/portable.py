"""What SQLite reads in its own way, written as every engine reads it. Each function changes a statement in place."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp


def count_by_number(tree: exp.Expr, counted: Collection[str]) -> None:
    """Rows of these views stand for `number` rows each, and are counted as such."""
    for count in list(tree.find_all(exp.Count)):
        select = count.find_ancestor(exp.Select)
        if isinstance(count.this, exp.Star) and select is not None:
            for source in sources_of(select):
                if isinstance(source, exp.Table) and source.name in counted:
                    number = exp.column("number", table=source.alias_or_name)
                    count.replace(exp.Coalesce(this=exp.Sum(this=number), expressions=[exp.Literal.number(0)]))


def sources_of(select: exp.Select) -> list[exp.Expr]:
    """What stands after FROM and is joined to it."""
    first = source_of(select)
    return [] if first is None else [first, *(join.this for join in select.args.get("joins") or ())]


def source_of(select: exp.Select) -> exp.Expr | None:
    """What stands after FROM, without joins."""
    found = select.args.get("from_")
    return found.this if isinstance(found, exp.From) else None


def show_places(tree: exp.Expr, of_files: Collection[str]) -> None:
    """Rows about the file of a store say at their end which store and host it is of.

    of_files: the views of such rows. A statement over a part of it that was named before (WITH) shows what that has.
    """
    named = set(of_files)
    for cte in tree.find_all(exp.CTE):
        if _show_places(cte.this, named):
            named.add(cte.alias)
    _show_places(tree, named)


def _show_places(select: exp.Expr, named: Collection[str]) -> bool:
    source = source_of(select) if isinstance(select, exp.Select) else None
    if not isinstance(select, exp.Select) or not isinstance(source, exp.Table) or source.name not in named:
        return False
    for name in ("store", "host"):
        column = exp.column(name, table=source.alias_or_name)
        select.select(exp.alias_(column, name), copy=False)
        if select.args.get("group") is not None:
            select.group_by(column.copy(), copy=False)
    return True


def join_plainly(tree: exp.Expr) -> None:
    """SQLite lets a CROSS JOIN have a condition, by which it only fixes the order of loops."""
    for join in tree.find_all(exp.Join):
        if join.args.get("on") is not None and join.kind == "CROSS":
            join.set("kind", None)


def take_any_of_a_group(tree: exp.Expr) -> None:
    """A column that is the same in all rows of a group need not be grouped by in SQLite."""
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        if group is None:
            continue
        places = {each.this for each in group.expressions if isinstance(each, exp.Literal)}
        grouped = {each.name for each in group.expressions if isinstance(each, exp.Column)}
        for place, shown in enumerate(list(select.expressions), 1):
            column = shown.this if isinstance(shown, exp.Alias) else shown
            if isinstance(column, exp.Column) and column.name not in grouped and str(place) not in places:
                shown.replace(exp.alias_(exp.Max(this=column.copy()), shown.alias_or_name))


def name_columns(tree: exp.Expr) -> None:
    """Every column that is shown has its plain name, also where two tables have one of it; and what orders rows by
    the name of a shown column says which by its place, since engines differ in what such a name means."""
    for select in list(tree.find_all(exp.Select)):
        for shown in list(select.expressions):
            if isinstance(shown, exp.Column) and shown.table and not isinstance(shown.this, exp.Star):
                shown.replace(exp.alias_(shown.copy(), shown.name))
        order = select.args.get("order")
        if order is None or any(each.is_star for each in select.expressions):
            continue
        places = {each.alias: at for at, each in enumerate(select.expressions, 1) if isinstance(each, exp.Alias)}
        for term in order.expressions:
            named = term.this
            if isinstance(named, exp.Column) and not named.table and named.name in places:
                named.replace(exp.Literal.number(places[named.name]))


def end_recursion(tree: exp.Expr, longest: int) -> None:
    """A recursion that ends when it finds nothing new ends after as many steps as the longest chain of sessions has."""
    for cte in list(tree.find_all(exp.CTE)):
        union = cte.this
        if not isinstance(union, exp.Union) or not union.args.get("distinct"):
            continue
        first, following = union.this, union.expression
        itself = next((table for table in following.find_all(exp.Table) if table.name == cte.alias), None)
        if itself is None:
            continue
        before = exp.column("step", table=itself.alias_or_name)
        first.select(exp.alias_(exp.Literal.number(1), "step"), copy=False)
        following.select(exp.alias_(exp.Add(this=before, expression=exp.Literal.number(1)), "step"), copy=False)
        following.where(exp.LT(this=before.copy(), expression=exp.Literal.number(longest)), copy=False)
        following.set("distinct", exp.Distinct())
        union.set("distinct", False)


_CONDITIONS = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)


def tell_truth(tree: exp.Expr) -> None:
    """A condition that stands as a value is 1 or 0, and a number that stands as a condition is true unless 0."""
    for node in list(tree.walk(bfs=False))[::-1]:  # children before their parents
        if isinstance(node, exp.Paren):
            continue
        if isinstance(node, _CONDITIONS):
            if not _is_condition(node):
                node.replace(exp.cast(exp.Paren(this=node.copy()), "INT"))
        elif _is_condition(node):
            if isinstance(node, exp.Literal) and not node.is_string:
                node.replace(exp.Boolean(this=float(node.this) != 0))
            elif not isinstance(node, exp.Null):
                node.replace(exp.NEQ(this=exp.Paren(this=node.copy()), expression=exp.Literal.number(0)))


def _is_condition(node: exp.Expr) -> bool:
    """Whether a node stands where a condition belongs."""
    child = node
    while isinstance(child.parent, exp.Paren):
        child = child.parent
    parent = child.parent
    if isinstance(parent, (exp.Connector, exp.Not, exp.Where, exp.Having)):
        return True
    if isinstance(parent, exp.Join):
        return child.arg_key == "on"
    if isinstance(parent, exp.If):
        of_case = parent.parent
        return child.arg_key == "this" and not (isinstance(of_case, exp.Case) and of_case.this is not None)
    return False
