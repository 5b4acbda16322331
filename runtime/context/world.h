#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/context/numerics.h"
#include "runtime/context/traffic.h"
#include "runtime/tensor/ranks.h"

namespace lockstep {

class Observers;
class ParameterNames;
class RuleSet;
class Transport;

/// When communication that nobody asked for explicitly is allowed. See docs/communication.md.
struct Policy {
  bool strict = false;  ///< an implicit Shard -> Replicate is an error instead of a counted warning
};

/// The ranks of a run and what they share: which of them live in this process, how bytes move between them, the rules
/// and the observers, and whatever folders above keep for them (part()). One thread uses a World; two Worlds on two
/// threads are independent.
///
/// Everything made in a World (meshes, specs, sharded tensors) must be gone, or never used again, when it ends.
class World {
 public:
  struct Options {
    int rank_count = 1;
    std::vector<int> local_ranks = {};          ///< empty: all ranks live here
    std::shared_ptr<Transport> transport = {};  ///< null: every rank must be local, and bytes move by assignment
    Domain domain = Domain::kDeclared;
    Numerics numerics = Numerics::kNative;
    /// Of canonical numerics: how many levels below the root of a 16-bit product's tree are rounded to its dtype, on
    /// every mesh, so that unfinished ones travel as wide as that where so many levels cross ranks.
    int64_t rounded_levels = 0;
    std::shared_ptr<const RuleSet> rules = {};  ///< null: the built-in rules of the numerics
    Policy policy = {};
    bool meta = false;  ///< shards are meta tensors: shapes and traffic without values
    /// Where shards are: kCPU, or kCUDA after require_gpu() (a transport must carry device memory).
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

  int rank_count() const { return ranks_.count(); }
  const std::vector<int>& local_ranks() const { return ranks_.local(); }

  Domain domain() const { return options_.domain; }
  Numerics numerics() const { return options_.numerics; }
  bool canonical() const { return options_.numerics == Numerics::kCanonical; }
  int64_t rounded_levels() const { return options_.rounded_levels; }
  const Policy& policy() const { return options_.policy; }
  bool meta() const { return options_.meta; }
  size_t one_round_bytes() const { return options_.one_round_bytes; }
  c10::Device shard_device() const { return ranks_.device(); }
  bool as_messages() const { return options_.transport || options_.meta || options_.as_messages; }
  Transport* transport() const { return options_.transport.get(); }

  /// Whether a collective may be under way while ops run. Not where observers are to see one thing after the other.
  bool overlaps() const;

  /// Null: the built-in ones; see RulesInUse.
  const std::shared_ptr<const RuleSet>& rules_asked_for() const { return options_.rules; }

  /// See Ranks.
  const Mesh& mesh(const std::vector<MeshAxis>& axes) { return ranks_.mesh(axes); }
  const Mesh& mesh(std::string_view text) { return ranks_.mesh(text); }

  /// What a folder above keeps in this World: made by Part(World&) on first use, gone with the World, one of each type.
  template <class Part>
  Part& part() {
    static const size_t number = next_part_number();
    if (number < parts_.size() && parts_[number]) [[likely]]
      return *static_cast<Part*>(parts_[number].get());
    return *static_cast<Part*>(keep(number, std::make_shared<Part>(*this)));
  }

  Observers& observers() { return *observers_; }
  ParameterNames& parameter_names() { return *parameter_names_; }
  Traffic& traffic() { return traffic_; }

  /// Called by every World as it is made, on its thread: LibTorch gets to know the mesh device by it
  /// (dispatch/backend.h).
  static void on_construction(void (*register_backend)());

 private:
  static size_t next_part_number();
  void* keep(size_t number, std::shared_ptr<void> part);

  Options options_;
  Ranks ranks_;
  std::unique_ptr<Observers> observers_;
  std::unique_ptr<ParameterNames> parameter_names_;
  Traffic traffic_;
  std::vector<std::shared_ptr<void>> parts_;
};

}  // namespace lockstep
