"""Which tokens of a file may be rewritten: those of function bodies, without what has to stay a constant."""
from mutation.tokens import NOT_TYPES

CONSTANT = {"constexpr", "consteval", "constinit", "static_assert", "using", "typedef", "friend", "concept", "requires",
            "enum"}
NOT_EVALUATED = {"sizeof", "decltype", "alignas", "alignof", "noexcept", "typeid", "__attribute__", "explicit",
                 "operator"}
HEADS = {"if", "for", "while", "switch", "catch"}


def rewritable(source):
    """A flag for each token."""
    flags = [False] * len(source)
    mark_bodies(source, 0, len(source), flags)
    for place in range(len(source)):
        if flags[place]:
            freeze(source, place, flags)
    return flags


def mark_bodies(source, first, last, flags):
    """Marks the function bodies of tokens first..last, which are declarations of a namespace or a class."""
    head, place = first, first
    while place < last:
        token, text = source.tokens[place], source[place]
        if text in ("(", "[") or token.angle and token.pair > place:
            place = max(token.pair, place)
        elif text == "{" and token.pair > place:
            if mark_block(source, head, place, flags):
                head = token.pair + 1
            place = token.pair
        elif text in (";", "}") or text == ":" and source[place - 1] in ("public", "private", "protected"):
            head = place + 1
        place += 1


def mark_block(source, head, opening, flags):
    """Marks what a block holds that stands among declarations. Whether a declaration ends with it."""
    closing = source.tokens[opening].pair
    words = outer_words(source, head, opening)
    assigns = any(word == "=" and before != "operator" for before, word in zip(["", *words], words))
    if "enum" in words or "concept" in words or assigns:
        return False
    if words and words[0] in ("namespace", "extern") or "inline" in words[:1] and "namespace" in words[1:2]:
        mark_bodies(source, opening + 1, closing, flags)
        return True
    if "(" not in words:
        if {"struct", "class", "union"} & set(words):
            mark_bodies(source, opening + 1, closing, flags)
        return False
    start = words.index("(")
    if ":" in words[start:] and source.is_word(opening - 1) and not source.tokens[opening].space_before:
        return False  # a member's initializer
    if not {"constexpr", "consteval"} & set(words):
        mark_body(source, head, opening, flags)
    return True


def outer_words(source, first, last):
    """The texts of tokens first..last that stand in no brackets; of brackets the opening one."""
    words, place = [], first
    while place < last:
        words.append(source[place])
        token = source.tokens[place]
        place = token.pair + 1 if token.pair > place else place + 1
    return words


def mark_body(source, head, opening, flags):
    """A function's block, with a constructor's initializers and without the local classes' declarations."""
    first, place = opening, head
    while place < opening and first == opening:
        token = source.tokens[place]
        if source[place] == ":" and source[place - 1] in (")", "noexcept"):
            first = place
        place = token.pair + 1 if token.pair > place else place + 1
    for place in range(first, source.tokens[opening].pair):
        flags[place] = True
    for place in range(opening, source.tokens[opening].pair):
        if source[place] in ("struct", "class", "union") and source[place - 1] in ("{", "}", ";"):
            unmark_class(source, place, flags)


def unmark_class(source, place, flags):
    opening = place
    while source[opening] not in ("{", ";", "(", "=", ""):
        opening += 1
    if source[opening] != "{":
        return
    closing = source.tokens[opening].pair
    for at in range(place, closing + 1):
        flags[at] = False
    mark_bodies(source, opening + 1, closing, flags)


def freeze(source, place, flags):
    """Takes out what begins at this token and has to stay as it is."""
    token, text = source.tokens[place], source[place]
    if token.angle and token.pair > place:
        unmark(flags, place, token.pair)
    elif text in CONSTANT:
        freeze_constant(source, place, flags)
    elif text in ("case", "default"):
        unmark(flags, place, find(source, place, ":"))
    elif text in NOT_EVALUATED or is_macro(source, place):
        unmark(flags, place, max(place, source.tokens[min(place + 1, len(source) - 1)].pair))
    elif text == "[" and is_fixed_bracket(source, place):
        unmark(flags, place, token.pair)
    elif text == "=" and is_default_argument(source, place):
        freeze_default(source, place, flags)
    elif is_named_constant(source, place):
        unmark(flags, place, find(source, place, ";"))


def unmark(flags, first, last):
    for place in range(first, last + 1):
        flags[place] = False


def find(source, place, text):
    """The next token of this text in the same bracket, or the last one there."""
    while place < len(source) - 1 and source[place] != text and source[place] not in (")", "]", "}"):
        pair = source.tokens[place].pair
        place = pair + 1 if pair > place else place + 1
    return place


def freeze_constant(source, place, flags):
    """A constant's declaration, or a constant function with its body; of `if constexpr` the condition."""
    if source[place] == "constexpr" and source[place - 1] == "if":
        return unmark(flags, place, source.tokens[place + 1].pair)
    at = place
    while at < len(source) - 1 and source[at] != ";":
        pair = source.tokens[at].pair
        if source[at] == "{" and source[pair + 1] not in (";", ",", ".", "(", "{"):
            at = pair
            break
        at = pair + 1 if pair > at else at + 1
    return unmark(flags, place, at)


def is_macro(source, place):
    """Its arguments may become texts: a check says what was not so."""
    text = source[place]
    return source[place + 1] == "(" and len(text) > 2 and text.isupper() and source.is_word(place)


def is_fixed_bracket(source, place):
    """Of an attribute, a lambda's captures, a structured binding, or an array's bounds."""
    before = source.tokens[place - 1]
    if before.text in (")", "]", "this") or before.kind == "string":
        return False
    if before.kind != "word" or before.text in NOT_TYPES or before.text in ("auto", "mutable", "const"):
        return True
    earlier = source.tokens[place - 2]
    declared = earlier.kind == "word" and earlier.text not in NOT_TYPES
    attached = earlier.text in ("*", "&", "&&") and not earlier.space_before and source.is_word(place - 3)
    return declared or earlier.angle or attached


def is_default_argument(source, place):
    """In the parameters of a lambda or of a function that is declared here."""
    opening = source.tokens[place].parent
    return opening >= 0 and source[opening] == "(" and source[opening - 1] not in HEADS


def freeze_default(source, place, flags):
    end = place
    while source[end] not in (",", ")"):
        pair = source.tokens[end].pair
        end = pair + 1 if pair > end else end + 1
    unmark(flags, place, end - 1)


def is_named_constant(source, place):
    """kName = ..., which may be needed by the compiler."""
    text = source[place]
    return len(text) > 1 and text[0] == "k" and text[1].isupper() and source[place + 1] in ("=", "[") and (
        source.is_word(place - 1) and source[place - 1] not in NOT_TYPES or source.tokens[place - 1].angle)
