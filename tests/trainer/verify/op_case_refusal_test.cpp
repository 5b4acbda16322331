// Cases that ask for something else than one op of the table on operands that are there: each is refused by name, and
// nothing that a case can ask for reaches a file or a socket.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "replay/capture/recorded_tensor.h"
#include "replay/op_case/case_run.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/sum_case.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::case_of;
using lockstep::testing::message_of;
using lockstep::testing::sum_case;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

std::string refusal_of(const OpCase& one) {
  return message_of<BadInput>([&] { run_case(one); });
}

OpCase with_argument(OpCase one, size_t index, const Json& value) {
  auto arguments = Json::parse(one.arguments);
  arguments[index] = value;
  one.arguments = arguments.dump();
  return one;
}

TEST(OpCaseRefusals, OpsWithoutARule) {
  const TemporaryFolder folder;
  auto one = sum_case();
  one.op = "aten::from_file", one.overload = "";
  one.arguments = Json::array({{{"string", folder.file("made")}}, true, 100, 6, 0, nullptr, nullptr}).dump();
  EXPECT_EQ(refusal_of(one),
            "aten::from_file has no rule, and only ops that have one are run (lockstep rules lists them)");
  EXPECT_FALSE(std::filesystem::exists(folder.file("made")));
  one.op = "aten::_sparse_coo_tensor_unsafe";
  EXPECT_THAT(refusal_of(one), StartsWith("aten::_sparse_coo_tensor_unsafe has no rule"));
  one.op = "quantized::add";
  EXPECT_THAT(refusal_of(one), StartsWith("quantized::add has no rule"));
  one.op = "sum", one.overload = "dim_IntList";
  EXPECT_EQ(refusal_of(one), "there is no op sum.dim_IntList here");
}

TEST(OpCaseRefusals, NumbersThatStandForNothing) {
  const auto plain = at::arange(35, at::kFloat).view({7, 5});
  const auto copied =
      case_of("_to_copy", plain.to(at::kDouble), [](const at::Tensor& x) { static_cast<void>(x.to(at::kDouble)); });
  EXPECT_FALSE(run_case(copied));
  const auto refusal_with = [&](size_t index, int64_t number) {
    return refusal_of(with_argument(copied, index, number));
  };
  EXPECT_EQ(refusal_with(1, -1), "dtype of aten::_to_copy of the case has dtype -1, which a case cannot hold");
  EXPECT_EQ(refusal_with(1, 262), "dtype of aten::_to_copy of the case has dtype 262, which a case cannot hold");
  EXPECT_EQ(refusal_with(2, 1), "layout of aten::_to_copy of the case is layout 1; expected 0 to 0");
  EXPECT_THAT(refusal_with(6, 99), StartsWith("memory_format of aten::_to_copy of the case is memory format 99; "));
  EXPECT_EQ(refusal_of(with_argument(copied, 1, 18446744073709551615U)),
            "18446744073709551615 in the case does not fit into 64 bits");
}

TEST(OpCaseRefusals, OperandsThatAreNotThere) {
  const auto sharded = [](const Json& sizes, const Json& dtype) {
    return with_argument(sum_case(), 0, {{"sharded", 0}, {"layout", "[tp=S(0)]"}, {"sizes", sizes}, {"dtype", dtype}});
  };
  EXPECT_EQ(refusal_of(sharded({7, int64_t{1} << 50}, 6)),
            "tensor 0 of the case has sizes [7, 1125899906842624]; expected none below 0 and at most 2^40 elements");
  EXPECT_EQ(refusal_of(sharded({7.5, 5}, 6)), "7.5 in the case is no integer");
  EXPECT_EQ(refusal_of(sharded({7, 5}, 262)), "tensor 0 of the case has dtype 262, which a case cannot hold");
  auto one = sum_case();
  one.tensors.push_back(recorded_tensor("argument.9", at::zeros({1})));
  EXPECT_EQ(refusal_of(one), "no argument of the case takes its tensor argument.9");
  one = sum_case();
  one.mesh = "tp=4096";
  EXPECT_EQ(refusal_of(one),
            "the case is of mesh tp=4096 and holds 4 tensors; expected one at least for each of 4096 ranks");
  one = with_argument(sum_case(), 0, {{"plain", "argument.0"}});
  one.tensors = {recorded_tensor("argument.0", at::zeros({7, 5})), one.tensors.back()};
  one.mesh = "tp=1";
  EXPECT_EQ(refusal_of(one), "none of the operands of aten::sum in the case is sharded");
}

