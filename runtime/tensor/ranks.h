#pragma once
#include <c10/core/Device.h>

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/tensor/domain.h"
#include "runtime/tensor/mesh.h"

namespace lockstep {

/// The ranks of a run as tensors need to know them: how many there are, which live in this process, where their shards
/// lie and what those store. Owns the meshes over them. Part of a World.
class Ranks {
 public:
  struct Options {
    int count = 1;
    std::vector<int> local = {};  ///< ascending
    Domain domain = Domain::kDeclared;
    c10::Device device = c10::kCPU;  ///< of the shards
  };
  Ranks(World& world, Options options);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  World& world() const { return *world_; }
  int count() const { return options_.count; }
  const std::vector<int>& local() const { return options_.local; }
  Domain domain() const { return options_.domain; }
  c10::Device device() const { return options_.device; }

  /// The mesh of these axes; the same object for the same axes. The product of the sizes must be count().
  const Mesh& mesh(const std::vector<MeshAxis>& axes);
  /// The mesh of a Mesh::text().
  const Mesh& mesh(std::string_view text);
  /// See Mesh::submesh(); `fixed` as there.
  const Mesh& submesh(const Mesh& whole, const std::vector<int64_t>& fixed);
  /// The same object for the same end of the same whole mesh.
  const Mesh& transfer_end(const Mesh& whole, const TransferEnd& end);

 private:
  World* world_;
  Options options_;
  std::vector<std::unique_ptr<Mesh>> meshes_;
};

}  // namespace lockstep
