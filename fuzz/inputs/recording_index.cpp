#include "replay/store/recording_index.h"

#include "core/error.h"
#include "fuzz/inputs/target.h"

namespace lockstep {

/// An index's text is read without an exception; a line alone is refused, or is the one that its entry prints. Lines
/// get the check that they lack, or the fuzzer would seldom come behind it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = fuzz::text_of(data, size);
  fuzz::require_that("damage is reported, not thrown", [&] {
    const auto index = replay::parse_index(text, 3, "rank3.index");
    return index.torn <= size;
  });
  const auto line = std::string(text) + " check " + digest(text).text();
  try {
    const auto entry = replay::parse_index_line(line);
    fuzz::require(replay::index_line(entry) == line + "\n", "print(parse(line)) == line");
  } catch (const FileError&) {
  }
  return 0;
}

}  // namespace lockstep
