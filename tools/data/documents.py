"""The documents of files and folders, in order: what `lockstep data prepare` reads."""
import contextlib
import gzip
import json
import pathlib
import zlib

from problem import Problem, needs

TEXT_ENDINGS = (".txt", ".md", ".text")
LINES_ENDINGS = (".jsonl", ".ndjson", ".json")
PARQUET_ENDINGS = (".parquet",)
PACKED_ENDING = ".gz"
MAYBE_LINES_ENDING = ".json"
KNOWN_ENDINGS = TEXT_ENDINGS + LINES_ENDINGS + PARQUET_ENDINGS


def ending_of(path):
    """Of what a file is: a packed one of what it was before. Nothing for what is not read when it is packed."""
    if not is_packed(path):
        return path.suffix.lower()
    ending = path.with_suffix("").suffix.lower()
    return ending if ending in TEXT_ENDINGS + LINES_ENDINGS else ""


def is_packed(path):
    return path.suffix.lower() == PACKED_ENDING


def opened(path):
    return gzip.open(path, "rb") if is_packed(path) else open(path, "rb")


@contextlib.contextmanager
def reading(path):
    """What cannot be read, by its name."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Problem(f"{path}: is damaged: {error}.") from error
    except OSError as error:
        raise Problem(f"{path}: cannot be read: {error.strerror or error}.") from error


def as_text(data, where):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(f"{where}: is not UTF-8 at byte {error.start}.") from error


def field_of(record, field, where):
    if not isinstance(record, dict):
        raise Problem(f'{where}: is {type(record).__name__}, not an object with a "{field}".')
    if field not in record:
        names = ", ".join(sorted(record)) or "none"
        raise Problem(f'{where}: has no "{field}" (it has {names}); --field names the one that is text.')
    if not isinstance(record[field], str):
        raise Problem(f'{where}: "{field}" is {type(record[field]).__name__}, not text.')
    return record[field]


def require_whole(text, where):
    """Gives the text; one with half of a surrogate pair has no bytes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Problem(f"{where}: character {error.start} is half of a surrogate pair, no text.") from error
    return text


def records_of(path):
    """What each line is in JSON, and where it stands; empty lines are none."""
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            try:
                yield where, json.loads(as_text(line, where))
            except json.JSONDecodeError as error:
                raise Problem(f"{where}: is not JSON: {error.msg} at character {error.pos}.") from error


def lines_of(path, field):
    """One document a line."""
    for where, record in records_of(path):
        yield require_whole(field_of(record, field, where), where)


def rows_of(path, field):
    """One document a row."""
    parquet = needs("pyarrow.parquet", "pyarrow")
    try:
        file = parquet.ParquetFile(path)
    except Exception as error:
        raise Problem(f"{path}: is not a Parquet file: {error}") from error
    if field not in file.schema_arrow.names:
        names = ", ".join(file.schema_arrow.names)
        raise Problem(f'{path}: has no column "{field}" (it has {names}); --field names the one that is text.')
    row = 0
    try:
        for batch in file.iter_batches(batch_size=256, columns=[field]):
            for value in batch.column(0):
                text = value.as_py()
                if not isinstance(text, str):
                    raise Problem(f'{path}: row {row}: "{field}" is {type(text).__name__}, not text.')
                yield text
                row += 1
    except OSError as error:
        raise Problem(f"{path}: is damaged after row {row}: {error}") from error


def documents_of(path, field):
    ending = ending_of(path)
    if is_packed(path) and not ending:
        raise Problem(f"{path}: of packed files {', '.join(TEXT_ENDINGS + LINES_ENDINGS)} are read; unpack it first.")
    with reading(path):
        if ending in LINES_ENDINGS:
            yield from lines_of(path, field)
        elif ending in PARQUET_ENDINGS:
            yield from rows_of(path, field)
        else:
            with opened(path) as file:
                yield as_text(file.read(), path)


def begins_with_a_record(path):
    with reading(path), opened(path) as file:
        try:
            return isinstance(json.loads(file.readline()), dict)
        except ValueError:
            return False


def is_known(path):
    """A .json may be anything: in a folder it is read if its first line is an object."""
    ending = ending_of(path)
    return ending in KNOWN_ENDINGS and (ending != MAYBE_LINES_ENDING or begins_with_a_record(path))


def in_folder(folder):
    """Files of known endings at any depth, by name; and how many others there are."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    known = [path for path in files if is_known(path)]
    if not known:
        raise Problem(f"{folder}: has no file that ends in {', '.join(KNOWN_ENDINGS)} (or in {PACKED_ENDING} behind one).")
    return known, len(files) - len(known)


def files_of(inputs):
    """What files, folders and globs stand for, in order; and how many files of folders are left out."""
    files, left_out = [], 0
    for text in inputs:
        path = pathlib.Path(text)
        if path.is_dir():
            found, others = in_folder(path)
            left_out += others
        elif path.exists() or not any(mark in text for mark in "*?["):
            found = [path]
        else:
            base = pathlib.Path(path.anchor or ".")
            found = sorted(each for each in base.glob(str(path.relative_to(base))) if each.is_file())
            if not found:
                raise Problem(f"{text}: there is no such file.")
        files += found
    seen = set()
    for path in files:
        if path.resolve() in seen:
            raise Problem(f"{path}: is named twice; its documents would be twice among the tokens.")
        seen.add(path.resolve())
        if not path.exists():
            raise Problem(f"{path}: there is no such file.")
    return files, left_out
