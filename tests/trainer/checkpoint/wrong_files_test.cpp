// Indexes and chunk files that no Lockstep wrote, with the digest or the sizes that make them look as if one had, so
// that what stands behind those is reached: each is refused by a FileError that names the file, or read. LOCKSTEP_SOAK
// tries 50,000 of each.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/digest/digest.h"
#include "core/error.h"
#include "tests/support/mutations.h"
#include "tests/support/temporary_folder.h"
#include "trainer/checkpoint/checkpoint_index.h"
#include "trainer/checkpoint/safetensors.h"

namespace lockstep::trainer {
namespace {

using nlohmann::json;

int trials() { return std::getenv("LOCKSTEP_SOAK") ? 50'000 : 2'000; }

/// Counts what came of the trials.
struct Verdicts {
  int refused = 0, read = 0;

  template <class Read>
  void add(const std::string& path, const Read& read_file) {
    try {
      read_file();
      ++read;
    } catch (const FileError& error) {
      ++refused;
      EXPECT_TRUE(std::string(error.what()).starts_with(path + ": ")) << error.what();
    }
  }
  void expect_both() const {
    EXPECT_EQ(refused + read, trials());
    EXPECT_GT(refused, trials() / 10);
    EXPECT_GT(read, 0);
  }
};

std::string index_of_three_chunks() {
  const auto chunk = [](int64_t at, int64_t rows) {
    return ChunkRecord{{{at, 0}, {rows, 5}}, "data-0000-00000-0000.safetensors", "w." + std::to_string(at), "0123"};
  };
  CheckpointIndex index{{7, 56, "[training]\n"}, {}};
  index.tensors["w"] = {"F32", {4, 5}, {chunk(0, 2), chunk(2, 1), chunk(3, 1)}};
  index.tensors["scalar"] = {"I64", {}, {{{}, "f.safetensors", "scalar", "4567"}}};
  return index_text(index);
}

/// With the digest of its contents, if it is JSON still.
std::string with_digest(const std::string& text) {
  auto document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("contents")) return text;
  const auto print = [](const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); };
  document["digest"] = digest(print(document["contents"])).text();
  return print(document);
}

TEST(WrongFiles, IndexesAreRefusedOrRead) {
  const auto right = index_of_three_chunks();
  Verdicts verdicts;
  for (int i = 0; i < trials(); ++i) {
    const auto text = with_digest(testing::Mutations(static_cast<uint64_t>(i)).changed(right));
    SCOPED_TRACE("seed " + std::to_string(i));
    verdicts.add("index.json", [&] { index_text(parse_index(text, "index.json")); });
  }
  verdicts.expect_both();
}

TEST(WrongFiles, ChunkFilesAreRefusedOrRead) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"U8","shape":[],"data_offsets":[24,25]}})";
  const TemporaryFolder folder;
  const auto path = folder.file("f");
  Verdicts verdicts;
  for (int i = 0; i < trials(); ++i) {
    const auto changed = testing::Mutations(static_cast<uint64_t>(i)).changed(header);
    const uint64_t length = changed.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    std::ofstream(path, std::ios::binary) << file << changed << std::string(25, 'x');
    SCOPED_TRACE("seed " + std::to_string(i));
    verdicts.add(path, [&] {
      const SafetensorsFile tensors(path);
      for (const auto& [name, entry] : tensors.entries()) {
        std::vector<std::byte> bytes(static_cast<size_t>(entry.size));
        tensors.read(entry, bytes);
      }
    });
  }
  verdicts.expect_both();
}

}  // namespace
}  // namespace lockstep::trainer
