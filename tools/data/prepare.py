#!/usr/bin/env python3
"""Makes a file of token ids of documents, for `lockstep data prepare`, which checks, digests and names what this writes.

Python because the tokenizers' own libraries are; for bytes the standard library does. Exit code 2 and one line for
input that cannot be used.
"""
import argparse
import array
import itertools
import json
import sys

sys.dont_write_bytecode = True

from conversations import TEMPLATES, Encoder, entries_of  # noqa: E402
from documents import documents_of, files_of  # noqa: E402
from problem import Problem  # noqa: E402
from vocabularies import tokenizer_of  # noqa: E402

TOGETHER = 64  # documents that are made tokens at once


def batches(documents):
    while batch := list(itertools.islice(documents, TOGETHER)):
        yield batch


def border_of(tokenizer, option, text):
    """The id that --begin-of-document or --end-of-document means: a token's, or a number."""
    if text is None:
        return None
    found = tokenizer.id_of(text)
    if found is None and text.isdecimal():
        found = int(text)
    if found is None or found >= 2**32:
        raise Problem(f"{option} {text} is neither a token of the tokenizer nor an id.")
    return found


def write(options, out, borders):
    """Gives what the sidecar tells of the text."""
    tokenizer = tokenizer_of(options.tokenizer, options.pattern)
    begin = border_of(tokenizer, "--begin-of-document", options.begin_of_document)
    end = border_of(tokenizer, "--end-of-document", options.end_of_document)
    before, behind = ([] if each is None else [each] for each in (begin, end))
    vocabulary = max([tokenizer.vocabulary, *(each + 1 for each in before + behind)])
    files, left_out = files_of(options.inputs)
    kind = "H" if vocabulary <= 1 << 16 else "I"
    tokens = text_bytes = documents = empty = 0
    texts = itertools.chain.from_iterable(documents_of(path, options.field) for path in files)
    for batch in batches(texts):
        for text, ids in zip(batch, tokenizer.encode(batch)):
            if not ids:
                empty += 1
                continue
            ids = [*before, *ids, *behind]
            array.array("Q", [tokens]).tofile(borders)
            array.array(kind, ids).tofile(out)
            tokens, documents, text_bytes = tokens + len(ids), documents + 1, text_bytes + len(text.encode("utf-8"))
    if tokens == 0:
        raise Problem(f"{', '.join(options.inputs)}: there is no text in it.")
    return {
        "dtype": "uint16" if kind == "H" else "uint32",
        "tokens": tokens,
        "vocabulary": vocabulary,
        "text_bytes": text_bytes,
        "documents": documents,
        "empty": empty,
        "files": len(files),
        "left_out": left_out,
    }


def write_conversations(options, out, borders, mask):
    """The same of conversations; of preferences the chosen one, then the rejected one."""
    tokenizer = tokenizer_of(options.tokenizer, options.pattern)
    encoder = Encoder(tokenizer, options.chat)
    files, left_out = files_of(options.inputs)
    kind = "H" if tokenizer.vocabulary <= 1 << 16 else "I"
    tokens = text_bytes = documents = too_long = together = 0
    for where, conversations, given in itertools.chain.from_iterable(entries_of(path) for path in files):
        if together not in (0, len(conversations)):
            raise Problem(f"{where}: conversations and preferences go into files of their own; this is one of the other kind.")
        together = len(conversations)
        encoded = [encoder.encode(messages, given) for messages in conversations]
        for _, learned in encoded:
            if not any(learned[1:]):
                raise Problem(f"{where}: has no token to learn behind the first.")
        if options.longest and max(len(ids) for ids, _ in encoded) > options.longest:
            too_long += 1
            continue
        for (ids, learned), messages in zip(encoded, conversations):
            array.array("Q", [tokens]).tofile(borders)
            array.array(kind, ids).tofile(out)
            mask.write(learned)
            tokens, documents = tokens + len(ids), documents + 1
            text_bytes += sum(len(content.encode("utf-8")) for _, content in messages)
    if tokens == 0:
        raise Problem(f"{', '.join(options.inputs)}: there is no conversation in it"
                      + (f" of at most {options.longest} tokens." if too_long else "."))
    return {
        "dtype": "uint16" if kind == "H" else "uint32",
        "tokens": tokens,
        "vocabulary": tokenizer.vocabulary,
        "text_bytes": text_bytes,
        "documents": documents,
        "empty": 0,
        "too_long": too_long,
        "kind": "preferences" if together == 2 else "conversations",
        "files": len(files),
        "left_out": left_out,
    }


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--pattern")
    parser.add_argument("--field", default="text")
    parser.add_argument("--begin-of-document")
    parser.add_argument("--end-of-document")
    parser.add_argument("--chat", choices=TEMPLATES)
    parser.add_argument("--longest", type=int, default=0)
    for name in ("--tokens", "--borders", "--mask", "--result"):
        parser.add_argument(name, required=True, help="file to write")
    return parser.parse_args()


def main():
    options = arguments()
    try:
        with open(options.tokens, "wb") as out, open(options.borders, "wb") as borders:
            if options.chat:
                with open(options.mask, "wb") as mask:
                    result = write_conversations(options, out, borders, mask)
            else:
                result = write(options, out, borders)
        with open(options.result, "w", encoding="utf-8") as file:
            json.dump(result, file)
    except Problem as error:
        print(f"lockstep: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"lockstep: {error.filename}: cannot be written: {error.strerror}.", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