TEST(OpCaseRefusals, NothingToCompareWithIsNoAgreement) {
  const auto with_expected = [](const std::vector<at::Tensor>& expected) {
    auto one = sum_case();
    one.tensors.pop_back();
    for (size_t k = 0; k < expected.size(); ++k)
      one.tensors.push_back(recorded_tensor(fmt::format("expected.{}", k), expected[k]));
    return refusal_of(one);
  };
  const auto right = at::arange(35, at::kFloat).view({7, 5}).sum(0);
  EXPECT_EQ(with_expected({right}), "no such error");
  EXPECT_EQ(with_expected({}),
            "the case holds nothing that aten::sum should give (expected.0): there is nothing to compare with");
  EXPECT_EQ(with_expected({right, right}), "aten::sum gives 1 results, the case holds 2 (expected.K)");
  EXPECT_EQ(with_expected({right.slice(0, 0, 4)}), "expected.0 of the case has sizes [4], aten::sum gives [5]");
}

TEST(OpCaseRefusals, WordsThatMeanNothing) {
  auto one = sum_case();
  one.numerics = "exact";
  EXPECT_EQ(refusal_of(one), "numerics of the case is exact; expected canonical or native");
  one = sum_case();
  one.domain = "float32";
  EXPECT_EQ(refusal_of(one), "domain of the case is float32; expected float64 or native");
  one = sum_case();
  one.rounded_levels = 2;
  EXPECT_EQ(refusal_of(one), "rounded_levels of the case is 2, which is of canonical numerics alone");
}

/// The table with another local call for the sum of a case.
std::shared_ptr<const RuleSet> with_sum(LocalFunction local) {
  const auto rules = built_in_rules();
  auto rule = *rules->find("sum.dim_IntList");
  rule.local = local;
  return rules->with(rule);
}

void reach_out(const LocalCall&, torch::jit::Stack&) {
  const int file = ::open("/etc/passwd", O_RDONLY), file_error = errno;
  const int made = ::creat("/tmp/lockstep-must-not-exist", 0666), made_error = errno;
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0), socket_error = errno;
  fail<BadInput>("open {} {}, creat {} {}, socket {} {}", file, file_error, made, made_error, socket, socket_error);
}

void crash(const LocalCall&, torch::jit::Stack&) {
  volatile std::uintptr_t address = 8;
  *reinterpret_cast<volatile int*>(address) = 1;
}

void go_on_forever(const LocalCall&, torch::jit::Stack&) {
  for (volatile bool on = true; on;) continue;
}

TEST(OpCaseProcess, HasNeitherFilesNorSockets) {
  EXPECT_EQ(message_of<BadInput>([] { run_case(sum_case(), with_sum(reach_out)); }),
            fmt::format("open -1 {}, creat -1 {}, socket -1 {}", ENOENT, EPERM, EPERM));
}

TEST(OpCaseProcess, CrashesAndHangsAreErrors) {
  EXPECT_EQ(message_of<FileError>([] { run_case(sum_case(), with_sum(crash)); }),
            "cannot be run: the op crashed (signal 11). It is not what its digest says, or Lockstep did not write it");
  EXPECT_THAT(message_of<FileError>([] { run_case(sum_case(), with_sum(go_on_forever)); }),
              HasSubstr("cannot be run: the op took longer than 2 s of a processor"));
}

}  // namespace
}  // namespace lockstep::replay
