#include "trainer/checkpoint/checkpoint_index.h"

#include <nlohmann/json.hpp>

#include "core/digest/digest.h"
#include "core/error.h"
#include "fuzz/inputs/target.h"

namespace lockstep {
namespace {
/// An index is refused, or prints to a text that reads as the same index.
void read(const std::string& index) {
  try {
    const auto text = trainer::index_text(trainer::parse_index(index, "index.json"));
    fuzz::require_that("parse(print(index)) == index",
                       [&] { return trainer::index_text(trainer::parse_index(text, "index.json")) == text; });
  } catch (const FileError&) {
  }
}
}  // namespace

/// The input as it is, and as the contents of an index whose digest is right.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(fuzz::text_of(data, size));
  read(text);
  const auto contents = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto printed = contents.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (!contents.is_discarded()) read("{\"contents\":" + printed + ",\"digest\":\"" + digest(printed).text() + "\"}");
  return 0;
}

}  // namespace lockstep
