"""Conversations as tokens, with which of them are learned: what `lockstep data prepare --chat` reads and writes."""
from documents import LINES_ENDINGS, ending_of, reading, records_of, require_whole
from problem import Problem

ROLES = ("system", "user", "assistant", "tool")


class Special(str):
    """A text that is one token where the tokenizer knows it."""


def chatml(role, content):
    """Pieces of a turn: what stands before the content, the content, its end, what stands behind it."""
    return [Special("<|im_start|>"), role + "\n"], content, [Special("<|im_end|>")], ["\n"]


def llama3(role, content):
    header = [Special("<|start_header_id|>"), role, Special("<|end_header_id|>"), "\n\n"]
    return header, content.strip(), [Special("<|eot_id|>")], []


def plain(role, content):
    return [], content, [], []


TEMPLATES = {"chatml": ([], chatml), "llama3": ([Special("<|begin_of_text|>")], llama3), "plain": ([], plain)}


def text_of(value, where, name):
    if not isinstance(value, str):
        raise Problem(f'{where}: "{name}" is {type(value).__name__}, not text.')
    return require_whole(value, where)


def messages_of(value, where, name):
    """[{"role", "content"}, ...] as pairs."""
    if not isinstance(value, list) or not value:
        raise Problem(f'{where}: "{name}" is no list of messages.')
    messages = []
    for number, message in enumerate(value):
        place = f'{where}: "{name}"[{number}]'
        if not isinstance(message, dict) or set(message) != {"role", "content"}:
            raise Problem(f'{place}: is no {{"role", "content"}}.')
        role = text_of(message["role"], place, "role")
        if role not in ROLES:
            raise Problem(f"{place}: role {role} is not one of {', '.join(ROLES)}.")
        messages.append((role, text_of(message["content"], place, "content")))
    return messages


def turns_of(value, where, name, role):
    """A list of messages, or a text, which is one message of this role."""
    return [(role, text_of(value, where, name))] if isinstance(value, str) else messages_of(value, where, name)


def shared(first, second):
    count = 0
    while count < min(len(first), len(second)) and first[count] == second[count]:
        count += 1
    return count


def preferences_of(record, where):
    """Two conversations, and with how many messages both begin."""
    prompt = turns_of(record["prompt"], where, "prompt", "user") if "prompt" in record else []
    both = [prompt + turns_of(record[name], where, name, "assistant") for name in ("chosen", "rejected")]
    count = shared(*both)
    for messages, name in zip(both, ("chosen", "rejected")):
        if not any(role == "assistant" for role, _ in messages[count:]):
            raise Problem(f'{where}: "{name}" has no message of the assistant that the other has not.')
    return both, count


def conversation_of(record, where):
    if "messages" in record:
        return messages_of(record["messages"], where, "messages")
    if "instruction" in record and "output" in record:
        asked = text_of(record["instruction"], where, "instruction")
        given = text_of(record.get("input") or "", where, "input")
        return [("user", asked + ("\n\n" + given if given else "")),
                ("assistant", text_of(record["output"], where, "output"))]
    if "prompt" in record and "completion" in record:
        return (turns_of(record["prompt"], where, "prompt", "user") +
                turns_of(record["completion"], where, "completion", "assistant"))
    raise Problem(f"{where}: is no conversation; it has {', '.join(sorted(record)) or 'nothing'}. These are known: "
                  '"messages"; "instruction", "input", "output"; "prompt", "completion"; "prompt", "chosen", "rejected".')


def entries_of(path):
    """Of each line: conversations, one or two, and with how many messages that are not learned they begin."""
    if ending_of(path) not in LINES_ENDINGS:
        raise Problem(f"{path}: conversations are read from {' and '.join(LINES_ENDINGS)} files, a line each.")
    with reading(path):
        for where, record in records_of(path):
            if not isinstance(record, dict):
                raise Problem(f"{where}: is {type(record).__name__}, not an object.")
            if "chosen" in record and "rejected" in record:
                yield where, *preferences_of(record, where)
                continue
            messages = conversation_of(record, where)
            if not any(role == "assistant" for role, _ in messages):
                raise Problem(f"{where}: has no message of the assistant: there is nothing to learn.")
            yield where, [messages], 0


class Encoder:
    def __init__(self, tokenizer, template):
        self.tokenizer = tokenizer
        self.opening, self.turn = TEMPLATES[template]

    def ids(self, text):
        known = self.tokenizer.id_of(text) if isinstance(text, Special) else None
        if known is not None:
            return [known]
        return self.tokenizer.encode([text])[0] if text else []

    def encode(self, messages, given):
        """Ids, and for each whether it is learned: what the assistant says behind the first `given` messages, and that
        it has ended."""
        ids, learned = [], bytearray()

        def add(pieces, is_learned):
            for piece in pieces:
                found = self.ids(piece)
                ids.extend(found)
                learned.extend(bytes([is_learned]) * len(found))

        add(self.opening, False)
        for number, (role, content) in enumerate(messages):
            before, content, end, behind = self.turn(role, content)
            is_learned = role == "assistant" and number >= given
            add(before, False)
            add([content, *end], is_learned)
            add(behind, False)
        return ids, learned
