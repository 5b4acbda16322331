"""Tokenizers, each with its own library: Hugging Face's tokenizer.json, tiktoken's ranks, SentencePiece's models."""
import base64
import binascii
import pathlib

from problem import Problem, needs

# How tiktoken cuts text before it merges: its file of ranks does not say.
PATTERNS = {
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
    "cl100k": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
    "llama3": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
}


class Bytes:
    """One token a byte."""

    vocabulary = 256

    def encode(self, texts):
        return [list(text.encode("utf-8")) for text in texts]

    def id_of(self, token):
        return None


class HuggingFace:
    def __init__(self, path):
        library = needs("tokenizers", "tokenizers")
        try:
            self.tokenizer = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise Problem(f"{path}: is no tokenizer.json: {error}") from error
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = True  # special tokens inside a text are text
        ids = self.tokenizer.get_vocab(with_added_tokens=True).values()
        self.vocabulary = max(ids, default=-1) + 1

    def encode(self, texts):
        return [each.ids for each in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def id_of(self, token):
        return self.tokenizer.token_to_id(token)


class Tiktoken:
    def __init__(self, path, ranks, pattern):
        library = needs("tiktoken", "tiktoken")
        if pattern is None:
            raise Problem(f"{path}: is a file of tiktoken's ranks; --pattern says how it cuts text: {', '.join(PATTERNS)}.")
        self.encoding = library.Encoding(path.stem, pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={})
        self.vocabulary = max(ranks.values()) + 1

    def encode(self, texts):
        return self.encoding.encode_ordinary_batch(texts)

    def id_of(self, token):
        return None


class SentencePiece:
    def __init__(self, path):
        library = needs("sentencepiece", "sentencepiece")
        try:
            self.processor = library.SentencePieceProcessor(model_file=str(path))
        except Exception as error:  # the library raises nothing narrower
            raise Problem(f"{path}: is no tokenizer.json, no tiktoken ranks and no SentencePiece model: {error}") from error
        self.vocabulary = self.processor.vocab_size()

    def encode(self, texts):
        return self.processor.encode(texts, out_type=int)

    def id_of(self, token):
        found = self.processor.piece_to_id(token)
        return found if self.processor.id_to_piece(found) == token else None


def ranks_of(data):
    """Of a file whose lines are a token in base64 and its rank; none for any other."""
    ranks = {}
    for line in data.splitlines():
        parts = line.split()
        if not parts:
            continue
        try:
            ranks[base64.b64decode(parts[0], validate=True)] = int(parts[1])
        except (IndexError, ValueError, binascii.Error):
            return None
    return ranks or None


def tokenizer_of(name, pattern):
    """Which of them a file is, its content says."""
    if pattern is not None and pattern not in PATTERNS:
        raise Problem(f"--pattern {pattern} is not known: {', '.join(PATTERNS)}.")
    path = pathlib.Path(name)
    if name == "bytes":
        found = Bytes()
    else:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise Problem(f"{path}: cannot be read: {error.strerror}; --tokenizer is \"bytes\" or a file.") from error
        if data.lstrip()[:1] == b"{":
            found = HuggingFace(path)
        elif (ranks := ranks_of(data)) is not None:
            return Tiktoken(path, ranks, pattern)
        else:
            found = SentencePiece(path)
    if pattern is not None:
        raise Problem(f"--pattern is of tiktoken's ranks; {name} is not one of these.")
    return found
