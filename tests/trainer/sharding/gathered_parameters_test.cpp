// The parameters of a block, gathered: what each of them is to the block.
#include "trainer/sharding/gathered_parameters.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/message_of.h"

namespace lockstep::trainer {
namespace {

using lockstep::testing::exact_tensor;
using lockstep::testing::message_of;
using ::testing::HasSubstr;

/// Two that train and one that does not, of a block on dp_shard=2.
class Gathered : public ::testing::Test {
 protected:
  Gathered() {
    for (const auto& plain : plain_)
      parameters_.push_back(distribute(plain, Layout::parse(mesh_, "[dp_shard=S(0)]")).requires_grad_());
    parameters_[2].requires_grad_(false);
  }

  World world_{{.rank_count = 2}};
  const Mesh& mesh_ = world_.mesh("dp_shard=2");
  const std::vector<at::Tensor> plain_{exact_tensor({4, 3}), exact_tensor({5}), exact_tensor({3, 2})};
  std::vector<at::Tensor> parameters_;
  const GatherRecipe recipe_{std::vector<Layout>(3, Layout::replicated(mesh_)),
                             std::vector<c10::ScalarType>(3, c10::kFloat)};
};

TEST_F(Gathered, AreWholeAndReadOnly) {
  const GatheredParameters gathered(parameters_, recipe_, std::make_shared<GatherOrder>());
  ASSERT_EQ(gathered.tensors().size(), 3u);
  const at::NoGradGuard no_grad;
  for (size_t p = 0; p < 3; ++p) {
    const auto& tensor = gathered.tensors()[p];
    EXPECT_TRUE(at::equal(gather(tensor), plain_[p])) << p;
    EXPECT_THAT(message_of<BadInput>([&] { at::Tensor(tensor).add_(1); }),
                HasSubstr("is a gathered parameter, shared and read-only; write to the parameter itself"))
        << p;
  }
}

TEST_F(Gathered, GiveGradientsToThoseThatTrain) {
  const GatheredParameters gathered(parameters_, recipe_, std::make_shared<GatherOrder>());
  for (size_t p = 0; p < 3; ++p) EXPECT_EQ(gathered.tensors()[p].requires_grad(), p < 2) << p;
  (gathered.tensors()[0].sum() * 2 + gathered.tensors()[1].sum() * 3).backward();
  EXPECT_TRUE(at::equal(gather(parameters_[0].grad()), at::full({4, 3}, 2.0F)));
  EXPECT_TRUE(at::equal(gather(parameters_[1].grad()), at::full({5}, 3.0F)));
}

}  // namespace
}  // namespace lockstep::trainer
