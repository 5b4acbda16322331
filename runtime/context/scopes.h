#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/context/run_context.h"

/// What a program says about the ops that it runs. A scope speaks to the RunContext that is current when it opens; when
/// it ends, what was said before holds again.
namespace lockstep {

class World;

/// What part of a step the ops belong to.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase);
  ~PhaseScope() { context_.open_.phase = previous_; }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  RunContext& context_;
  Phase previous_;
};

/// One more step of the module path.
class ModuleScope {
 public:
  /// `name` is one step of the path, or several joined by dots.
  explicit ModuleScope(std::string_view name);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  RunContext& context_;
  size_t previous_length_;
};

/// The first dimension of activations is the batch, and it holds these rows of the global batch: a microbatch draws
/// what the whole batch would draw there, and sums over it are trees over samples (canonical numerics).
class BatchScope {
 public:
  explicit BatchScope(const BatchRows& rows);
  ~BatchScope();
  BatchScope(const BatchScope&) = delete;
  BatchScope& operator=(const BatchScope&) = delete;

 private:
  RunContext& context_;
  RunContext::Said<BatchRows> previous_;
};

/// The seed of random ops (dropout).
class RandomScope {
 public:
  explicit RandomScope(uint64_t seed);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  RunContext& context_;
  RunContext::Said<std::optional<uint64_t>> previous_;
};

/// Draws belong to no step, as before the first one: initial values do not depend on when a module is made.
class InitialValuesScope {
 public:
  InitialValuesScope();
  ~InitialValuesScope() { context_.open_.step = previous_; }
  InitialValuesScope(const InitialValuesScope&) = delete;
  InitialValuesScope& operator=(const InitialValuesScope&) = delete;

 private:
  RunContext& context_;
  int64_t previous_;
};

/// The mesh that factories (torch::empty on the mesh device) make replicated tensors on.
class MeshScope {
 public:
  explicit MeshScope(const Mesh& mesh);
  ~MeshScope() { context_.open_.mesh = previous_; }
  MeshScope(const MeshScope&) = delete;
  MeshScope& operator=(const MeshScope&) = delete;

 private:
  RunContext& context_;
  const Mesh* previous_;
};

/// What communicates from here on is called so: in fault reports, and by id where observers are.
void name_communication(World& world, std::string_view name);

/// The same for the length of a scope: what a program communicates of itself, in the middle of an op perhaps.
class CommunicationScope {
 public:
  CommunicationScope(World& world, std::string_view name);
  ~CommunicationScope();
  CommunicationScope(const CommunicationScope&) = delete;
  CommunicationScope& operator=(const CommunicationScope&) = delete;

 private:
  RunContext& context_;
  OpId last_op_;
  std::string uncounted_;
};

}  // namespace lockstep
