#pragma once
#include <gtest/gtest.h>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"

/// Wrong values that sharded tensors elsewhere gave without an error. Each test is named after the report:
/// PyTorch163193 is github.com/pytorch/pytorch/issues/163193.
namespace lockstep::testing {

/// A mesh whose ranks all live here.
class OnMesh {
 public:
  explicit OnMesh(const std::vector<MeshAxis>& axes)
      : world_(simulated_world(axes)), mesh(world_->mesh(axes)), here_(mesh) {}

  /// What every rank of a Partial holds differs from what the others hold, and from the value.
  at::Tensor put(const at::Tensor& plain, std::string_view layout) const {
    return scatter(plain, Layout::parse(mesh, layout));
  }
  Layout layout(std::string_view text) const { return Layout::parse(mesh, text); }

 private:
  std::unique_ptr<World> world_;

 public:
  const Mesh& mesh;

 private:
  MeshScope here_;
};

inline void expect_same(const at::Tensor& actual, const at::Tensor& expected) {
  const auto whole = gather(actual);
  EXPECT_TRUE(same_bits(whole, expected)) << whole << "\nexpected\n" << expected;
}

}  // namespace lockstep::testing
