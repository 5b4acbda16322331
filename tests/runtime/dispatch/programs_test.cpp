// Random programs give one device's values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fuzz/trials/random_program.h"
#include "fuzz/trials/rule_properties.h"

namespace lockstep::testing {
namespace {

int program_count() {
  const char* soak = std::getenv("LOCKSTEP_SOAK_PROGRAMS");
  return soak ? std::atoi(soak) : 8000;
}

void expect_one_devices_values(lockstep::Numerics numerics) {
  auto& counts = program_counts() = {};
  const auto failure = failure_of(fmt::format("{} programs", to_text(numerics)), program_count(),
                                  [=] { a_program_gives_one_devices_values(numerics); });
  if (!failure.empty()) FAIL() << failure;
  EXPECT_GE(counts.programs, program_count());
  EXPECT_LT(counts.refusals, counts.steps / 4) << "most of what is drawn should run";
  ::testing::Test::RecordProperty("programs", std::to_string(counts.programs));
}

TEST(Programs, GiveOneDevicesValues) { expect_one_devices_values(lockstep::Numerics::kNative); }
TEST(Programs, GiveOneDevicesValuesUnderCanonicalNumerics) {
  expect_one_devices_values(lockstep::Numerics::kCanonical);
}

}  // namespace
}  // namespace lockstep::testing
