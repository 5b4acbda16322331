"""The faults that are planted: for each kind a function that finds its places in a file.

A finder yields Changes: tokens first..last, and what stands there instead. The kinds' names are those of results.
"""
import dataclasses
import re

from mutation.expressions import (ASSIGNMENTS, NO_OPERANDS, PRECEDENCE, arguments, begins_statement, chain_end,
                                  chain_start, is_declared, is_value, left_operand, operands, statement_end)

AXIS_NAME = re.compile(r"(?:[a-z_]*_)?(?:dim|axis)_?")
COUNT_NAME = re.compile(r"(?:[a-z_]*_)?(?:size|count|length|numel|ranks|members|bytes|steps|rows)_?")
INTEGER = re.compile(r"\d[\d']*[uUlL]*")
REAL = re.compile(r"[\d']+\.\d*|\d*\.\d+")
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
OTHER_NAMES = {"min": "max", "max": "min", "min_element": "max_element", "max_element": "min_element",
               "lower_bound": "upper_bound", "upper_bound": "lower_bound", "all_of": "any_of", "any_of": "all_of"}
OTHER_ENDS = {"start": "end()", "end()": "start", "first": "second", "second": "first", "front()": "back()",
              "back()": "front()", "before": "after", "after": "before", "source": "target", "target": "source"}
LEAVES = {"return", "continue", "break", "throw", "fail"}


@dataclasses.dataclass
class Change:
    first: int
    last: int
    after: str  # of the variant, in place of the tokens
    form: str = "{}"  # of the text as it is, beside it


def binary(source, texts):
    """Every binary operator of these texts, with the tokens of its operands."""
    for place in range(len(source)):
        if source[place] in texts and source.is_binary(place):
            found = operands(source, place)
            if found:
                yield place, *found


def exchanged(source, place, first, last, text):
    """a OP b with another operator."""
    return Change(first, last, f"{source.flat(first, place - 1)} {text} {source.flat(place + 1, last)}")


def offsets(source):
    """a + b becomes a - b, and the other way round."""
    for place, first, last in binary(source, "+-"):
        if not any(source.tokens[at].kind in ("string", "raw") for at in range(first, last + 1)):
            yield exchanged(source, place, first, last, "-" if source[place] == "+" else "+")


def indices(source):
    """x[i] takes the element before, x[0] the next one."""
    for place in range(1, len(source)):
        if source[place] != "[" or source.tokens[place].pair != place + 2:
            continue
        index = source[place + 1]
        if source.is_word(place + 1) and index != "this":
            yield Change(place + 1, place + 1, f"{index} > 0 ? {index} - 1 : {index}")
        elif index.isdigit():
            yield Change(place + 1, place + 1, "1" if index == "0" else str(int(index) - 1))


def ends(source):
    """a.start becomes a.end(), and other pairs of names."""
    for place in range(1, len(source)):
        is_call = source[place + 1] == "(" and source[place + 2] == ")"
        name = source[place] + ("()" if is_call else "")
        if name not in OTHER_ENDS or source[place - 1] not in (".", "->"):
            continue
        first, last = chain_start(source, place), place + 2 * is_call
        if source[first] != "." and is_value(source, first, last):
            yield Change(first, last, source.flat(first, place - 1) + OTHER_ENDS[name])


def comparisons(source):
    """< becomes <=, == becomes !=."""
    for place, first, last in binary(source, COMPARISONS):
        yield exchanged(source, place, first, last, COMPARISONS[source[place]])


def factors(source):
    """A product or quotient becomes its left operand."""
    for place, first, last in binary(source, "*/%"):
        yield Change(first, last, source.flat(first, place - 1))


def numbers(source):
    """0 becomes 1, 1 becomes 0, any other number is doubled."""
    for place, token in enumerate(source.tokens):
        if token.kind != "number" or source[place - 1] == "[" and source[place + 1] == "]":
            continue
        if INTEGER.fullmatch(token.text):
            suffix = token.text.lstrip("0123456789'")
            value = int(token.text[:len(token.text) - len(suffix)].replace("'", ""))
            yield Change(place, place, f"{ {0: 1, 1: 0}.get(value, 2 * value) }{suffix}")
        elif REAL.fullmatch(token.text):
            yield Change(place, place, f"2 * {token.text}" if float(token.text.replace("'", "")) else "1.0")


def counts(source):
    """What counts something is doubled, or 1, or 0: one of these for each place, in turn."""
    texts = ("{0} * 2", "{0} * 0 + 1", "{0} * 0")
    for number, (first, last) in enumerate(named_values(source, COUNT_NAME)):
        yield Change(first, last, texts[number % 3].format(source.flat(first, last)))


def axes(source):
    """A dimension or axis becomes another one."""
    for first, last in named_values(source, AXIS_NAME):
        yield Change(first, last, f"{source.flat(first, last)} == 0 ? 1 : 0")


