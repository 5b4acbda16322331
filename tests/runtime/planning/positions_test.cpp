// The bits of an element do not depend on where it lies: elements and rows of canonical ops are taken out, repeated and
// put elsewhere, on other numbers of threads, in other instruction sets.
#include "tests/support/positions.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>

#include "core/error.h"
#include "fuzz/trials/canonical_trial.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/mutants.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_name.h"
#include "tests/support/threads.h"

namespace lockstep::testing {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// Any places of `size`, in any order, some more than once; sometimes so many that threads share them.
Tensor draw_places(int64_t size) {
  const auto count = *rc::gen::weightedOneOf<int64_t>(
      {{20, rc::gen::inRange<int64_t>(1, 200)}, {1, rc::gen::inRange<int64_t>(70000, 90000)}});
  return at::arange(count)
      .mul(*rc::gen::inRange<int64_t>(1, 5))
      .add(*rc::gen::inRange<int64_t>(0, size))
      .remainder(size);
}

bool same_values(const Tensor& a, const Tensor& b) {
  const auto one_nan = [](const Tensor& x) { return x.is_floating_point() ? x.masked_fill(at::isnan(x), NAN) : x; };
  return same_bits(one_nan(a), one_nan(b));
}

/// Property: an elementwise op gives an element at any place what it gives it alone.
void elements_have_no_place(const OpCase& op_case, const std::function<void(Tensor&)>& fault = {}) {
  const auto dtype =
      *rc::gen::element(c10::kFloat, c10::kDouble, op_case.is(OpCase::kWide) ? c10::kFloat : c10::kBFloat16);
  Inputs inputs(dtype, false, Reach::kFlat);
  const auto call = make_call(op_case.called, op_case.draw(inputs));
  const OneRank rank;
  const auto places = draw_places(call.tensor(0).size(0));
  Tensors all, some;
  for (size_t i = 0; i < call.slots.size(); ++i) {
    all.push_back(rank.put(call.tensor(i)));
    some.push_back(rank.put_anywhere(call.tensor(i).index_select(0, places)));
  }
  Tensor expected;
  try {
    expected = gather(run(call.op, with_tensors(call, all))[0]);
  } catch (const BadInput&) {
    return;  // ops that canonical numerics refuses
  }
  const Threads threads(*rc::gen::element(1, 2, 4));
  ++compared_cases()[op_case.op];
  auto actual = gather(run(call.op, with_tensors(call, some))[0]);
  if (fault) fault(actual);
  const auto wanted = expected.index_select(0, places);
  if (same_values(actual, wanted)) return;
  const auto first = at::nonzero(at::ne(actual, wanted)).flatten();
  RC_FAIL(c10::str(op_name(call.op), " of ", dtype, ", ", places.numel(), " elements: another value at ",
                   first.numel() > 0 ? first[0].item<int64_t>() : -1));
}

constexpr int kPlaces = 40;  ///< cases of an op

class ElementPositions : public ::testing::TestWithParam<OpCase> {};
TEST_P(ElementPositions, DoNotMatter) {
  const auto failure = failure_of_counted(
      GetParam().op + "/positions", GetParam().op, case_count(kPlaces), [] { elements_have_no_place(GetParam()); },
      refused_by_canonical(GetParam().op));
  if (!failure.empty()) FAIL() << failure;
}
INSTANTIATE_TEST_SUITE_P(Rows, ElementPositions, ::testing::ValuesIn(pointwise_cases()), test_name);

/// An op on rows; operands that belong to all rows come last.
struct RowOp {
  const char* name;
  std::vector<Sizes> rows, shared;  ///< sizes behind the rows', of operands
  Tensor (*op)(const Tensors&);
};

constexpr int64_t kWidth = 70;
const RowOp kRowOps[] = {
    {"softmax", {{kWidth}}, {}, [](const Tensors& x) { return at::_softmax(x[0], 1, false); }},
    {"log-softmax", {{kWidth}}, {}, [](const Tensors& x) { return at::_log_softmax(x[0], 1, false); }},
    {"sum", {{kWidth}}, {}, [](const Tensors& x) { return at::sum(x[0], {1}); }},
    {"mean", {{kWidth}}, {}, [](const Tensors& x) { return at::mean(x[0], {1}); }},
    {"RMSNorm",
     {{kWidth}},
     {{kWidth}},
     [](const Tensors& x) { return std::get<0>(mesh_ops::rms_norm(x[0], x[1], 1e-5)); }},
    {"RMSNorm backward",
     {{3, kWidth}, {3, kWidth}, {3}},
     {{kWidth}},
     [](const Tensors& x) { return mesh_ops::rms_norm_input_gradient(x[0], x[1], x[2], x[3]); }},
    {"RMSNorm's weight",
     {{kWidth, 5}, {kWidth, 5}, {kWidth}},
     {},
     [](const Tensors& x) { return mesh_ops::rms_norm_weight_gradient(x[0], x[1], x[2]); }},
    {"sum of exponentials", {{kWidth}, {}}, {}, [](const Tensors& x) { return mesh_ops::exponential_sum(x[0], x[1]); }},
    {"SwiGLU", {{2, kWidth}}, {}, [](const Tensors& x) { return mesh_ops::swiglu(x[0]); }},
    {"SwiGLU backward",
     {{kWidth}, {2, kWidth}},
     {},
     [](const Tensors& x) { return mesh_ops::swiglu_backward(x[0], x[1]); }},
    {"rotation",
     {{2, 3, 10}},
     {{3, 5}, {3, 5}},
     [](const Tensors& x) { return mesh_ops::rotate_pairs(x[0], x[1], x[2]); }},
    {"product", {{kWidth}}, {{kWidth, 9}}, [](const Tensors& x) { return at::mm(x[0], x[1]); }},
    {"linear", {{3, kWidth}}, {{9, kWidth}, {9}}, [](const Tensors& x) { return at::linear(x[0], x[1], x[2]); }},
    {"batched product", {{4, kWidth}, {kWidth, 3}}, {}, [](const Tensors& x) { return at::bmm(x[0], x[1]); }},
    {"attention",
     {{2, 9, 8}, {1, 9, 8}, {1, 9, 8}},
     {},
     [](const Tensors& x) { return std::get<0>(mesh_ops::attention(x[0], x[1], x[2], true, 0.3)); }},
};

Tensor draw_numbers(Sizes sizes, c10::ScalarType dtype) {
  Inputs inputs(dtype, false, Reach::kLong);
  return inputs.tensor(sizes);
}

/// Property: a row gives the same result among any other rows.
void rows_have_no_place(const RowOp& op) {
  const auto dtype = *rc::gen::element(c10::kFloat, c10::kDouble, c10::kBFloat16);
  const OneRank rank;
  const int64_t count = *rc::gen::inRange<int64_t>(1, 20);
  const auto places = draw_places(count).slice(0, 0, 300);
  Tensors all, some;
  for (auto sizes : op.rows) {
    sizes.insert(sizes.begin(), count);
    const auto x = draw_numbers(sizes, dtype);
    all.push_back(rank.put(x));
    some.push_back(rank.put_anywhere(x.index_select(0, places)));
  }
  for (const auto& sizes : op.shared) {
    const auto x = draw_numbers(sizes, dtype);
    all.push_back(rank.put(x));
    some.push_back(rank.put_anywhere(x));
  }
  const auto expected = gather(op.op(all)).index_select(0, places);
  const Threads threads(*rc::gen::element(1, 2, 4));
  if (!same_values(gather(op.op(some)), expected))
    RC_FAIL(fmt::format("{} of {}: other bits", op.name, c10::toString(dtype)));
}

TEST(RowPositions, DoNotMatter) {
  for (const auto& op : kRowOps) {
    const auto failure = failure_of(op.name, case_count(40), [&] { rows_have_no_place(op); });
    EXPECT_EQ(failure, "") << op.name;
  }
}

/// One bit of the last element.
TEST(RowPositions, AreComparedInAllBits) {
  const auto& exp = *std::find_if(op_cases().begin(), op_cases().end(), [](auto& c) { return c.op == "exp"; });
  expect_noticed("another tail", kPlaces, [&] {
    elements_have_no_place(exp, [](Tensor& x) {
      static_cast<unsigned char*>(x.mutable_data_ptr())[x.nbytes() - static_cast<size_t>(x.element_size())] ^= 1;
    });
  });
}

// Instruction sets: ours and LibTorch's are chosen when a process starts.

constexpr int kDigestsOfAnOp = 12;

/// "exp Float 3: 1f2e..." for every op of the table on some inputs; `computed`: how many of an op's were not refused.
std::string digests_of_ops(std::map<std::string, int>& computed) {
  std::string text;
  for (const auto& op_case : op_cases()) {
    // Their operands are results of LibTorch's own forward.
    const bool native_inputs =
        op_case.op.find("softmax_backward") != std::string::npos || op_case.op.ends_with("attention_backward");
    if (op_case.is(OpCase::kFactory) || op_case.is(OpCase::kNoValues) || native_inputs) continue;
    for (const auto dtype : {c10::kFloat, c10::kDouble, op_case.is(OpCase::kWide) ? c10::kFloat : c10::kBFloat16})
      for (uint64_t seed = 0; seed < kDigestsOfAnOp / 3; ++seed) {
        const auto draw = rc::gen::exec([&] {
          Inputs inputs(dtype, false, seed % 2 == 0 ? Reach::kFlat : Reach::kLong);
          return op_case.draw(inputs);
        });
        CanonicalCase trial{make_call(op_case.called, draw(rc::Random(seed), 80).value())};
        trial.operands.resize(trial.call.slots.size());
        const auto outcome = on_one_rank(trial);
        computed[op_case.op] += outcome.refusal.empty();
        size_t digest = 0;
        for (const auto& tensor : outcome.tensors) {
          const auto x =
              (tensor.is_floating_point() ? tensor.masked_fill(at::isnan(tensor), NAN) : tensor).contiguous();
          const std::string_view bytes(static_cast<const char*>(x.const_data_ptr()), x.nbytes());
          digest = digest * 31 + std::hash<std::string_view>()(bytes);
        }
        text += fmt::format("{} {} {}: {:x} {}\n", op_case.op, c10::toString(dtype), seed, digest, outcome.refusal);
      }
  }
  return text;
}

/// The other half of the next test, in a process of its own.
TEST(PositionsMachine, WritesDigests) {
  const char* path = std::getenv("LOCKSTEP_OP_DIGESTS");
  if (!path) GTEST_SKIP() << "run by PositionsMachine.InstructionSetChangesNoBit";
  std::map<std::string, int> unused;
  std::ofstream(path) << name_of(best_instruction_set()) << "\n" << digests_of_ops(unused);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class PositionsMachine : public OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, PositionsMachine, every_set(), set_name);

/// A process limited to the set, beside this one.
TEST_P(PositionsMachine, InstructionSetChangesNoBit) {
  static std::map<std::string, int> computed;
  static const auto here = digests_of_ops(computed);
  for (const auto& [op, count] : computed)
    EXPECT_TRUE(refused_by_canonical(op) ? count == 0 : 4 * count >= kDigestsOfAnOp)
        << op << ": of " << kDigestsOfAnOp << " calls " << count << " gave something to compare";
  const auto expected = lines_of(fmt::format("{}\n{}", name_of(GetParam()), here));
  const TemporaryFolder folder;
  const auto command = fmt::format(
      "{}LOCKSTEP_OP_DIGESTS={} /proc/{}/exe --gtest_filter=PositionsMachine.WritesDigests > /dev/null 2>&1",
      limited_to(GetParam()), folder.file("digests"), getpid());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto actual = lines_of(file_content(folder.file("digests")));
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_EQ(actual[i], expected[i]);
}

}  // namespace
}  // namespace lockstep::testing
