#include "core/digest/digest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

namespace lockstep {
namespace {

TEST(Digest, KnownAnswers) {  // the first one: xxHash's sanity test; the second one pins checkpoints and recordings
  EXPECT_EQ(digest("").text(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest("lockstep").text(), "b4ead11c934f0a1e75345b2b871d8c38");
}

TEST(Digest, DependsOnOrderAndLength) {
  EXPECT_NE(digest("ab"), digest("ba"));
  EXPECT_NE(digest("a"), digest(std::string_view("a\0", 2)));
}

RC_GTEST_PROP(Digest, DoesNotDependOnHowBytesArrive, (const std::string& bytes)) {
  const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
  Digester digester;
  digester.update(std::string_view(bytes).substr(0, cut));
  digester.update(std::string_view(bytes).substr(cut));
  RC_ASSERT(digester.result() == digest(bytes));
}

RC_GTEST_PROP(Digest, ChangesWithAnyByte, (std::string bytes)) {
  RC_PRE(!bytes.empty());
  const auto before = digest(bytes);
  const auto position = *rc::gen::inRange<std::size_t>(0, bytes.size());
  bytes[position] = static_cast<char>(bytes[position] ^ 1);
  RC_ASSERT(digest(bytes) != before);
}

}  // namespace
}  // namespace lockstep
