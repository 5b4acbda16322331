#include "rng/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>

#include "core/error.h"

namespace lockstep::rng {
namespace {

TEST(Stream, IsPinned) {  // changing it would change every run
  EXPECT_EQ(stream_of({.step = 3, .module_path = "layers.0.attention", .occurrence = 1}), 7013783957048033803u);
}

TEST(Stream, EveryPartOfTheNameCounts) {
  const std::set<uint64_t> streams = {stream_of({}),
                                      stream_of({.step = 1}),
                                      stream_of({.occurrence = 1}),
                                      stream_of({.module_path = "a"}),
                                      stream_of({.step = 256}),
                                      stream_of({.module_path = std::string_view("\0", 1)})};
  EXPECT_EQ(streams.size(), 6u);
}

TEST(StreamRegistry, TheSameNameMayBeOpenedAgain) {
  StreamRegistry registry;
  const StreamName name{.step = 2, .module_path = "ffn", .occurrence = 0};
  EXPECT_EQ(registry.open(name), stream_of(name));
  EXPECT_EQ(registry.open(name), stream_of(name));
  EXPECT_EQ(registry.size(), 1u);
}

TEST(StreamRegistry, TwoNamesWithOneHashAreReported) {
  StreamRegistry registry([](const StreamName& name) { return name.step % 2; });
  registry.open({.step = 1, .module_path = "layers.0.dropout", .occurrence = 4});
  try {
    registry.open({.step = 3, .module_path = "layers.1.dropout"});
    FAIL() << "no error";
  } catch (const BadInput& error) {
    EXPECT_STREQ(
        error.what(),
        "random streams collide: step 1 'layers.0.dropout' draw 4 and step 3 'layers.1.dropout' draw 0 have the "
        "same hash 0000000000000001; rename one of the modules");
  }
}

TEST(StreamRegistry, ForgetsTheOldestBeyondItsCapacity) {
  StreamRegistry registry([](const StreamName& name) { return name.step % 5; }, /*capacity=*/3);
  for (uint64_t step = 0; step < 4; ++step) registry.open({.step = step});
  EXPECT_EQ(registry.size(), 3u);
  EXPECT_NO_THROW(registry.open({.step = 5}));         // step 0 is forgotten
  EXPECT_THROW(registry.open({.step = 7}), BadInput);  // step 2 is not
}

RC_GTEST_PROP(StreamRegistry, FindsNoCollisionAmongRealNames, ()) {
  StreamRegistry registry;
  for (uint64_t step = 0; step < 20; ++step) {
    for (int layer = 0; layer < 20; ++layer) {
      const auto path = "layers." + std::to_string(layer) + *rc::gen::element<std::string>(".ffn", ".attention");
      for (uint64_t occurrence = 0; occurrence < 3; ++occurrence) registry.open({step, path, occurrence});
    }
  }
}

}  // namespace
}  // namespace lockstep::rng
