#pragma once
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tensor/mesh.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/optim/parameter_state.h"
#include "trainer/state/held_shards.h"

namespace lockstep::trainer {

/// save_state() that goes on beside the steps: what it writes has the same bits.
///
/// A save has two halves, each in a thread of its process: all write their chunks; when all have, rank 0's makes them a
/// checkpoint. Between them the processes meet, at a moment that all agree on: where every one of them has_news(), as
/// who asks finds out by a collective of their own. One process needs no meeting. So no step waits for a disk, and
/// nothing that only one rank knows leads to communication. What one process cannot do is thrown on all, at the next
/// meeting.
class BackgroundSave {
 public:
  /// Work on files of the process of rank 0, in its threads.
  struct Chores {
    std::function<void()> before = [] {};  ///< a save writes anything
    std::function<void()> after = [] {};   ///< the folder is a checkpoint
  };

  /// The mesh of the state, borrowed.
  explicit BackgroundSave(const Mesh& mesh) : mesh_(mesh) {}
  /// Waits for this process's half; what it became is not told.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Waits for the save before (finish()), copies the state into buffers that are kept from save to save, and returns.
  /// Nothing of `state` is read after that but its divisions, which have to stay. A collective.
  void begin(const std::string& folder, CheckpointMetadata metadata, const TrainingState& state, Chores chores);

  /// The same on every rank.
  bool is_under_way() const { return half_ != Half::kNone; }
  /// Whether this process's part of the half that is under way has ended.
  bool has_news() const;
  /// To be called by all where all have news: the next half begins, or the save is over. A collective. Throws on all
  /// ranks what failed on any; the save is over then, too, and the folder no checkpoint.
  void meet();
  /// Waits until nothing is under way. A collective; errors as meet()'s.
  void finish();

 private:
  enum class Half { kNone, kWriting, kCommitting };
  struct Written {
    std::string digest;
    CheckpointIndex index;
  };
  bool is_one_process() const { return static_cast<int>(mesh_.local_count()) == mesh_.rank_count(); }
  bool is_first() const { return mesh_.local_ranks()[0] == 0; }
  void copy(const TrainingState& state);
  Written write(int64_t attempt) const;
  void commit(const std::vector<Written>& parts);
  void end_writing();
  std::vector<Written> parts_of_all() const;

  const Mesh& mesh_;
  std::vector<HeldShard> copies_;  ///< with the buffers, also between saves
  std::string folder_;
  CheckpointMetadata metadata_;
  Chores chores_;
  Half half_ = Half::kNone;
  std::future<Written> writing_;
  std::future<void> committing_;
  Written written_;  ///< by this process
};

}  // namespace lockstep::trainer
