"""Where an expression begins and ends, told by its tokens."""
PRECEDENCE = {"*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<=>": 7, "<": 6, ">": 6, "<=": 6, ">=": 6,
              "==": 5, "!=": 5, "&": 4, "^": 3, "|": 2, "&&": 1, "||": 0, "?": -1}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
ENDS = ASSIGNMENTS | {",", ";", "?", ":", "(", "[", "{", ")", "]", "}", ""}
STATEMENT_WORDS = {"return", "throw", "case", "else", "do", "co_return", "co_yield", "goto", "default"}
NO_OPERANDS = STATEMENT_WORDS | {"if", "for", "while", "switch", "try", "catch", "delete", "using", "operator", "new",
                                 "break", "continue", "const", "auto", "static"}


def is_initializer(source, opening):
    """Whether a brace belongs to an expression, as in Range{0, 1}: there is no space before it."""
    before = source.tokens[opening - 1]
    return not source.tokens[opening].space_before and (before.kind == "word" or before.angle)


def left_operand(source, operator):
    """The first token of the operand on the left of a binary operator; None if there is none."""
    rank, place = PRECEDENCE[source[operator]], operator
    while True:
        before = place - 1
        token, text = source.tokens[before], source[before]
        if before >= 0 and 0 <= token.pair < before and (text != "}" or is_initializer(source, token.pair)):
            place = token.pair
        elif token.kind == "mark" and text in ENDS or text in STATEMENT_WORDS:
            return place if place < operator else None
        elif text in PRECEDENCE and source.is_binary(before) and PRECEDENCE[text] < rank:
            return place
        else:
            place = before


def right_operand(source, operator):
    """The last token of the operand on the right of a binary operator; None if it is no plain expression."""
    rank, place = PRECEDENCE[source[operator]], operator + 1
    while place < len(source):
        token, text = source.tokens[place], source[place]
        opens = token.pair > place and (text == "(" or text == "[" or token.angle or is_initializer(source, place))
        if opens:
            place = token.pair + 1
            continue
        if text == "{":
            return None  # a lambda
        if token.kind == "mark" and text in ENDS or text in STATEMENT_WORDS:
            break
        if text in PRECEDENCE and source.is_binary(place) and PRECEDENCE[text] <= rank:
            break
        place += 1
    return place - 1 if place > operator + 1 else None


def operands(source, operator):
    """First and last token of `a OP b`; None if they are not found."""
    first, last = left_operand(source, operator), right_operand(source, operator)
    return None if first is None or last is None else (first, last)


def chain_start(source, place):
    """The first token of a.b(c)->d, given one of its names."""
    while source[place - 1] in (".", "->", "::", ".*", "->*"):
        before = place - 2
        while source.tokens[before].pair >= 0 and source.tokens[before].pair < before:
            before = source.tokens[before].pair - 1
        if not source.is_word(before) or source[before] in STATEMENT_WORDS:
            return before + 1 if source[place - 1] != "::" else place - 1  # (a + b).c, ::call()
        place = before
    return place


def chain_end(source, place):
    """The last token of a.b(c)->d, given one of its names."""
    place += source[place] == "::"
    while True:
        token = source.tokens[place + 1] if place + 1 < len(source) else None
        if token is None:
            return place
        if token.pair > place and (token.text in ("(", "[") or token.angle or is_initializer(source, place + 1)):
            if token.text == "[" and token.space_before:
                return place
            place = token.pair
        elif token.text in (".", "->", "::") and source.is_word(place + 2):
            place += 2
        else:
            return place


def is_declared(source, first):
    """Whether the chain that begins here is a name that is being declared: a type stands before it."""
    before = source.tokens[first - 1]
    if before.kind == "word":
        return before.text not in STATEMENT_WORDS | {"co_await"}
    attached = before.text in ("*", "&", "&&") and not before.space_before and before.space_after
    return before.angle or attached or before.text == "..."


def is_value(source, first, last):
    """Whether tokens first..last may stand in parentheses: they are a whole operand, and not what is written to."""
    after = source[last + 1]
    written = after in ASSIGNMENTS | {"++", "--"} or source[first - 1] in ("++", "--", ".", "->", "::")
    address = source[first - 1] == "&" and not source.is_binary(first - 1)
    goes_on = after in ("(", "{", "[", "::", ".", "->")
    return not written and not address and not goes_on and not is_declared(source, first)


def arguments(source, opening):
    """First and last token of each argument of a call; empty if there are none."""
    closing, found, first = source.tokens[opening].pair, [], opening + 1
    place = first
    while place <= closing:
        token = source.tokens[place]
        if place == closing or token.text == ",":
            if place > first:
                found.append((first, place - 1))
            first = place + 1
        place = token.pair + 1 if token.pair > place and place != closing else place + 1
    return found


def statement_end(source, place):
    """The last token before the statement's semicolon; None if a bracket ends first."""
    while place < len(source):
        token = source.tokens[place]
        if token.text == ";":
            return place - 1
        if token.text in (")", "]", "}"):
            return None
        place = token.pair + 1 if token.pair > place else place + 1
    return None


def begins_statement(source, place):
    before = source.tokens[place - 1]
    parent = source.tokens[place].parent
    if parent < 0 or source[parent] != "{" or is_initializer(source, parent):
        return False
    if before.text in (";", "{", "}", "else", "do"):
        return True
    if before.text == ")":
        head = before.pair - 1
        return source[head] in ("if", "for", "while") or source[head] == "constexpr"
    return before.text == ":" and source[place - 3] in ("case", "::") or source[place - 2] == "default"