def named_values(source, name):
    """The chains whose last name matches and that are read: `dim`, `move.axis`, `shards.size()`."""
    for place, token in enumerate(source.tokens):
        if token.kind != "word" or not name.fullmatch(token.text) or source[place - 1] == "::":
            continue
        is_call = source[place + 1] == "("
        last = source.tokens[place + 1].pair if is_call else place
        first = chain_start(source, place)
        if source[first] != "." and source[first - 1] != "[" and is_value(source, first, last):
            yield first, last


def dropped_calls(source):
    """A call that is a statement is left out."""
    for first, last in statements(source):
        if source[last] == ")" and chain_end(source, first) == last:
            yield Change(first, last, "void()", "static_cast<void>({})")


def dropped_assignments(source):
    """So is an assignment."""
    for first, last in statements(source):
        start = first + 1 if source[first] in ("*", "++", "--") else first
        if not source.is_word(start):
            continue
        end = chain_end(source, start)
        after = source[end + 1]
        counted = end == last and source[first] in ("++", "--") or after in ("++", "--") and end + 1 == last
        if after in ASSIGNMENTS or counted:
            yield Change(first, last, "void()", "static_cast<void>({})")


def statements(source):
    """First and last token of every statement that may be an expression."""
    for place in range(1, len(source)):
        if source[place] in NO_OPERANDS or source[place] in "{};" or not begins_statement(source, place):
            continue
        last = statement_end(source, place)
        if last is not None and last >= place:
            yield place, last


def swapped_arguments(source):
    """f(a, b) becomes f(b, a) where both are names or calls."""
    for opening in range(1, len(source)):
        if source[opening] != "(" or not (source.is_word(opening - 1) or source.tokens[opening - 1].angle):
            continue
        name = source.tokens[opening - 1].pair - 1 if source.tokens[opening - 1].angle else opening - 1
        first = chain_start(source, name)
        last = source.tokens[opening].pair
        if source[name] in NO_OPERANDS or source[first] in ".:" or not is_value(source, first, last):
            continue
        found = arguments(source, opening)
        for (a, b), (c, d) in zip(found, found[1:]):
            if alike(source, a, b, c, d):
                before = source.flat(first, a - 1) + " " * source.tokens[a].space_before
                yield Change(first, last, f"{before}{source.flat(c, d)}, {source.flat(a, b)}{source.flat(d + 1, last)}")


def alike(source, a, b, c, d):
    """Whether two arguments are spelled alike: names or calls both, and not the same."""
    chains = source.is_word(a) and chain_end(source, a) == b and source.is_word(c) and chain_end(source, c) == d
    return chains and source[b] not in ("}", "]") and (source[b] == ")") == (source[d] == ")") and (
        source.flat(a, b) != source.flat(c, d))


def negations(source):
    """The condition of if and ?: is negated."""
    for first, last, _ in conditions(source):
        yield Change(first, last, f"!({source.flat(first, last)})", "static_cast<bool>({})")
    for place in range(1, len(source)):
        if source[place] == "?" and source.is_binary(place):
            first = left_operand(source, place)
            if first is not None:
                yield Change(first, place - 1, f"!({source.flat(first, place - 1)})", "static_cast<bool>({})")


def early_returns(source):
    """if (a) return ...; is left out, as are continue, break and throw."""
    for first, last, closing in conditions(source):
        body = closing + 2 if source[closing + 1] == "{" else closing + 1
        if source[body] in LEAVES:
            yield Change(first, last, "false", "static_cast<bool>({})")


def conditions(source):
    """Of every `if (a)` and `if (b; a)`: first and last token of a, and the closing bracket."""
    for place in range(len(source)):
        if source[place] != "if" or source[place + 1] != "(":
            continue
        first, closing = place + 2, source.tokens[place + 1].pair
        inside = [at for at in range(first, closing) if source.tokens[at].parent == place + 1]
        first = max([first, *(at + 1 for at in inside if source[at] == ";")])
        if not any(source[at] in ASSIGNMENTS for at in inside if at >= first):
            yield first, closing - 1, closing


def junctions(source):
    """&& becomes ||, and the other way round."""
    for place, first, last in binary(source, ("&&", "||")):
        left, right = source.flat(first, place - 1), source.flat(place + 1, last)
        if source[place] == "&&":
            yield Change(first, last, f"({left}) || ({right})")
        else:
            yield Change(first, last, f"({left}) && ({right})")


def min_max(source):
    """min becomes max, all_of any_of, lower_bound upper_bound."""
    for place in range(1, len(source)):
        opening = place + 1
        if source[place] not in OTHER_NAMES or opening >= len(source):
            continue
        opening = source.tokens[opening].pair + 1 if source.tokens[opening].angle else opening
        first = chain_start(source, place)
        if source[opening] != "(" or is_declared(source, first):
            continue
        last = source.tokens[opening].pair
        yield Change(first, last, source.flat(first, place - 1) * (first < place) + OTHER_NAMES[source[place]]
                     + source.flat(place + 1, last))


KINDS = {finder.__name__: finder for finder in (
    offsets, indices, ends, comparisons, factors, numbers, counts, axes, dropped_calls, dropped_assignments,
    swapped_arguments, negations, early_returns, junctions, min_max)}
assert PRECEDENCE.keys() >= COMPARISONS.keys()
