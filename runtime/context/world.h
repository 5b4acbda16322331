#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/domain.h"
#include "runtime/mesh.h"
#include "runtime/numerics.h"
#include "runtime/traffic.h"

namespace lockstep {

class ExchangesInFlight;
class MoveCounts;
class Observers;
class ParameterNames;
class PlanCache;
class RuleSet;
class Transport;

/// When communication that nobody asked for explicitly is allowed. See docs/communication.md.
struct Policy {
  bool strict = false;  ///< an implicit Shard -> Replicate is an error instead of a counted warning
};

/// The ranks of a run and what they share: which of them live in this process, how bytes move between them, the rules,
/// the plan cache and the observers. One thread uses a World; two Worlds on two threads are independent.
///
/// Everything made in a World (meshes, specs, sharded tensors) must be gone, or never used again, when it ends.
class World {
 public:
  struct Options {
    int rank_count = 1;
    std::vector<int> local_ranks = {};          ///< empty: all ranks live here
    std::shared_ptr<Transport> transport = {};  ///< null: every rank must be local, and bytes move by assignment
    Domain domain = Domain::kNative;
    Numerics numerics = Numerics::kNative;
    /// Of canonical numerics: how many levels below the root of a 16-bit product's tree are rounded to its dtype, on
    /// every mesh, so that unfinished ones travel as wide as that where so many levels cross ranks.
    int64_t wire_levels = 0;
    std::shared_ptr<const RuleSet> rules = {};  ///< null: the built-in rules of the numerics
    Policy policy = {};
    bool meta = false;  ///< shards are meta tensors: shapes and traffic without values
    /// Where shards are: kCPU, or kCUDA after require_gpu() (native numerics; a transport must carry device memory).
    c10::DeviceType device = c10::kCPU;
    /// Collectives exchange what they would over messages also where all ranks live here: then what one rank received
    /// serves it alone. Same bits.
    bool as_messages = false;
    /// Sums of tensors up to this size go over messages in one round: whole tensors to everyone, for less waiting.
    size_t one_round_bytes = size_t{1} << 16;
    bool overlap = true;  ///< overlaps() where it can be
  };

  explicit World(Options options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank_count() const { return options_.rank_count; }
  const std::vector<int>& local_ranks() const { return options_.local_ranks; }

  Domain domain() const { return options_.domain; }
  Numerics numerics() const { return options_.numerics; }
  bool canonical() const { return options_.numerics == Numerics::kCanonical; }
  int64_t wire_levels() const { return options_.wire_levels; }
  const Policy& policy() const { return options_.policy; }
  bool meta() const { return options_.meta; }
  size_t one_round_bytes() const { return options_.one_round_bytes; }
  c10::Device shard_device() const { return options_.meta ? c10::kMeta : options_.device; }
  bool as_messages() const { return options_.transport || options_.meta || options_.as_messages; }
  Transport* transport() const { return options_.transport.get(); }

  /// Whether a collective may be under way while ops run. Not where observers are to see one thing after the other.
  bool overlaps() const;
  /// REQUIRES: transport().
  ExchangesInFlight& in_flight() { return *in_flight_; }
  /// Lets what is under way move; after every op.
  void advance_exchanges() {
    if (in_flight_) advance_in_flight();
  }

  const RuleSet& rules() const { return *options_.rules; }
  /// Replaces the rules and forgets all plans.
  void set_rules(std::shared_ptr<const RuleSet> rules);

  /// The mesh of these axes; the same object for the same axes. The product of the sizes must be rank_count().
  const Mesh& mesh(const std::vector<MeshAxis>& axes);
  /// The mesh of a Mesh::text().
  const Mesh& mesh(std::string_view text);
  /// See Mesh::submesh(); `fixed` as there.
  const Mesh& submesh(const Mesh& whole, const std::vector<int64_t>& fixed);

  PlanCache& plans() { return *plans_; }
  Observers& observers() { return *observers_; }
  ParameterNames& parameter_names() { return *parameter_names_; }
  Traffic& traffic() { return traffic_; }
  /// In a run without values: the moves that were made over the wire.
  MoveCounts& moves() { return *moves_; }

 private:
  void advance_in_flight();

  Options options_;
  std::vector<std::unique_ptr<Mesh>> meshes_;
  std::unique_ptr<PlanCache> plans_;
  std::unique_ptr<Observers> observers_;
  std::unique_ptr<ParameterNames> parameter_names_;
  Traffic traffic_;
  std::unique_ptr<MoveCounts> moves_;
  std::unique_ptr<ExchangesInFlight> in_flight_;
};

/// The mesh that factories (torch::empty on the mesh device) make replicated tensors on, for the current thread.
class MeshScope {
 public:
  explicit MeshScope(const Mesh& mesh);
  ~MeshScope();
  MeshScope(const MeshScope&) = delete;
  MeshScope& operator=(const MeshScope&) = delete;

  /// The innermost scope's mesh. Throws BadInput if there is none.
  static const Mesh& current();

 private:
  const Mesh* previous_;
};

}  // namespace lockstep
