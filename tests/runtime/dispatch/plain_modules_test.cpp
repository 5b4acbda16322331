#include "runtime/dispatch/plain_modules.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/observer.h"
#include "runtime/context/parameter_names.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"

namespace lockstep {
namespace {

using testing::same_bits;

/// A parameter as torch::nn::Linear makes it.
at::Tensor constructed(const Mesh& mesh) {
  const MeshConstruction construction(mesh, 5);
  auto parameter = at::empty({6, 4});
  {
    const at::NoGradGuard guard;
    parameter.uniform_(-0.5, 0.5);
  }
  return parameter.set_requires_grad(true);
}

class PlainModules : public ::testing::Test {
 protected:
  std::unique_ptr<World> world_ = testing::simulated_world({{"dp", 2}, {"tp", 2}});
  const Mesh& mesh_ = world_->mesh("dp=2,tp=2");

  void shard(const std::vector<ParameterLayout>& rows, const at::Tensor& parameter) {
    const std::vector<NamedParameter> parameters{{"layers.0.weight", parameter}};
    shard_parameters(std::span(parameters), mesh_, rows);
  }
  std::string refusal(const std::vector<ParameterLayout>& rows, const at::Tensor& parameter) {
    try {
      shard(rows, parameter);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(PlainModules, InitialValuesAreTheSameOnEveryMesh) {
  const auto one = testing::simulated_world({});
  const auto values = gather(constructed(one->mesh("")));
  EXPECT_TRUE(same_bits(gather(constructed(mesh_)), values));
  EXPECT_LT(values.abs().max().item<float>(), 0.5f);
  EXPECT_GT(values.abs().max().item<float>(), 0.3f);
}

TEST_F(PlainModules, InitialValuesAreTheSameAfterAStepAsBefore) {
  const auto before = gather(constructed(mesh_));
  RunContext::current().begin_microbatch(/*step=*/7, /*microbatch=*/0);
  EXPECT_TRUE(same_bits(gather(constructed(mesh_)), before));
  EXPECT_EQ(RunContext::current().step(), 7);
  RunContext::current().begin_microbatch(0, 0);
}

TEST_F(PlainModules, FactoriesFollowTheElementDomain) {
  World::Options options;
  options.domain = Domain::kFloat64;
  const auto world = testing::simulated_world({}, options);
  EXPECT_EQ(constructed(world->mesh("")).scalar_type(), c10::kFloat);
  EXPECT_EQ(gather(constructed(world->mesh("")).detach()).scalar_type(), c10::kDouble);
}

TEST_F(PlainModules, ShardsInPlaceAndPinsTheGradient) {
  const auto parameter = constructed(mesh_);
  const auto values = gather(parameter.detach());
  shard({{"*.weight", "[tp=S(0)]"}}, parameter);
  EXPECT_EQ(layout_of(parameter).text(), "[dp=R, tp=S(0)]");
  EXPECT_TRUE(same_bits(gather(parameter.detach()), values));
  const auto x = distribute(testing::exact_tensor({8, 4}), Layout::parse(mesh_, "[dp=S(0)]"));
  at::linear(x, parameter).sum().backward();
  EXPECT_EQ(layout_of(parameter.grad()).text(), "[dp=R, tp=S(0)]");
}

TEST_F(PlainModules, TheFirstMatchDecides) {
  const auto parameter = constructed(mesh_);
  EXPECT_EQ(refusal({{"layers.*.weight", "[tp=S(1)]"}, {"*", "[tp=S(0)]"}}, parameter),
            "* decides the layout of no parameter");
  shard({{"layers.*.weight", "[tp=S(1)]"}}, parameter);
  EXPECT_EQ(layout_of(parameter).text(), "[dp=R, tp=S(1)]");
}

struct Ids : Observer {
  void after_op(const OpEvent& event, std::span<const c10::IValue>) override { ids.push_back(event.id.text()); }
  std::vector<std::string> ids;
};

/// Two layers without any annotation; the second is used through a view of its weight.
std::vector<std::string> ids_on(const std::vector<MeshAxis>& axes, const char* layout) {
  const auto world = testing::simulated_world(axes);
  const auto& mesh = world->mesh(axes);
  const auto parameter = [&](c10::IntArrayRef sizes) {
    return distribute(testing::exact_tensor(sizes), Layout::replicated(mesh)).requires_grad_();
  };
  const auto first = parameter({6, 4}), bias = parameter({6}), second = parameter({3, 6});
  const std::vector<NamedParameter> parameters{
      {"net.fc1.weight", first}, {"net.fc1.bias", bias}, {"net.fc2.weight", second}};
  const std::vector<ParameterLayout> rows{{"*", layout}};
  shard_parameters(std::span(parameters), mesh, rows);
  Ids ids;
  const ObserverScope scope(world->observers(), ids);
  RunContext::current().begin_microbatch(1, 0);
  const auto x = distribute(testing::exact_tensor({5, 4}), Layout::replicated(mesh));
  const auto hidden = at::tanh(at::linear(x, first, bias));
  {
    const PhaseScope forward(Phase::kForward);
    at::mm(hidden, second.t()).sum().backward();
  }
  return ids.ids;
}

TEST_F(PlainModules, OpsAreNamedByTheParametersTheyRead) {
  const auto ids = ids_on({}, "[]");
  using ::testing::Contains;
  EXPECT_THAT(ids, Contains("step 1, microbatch 0, init, net.fc1, linear #0"));
  EXPECT_THAT(ids, Contains("step 1, microbatch 0, init, tanh #0"));
  EXPECT_THAT(ids, Contains("step 1, microbatch 0, forward, net.fc2, t #0"));
  EXPECT_THAT(ids, Contains("step 1, microbatch 0, forward, net.fc2, mm #0"));
  EXPECT_THAT(ids, Contains("step 1, microbatch 0, forward, sum #0"));
  EXPECT_THAT(ids, Contains("step 1, microbatch 0, backward, tanh_backward #0"));
  // Both products of each layer's backward, one of which reads no parameter.
  EXPECT_THAT(ids, Contains("step 1, microbatch 0, backward, net.fc2, mm #1"));
  EXPECT_THAT(ids, Contains(::testing::HasSubstr("backward, net.fc1, mesh::weight_gradient #0")));
  EXPECT_THAT(ids, ::testing::Each(::testing::Not(::testing::HasSubstr("backward, mm"))));
}

TEST_F(PlainModules, OpIdsDoNotDependOnTheMesh) {
  EXPECT_EQ(ids_on({{"tp", 2}}, "[]"), ids_on({}, "[]"));
  EXPECT_EQ(ids_on({{"dp", 3}, {"tp", 2}}, "[]"), ids_on({}, "[]"));
}

TEST_F(PlainModules, ANameEndsWithItsParameter) {
  const auto world = testing::simulated_world({});
  const auto make = [&] { return distribute(testing::exact_tensor({4}), Layout::replicated(world->mesh(""))); };
  auto tensor = make();
  world->parameter_names().add(tensor, "a.weight");
  const std::vector<c10::IValue> arguments{c10::IValue(2), c10::IValue(tensor)};
  EXPECT_EQ(world->parameter_names().module_of(arguments), "a");
  EXPECT_EQ(world->parameter_names().module_of(std::vector<c10::IValue>{c10::IValue(make())}), "");
}

TEST_F(PlainModules, RefusesWhatCannotBeMeant) {
  const auto parameter = constructed(mesh_);
  EXPECT_EQ(refusal({{"*", "[tp=P(sum)]"}}, parameter), "*: [tp=P(sum)] would make a parameter a Partial");
  EXPECT_EQ(refusal({{"*", "[tp=S(2)]"}}, parameter),
            "*: [tp=S(2)] does not fit parameter layers.0.weight of 2 dimensions");
  EXPECT_EQ(refusal({}, at::ones({2})),
            "parameter layers.0.weight is not on the mesh; construct its module inside a MeshConstruction");
}

}  // namespace
}  // namespace lockstep
