// Cases changed in one place. Whatever is changed, the op's process ends in time with a refusal, a difference or, if
// what was changed is nothing that the op depends on, with agreement. A seed decides; LOCKSTEP_MUTATION_SEED repeats
// one, LOCKSTEP_SOAK runs 10,000 trials.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "core/sanitized.h"
#include "replay/op_case/case_run.h"
#include "tests/support/sum_case.h"

namespace lockstep::replay {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

/// Every operand and every value of it is in the result.
OpCase negated() {
  const auto plain = at::arange(1, 36, at::kFloat).view({7, 5});
  return lockstep::testing::case_of("neg", plain.neg(), [](const at::Tensor& x) { at::neg(at::add(x, 1)); });
}

/// Draws a change of a case and makes it.
class CaseMutator {
 public:
  CaseMutator(OpCase& one, uint64_t seed) : one_(one), engine_(seed) {}

  /// Says what it did.
  std::string mutate() {
    switch (up_to(3)) {
      case 0:
        return change_tensors();
      case 1:
        return change_text();
      case 2:
        return change_argument();
      default:
        return change_value();
    }
  }

 private:
  size_t up_to(size_t most) { return std::uniform_int_distribution<size_t>(0, most)(engine_); }

  std::string change_tensors() {
    auto& tensors = one_.tensors;
    auto& any = tensors[up_to(tensors.size() - 1)];
    switch (up_to(5)) {
      case 0:
        return tensors.clear(), "no tensors";
      case 1:
        return std::swap(any, tensors.back()), tensors.pop_back(), "a tensor gone";
      case 2:
        return any.sizes.push_back(1), "another size";
      case 3:
        return any.sizes.assign({0}), any.bytes.clear(), "an empty tensor";
      case 4:
        return any.name += "0", "another name";
      default:
        return any.dtype = static_cast<int8_t>(up_to(30)), "another dtype";
    }
  }

  /// One element, by the highest bit of its exponent.
  std::string change_value() {
    auto& bytes = one_.tensors[up_to(one_.tensors.size() - 1)].bytes;
    bytes[4 * up_to(bytes.size() / 4 - 1) + 3] ^= std::byte{0x40};
    return "another value";
  }

  std::string change_text() {
    static constexpr const char* kTexts[] = {"",          "canonical",    "native", "float64",         "tp=1",
                                             "tp=999999", "tp=5",         "out",    "aten::from_file", "aten::zero_",
                                             "aten::exp", "mesh::swiglu", "\xff"};
    std::string OpCase::*const fields[] = {&OpCase::op,       &OpCase::overload, &OpCase::mesh,
                                           &OpCase::numerics, &OpCase::domain,   &OpCase::arguments};
    one_.*fields[up_to(std::size(fields) - 1)] = kTexts[up_to(std::size(kTexts) - 1)];
    return "another text";
  }

  std::string change_argument() {
    const Json values[] = {nullptr,
                           true,
                           -1,
                           int64_t{1} << 62,
                           0.5,
                           "x",
                           Json::array(),
                           Json::object(),
                           {{"undefined", true}},
                           {{"plain", "expected.0"}},
                           {{"list", Json::array({nullptr})}}};
    const auto& value = values[up_to(std::size(values) - 1)];
    auto arguments = Json::parse(one_.arguments);
    auto& first = arguments[0];
    switch (up_to(3)) {
      case 0:
        arguments.push_back(value);
        break;
      case 1:
        first = value;
        break;
      case 2:
        first.begin().value() = value;
        break;
      default:
        std::next(first.begin(), static_cast<std::ptrdiff_t>(up_to(first.size() - 1))).value() = value;
    }
    one_.arguments = arguments.dump();
    return "another argument";
  }

  OpCase& one_;
  std::mt19937_64 engine_;
};

struct Counts {
  int refused = 0, different = 0, same = 0;
};

void count_trial(const OpCase& changed, const OpCase& original, Counts& counts) {
  try {
    const bool agrees = !run_case(changed);
    ++(agrees ? counts.same : counts.different);
    if (!agrees) return;
    EXPECT_EQ(changed.op, original.op);
    EXPECT_TRUE(changed.tensors == original.tensors);
  } catch (const BadInput&) {
    ++counts.refused;
  } catch (const FileError&) {
    ++counts.refused;
  }
}

TEST(MutatedCase, IsRefusedOrDiffersUnlessItCannotMatter) {
  const char* const asked = std::getenv("LOCKSTEP_MUTATION_SEED");
  const bool soaks = std::getenv("LOCKSTEP_SOAK") != nullptr;
  const uint64_t first = asked ? std::strtoull(asked, nullptr, 10) : 1, trials = asked ? 1 : soaks ? 10'000 : 200;
  const auto original = negated();
  ASSERT_FALSE(run_case(original));
  Counts counts;
  for (uint64_t seed = first; seed < first + trials; ++seed) {
    auto changed = original;
    const auto what = CaseMutator(changed, seed).mutate();
    SCOPED_TRACE(fmt::format("LOCKSTEP_MUTATION_SEED={}: {}", seed, what));
    const auto begin = Clock::now();
    count_trial(changed, original, counts);
    ASSERT_LT(Clock::now() - begin, std::chrono::seconds(lockstep::kSanitized ? 40 : 3));
    if (::testing::Test::HasFailure()) return;
  }
  if (!asked) {
    EXPECT_GT(std::min(counts.refused, counts.different), 0);
  }
  std::printf("%lu changed cases: %d refused, %d differ, %d agree\n", trials, counts.refused, counts.different,
              counts.same);
}

}  // namespace
}  // namespace lockstep::replay
