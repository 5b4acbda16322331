"""C++ text as tokens that know their brackets, as far as clang-formatted code can be read without its types."""
import bisect
import dataclasses
import re

TOKEN = re.compile(r"""
    (?P<skip>    \s+ | //[^\n]* | /\*.*?\*/ )
  | (?P<raw>     (?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)" )
  | (?P<string>  (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*" | (?:u8|[uUL])?'(?:[^'\\\n]|\\.)+' )
  | (?P<number>  \.?\d(?:[eEpP][+-]|'?[\w.])* )
  | (?P<word>    [A-Za-z_]\w* )
  | (?P<mark_>   <=> | <<= | >>= | \.\.\. | ->\* | \.\* | :: | -> | \+\+ | -- | << | >> | <= | >= | == | != | && | \|\|
                 | [-+*/%&|^]= | . )
""", re.VERBOSE | re.DOTALL)
DIRECTIVE = re.compile(r"[ \t]*#(?:[^\n\\]|\\.|//[^\n]*)*", re.DOTALL)
KINDS = ("raw", "string", "number", "word")
CLOSERS = {"(": ")", "[": "]", "{": "}"}
NOT_TYPES = {"return", "else", "do", "throw", "case", "goto", "new", "delete", "co_return", "co_yield", "co_await",
             "and", "or", "not", "default", "const"}


@dataclasses.dataclass
class Token:
    kind: str  # "word", "number", "string", "raw", "mark"
    text: str
    start: int
    end: int
    space_before: bool = False
    space_after: bool = False
    pair: int = -1  # of a bracket: its other end; of template angles, too
    parent: int = -1  # the bracket that it stands in, -1 outside all
    angle: bool = False  # opens or closes template arguments


class Source:
    """A text and its tokens, without comments and preprocessor lines."""

    def __init__(self, text):
        self.text = text
        self.tokens, self.directives = read_tokens(text)
        pair_angles(self.tokens)
        pair_brackets(self.tokens)
        self.lines = text.split("\n")
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def __getitem__(self, place):
        """The text of a token; "" beyond the ends, so that neighbours can be asked for."""
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def __len__(self):
        return len(self.tokens)

    def line(self, place):
        """Its number, from 1."""
        return bisect.bisect_right(self.line_starts, self.tokens[place].start)

    def flat(self, first, last):
        """The text of tokens first..last in one line, without comments."""
        parts = []
        for place in range(first, last + 1):
            parts.append((" " if place > first and self.tokens[place].space_before else "") + self[place])
        return "".join(parts)

    def is_word(self, place):
        return 0 <= place < len(self.tokens) and self.tokens[place].kind == "word"

    def is_binary(self, place):
        """Whether an operator stands between two operands: it has space on both sides, as clang-format leaves it."""
        token = self.tokens[place]
        return token.kind == "mark" and token.space_before and token.space_after and not token.angle

    def holds_directive(self, first, last):
        start, end = self.tokens[first].start, self.tokens[last].end
        return any(start < at < end for at in self.directives)


def read_tokens(text):
    """The tokens, and where preprocessor lines begin."""
    tokens, directives, place, spaced, at_line_start = [], [], 0, True, True
    while place < len(text):
        directive = DIRECTIVE.match(text, place) if at_line_start else None
        if directive:
            directives.append(place)
            place, spaced = directive.end(), True
            continue
        match = TOKEN.match(text, place)
        if match.group("skip") is not None:
            at_line_start, spaced = "\n" in match.group() or at_line_start, True
            if tokens:
                tokens[-1].space_after = True
        else:
            kind = next((name for name in KINDS if match.group(name) is not None), "mark")
            tokens.append(Token(kind, match.group(), place, match.end(), space_before=spaced))
            at_line_start = spaced = False
        place = match.end()
    return tokens, directives


def pair_angles(tokens):
    """Finds template arguments. A comparison has space before its <, they have none (but after the word template)."""
    for place, token in enumerate(tokens):
        if token.text != "<" or token.angle or place == 0:
            continue
        before = tokens[place - 1]
        if before.kind != "word" or before.text == "operator" or (token.space_before and before.text != "template"):
            continue
        end = closing_angle(tokens, place)
        if end is not None:
            token.angle = tokens[end].angle = True
            token.pair = end
            tokens[end].pair = place if tokens[end].pair < 0 else tokens[end].pair  # >> belongs to the outer one


def closing_angle(tokens, place):
    """Where the template arguments end that open at `place`; None if it is no such place."""
    depth, nested = 0, 0
    for at in range(place, len(tokens)):
        text = tokens[at].text
        if text in CLOSERS:
            nested += 1
        elif text in CLOSERS.values():
            nested -= 1
        if nested < 0 or text == ";":
            return None
        if nested == 0 and text == "<":
            depth += 1
        elif nested == 0 and text in (">", ">>"):
            depth -= len(text)
            if depth <= 0:
                return at
    return None


def pair_brackets(tokens):
    stack = []
    for place, token in enumerate(tokens):
        if token.text in CLOSERS.values() and token.kind == "mark":
            while stack and CLOSERS[tokens[stack[-1]].text] != token.text:
                stack.pop()
            if stack:
                token.pair = stack.pop()
                tokens[token.pair].pair = place
        token.parent = stack[-1] if stack else -1
        if token.text in CLOSERS and token.kind == "mark":
            stack.append(place)
