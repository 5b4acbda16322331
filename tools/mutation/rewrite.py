"""Writes a file's variants into its text, so that one build carries them all and a number chooses one at run time."""
import collections
import dataclasses
import hashlib

from mutation.kinds import KINDS
from mutation.regions import rewritable
from mutation.tokens import Source

HEADER_NAME = "lockstep_mutant.h"
# The trace is memory that all processes share: no system call that a sandbox could refuse, nothing lost when one dies.
HEADER = """#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

/// Which variant of the code runs: that of the number LOCKSTEP_MUTANT, or none. LOCKSTEP_MUTANT_TRACE names a file of a
/// byte for each number, where the numbers that a run comes to leave a 1.
namespace lockstep_mutant {

inline constexpr int kNumbers = @NUMBERS@;

inline int read_chosen() {
  const char* text = std::getenv("LOCKSTEP_MUTANT");
  return text ? std::atoi(text) : -1;
}

inline char* open_trace() {
  const char* path = std::getenv("LOCKSTEP_MUTANT_TRACE");
  const int file = path ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return nullptr;
  void* bytes = ::mmap(nullptr, kNumbers, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return bytes == MAP_FAILED ? nullptr : static_cast<char*>(bytes);
}

inline const int chosen = read_chosen();
inline char* const trace = open_trace();

inline bool is(int number) {
  if (trace) [[unlikely]] trace[number] = 1;
  return number == chosen;
}

}  // namespace lockstep_mutant
"""


@dataclasses.dataclass
class Variant:
    file: str
    line: int
    last_line: int
    kind: str
    start: int  # characters of the file's text
    end: int
    before: str
    after: str
    form: str
    text: str  # of the line
    key: str = ""  # the same in every tree that has this line
    number: int = -1  # in this tree


def find_variants(file, text, kinds=tuple(KINDS)):
    """All of one file, in the order of the text, without numbers."""
    source = Source(text)
    flags = rewritable(source)
    found = []
    for kind in kinds:
        for change in KINDS[kind](source):
            if any(flags[change.first:change.last + 1]) and is_plain(source, change):
                found.append(variant_of(file, source, kind, change))
    found.sort(key=lambda variant: (variant.start, -variant.end, variant.kind, variant.after))
    found = without_crossings(found)
    name(found)
    return found


def is_plain(source, change):
    """What is copied into one line may not hold a preprocessor line, nor a text of several lines."""
    span = source.tokens[change.first:change.last + 1]
    return not source.holds_directive(change.first, change.last) and not any(
        token.kind == "raw" and "\n" in token.text for token in span)


def variant_of(file, source, kind, change):
    start, end = source.tokens[change.first].start, source.tokens[change.last].end
    line = source.line(change.first)
    return Variant(file, line, source.line(change.last), kind, start, end, source.flat(change.first, change.last),
                   change.after, change.form, source.lines[line - 1].strip())


def without_crossings(variants):
    """Without those that begin inside another one and end after it: a text cannot hold both."""
    kept, open_ends = [], []
    for variant in variants:
        while open_ends and open_ends[-1] <= variant.start:
            open_ends.pop()
        if not open_ends or variant.end <= open_ends[-1]:
            kept.append(variant)
            open_ends.append(variant.end)
    return kept


def name(variants):
    """Keys that outlive changes elsewhere in the file."""
    seen = collections.Counter()
    for variant in variants:
        what = (variant.file, variant.text, variant.kind, variant.before, variant.after)
        seen[what] += 1
        variant.key = hashlib.sha256(repr((what, seen[what])).encode()).hexdigest()[:16]


def rewrite(text, variants):
    """The text with these variants (in order, none crossing another), and where each begins and ends in it.

    The lines are those of the original."""
    writer = Writer(text, variants)
    writer.write(0, len(text))
    return "".join(writer.parts), writer.places


class Writer:
    def __init__(self, text, variants):
        self.text, self.variants = text, variants
        self.parts, self.length, self.next, self.places = [], 0, 0, {}

    def put(self, part):
        self.parts.append(part)
        self.length += len(part)

    def write(self, start, end):
        """Text start..end and the variants in it; each stands around those that it holds."""
        place = start
        while self.next < len(self.variants) and self.variants[self.next].end <= end:
            variant = self.variants[self.next]
            self.next += 1
            self.put(self.text[place:variant.start])
            self.write_variant(variant)
            place = variant.end
        self.put(self.text[place:end])

    def write_variant(self, variant):
        begin = self.length
        opening, closing = variant.form.split("{}")
        self.put(f"(lockstep_mutant::is({variant.number}) ? ({variant.after}) : {opening}(")
        self.write(variant.start, variant.end)
        self.put(f"){closing})")
        self.places[variant.key] = (begin, self.length)


def with_header(text, file):
    """The header lies in the tree's root, which need not be among the folders that are searched."""
    return f'#include "{"../" * file.count("/")}{HEADER_NAME}"\n#line 1\n{text}'
