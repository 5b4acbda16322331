#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Streams of random numbers are named, never numbered by rank or by how much was drawn before.
namespace lockstep::rng {

/// What is being drawn: at which step (initial weights: step 0), in which module, and which of the module's draws in
/// one call it is. Recomputing a module's forward gives the same names, hence the same numbers.
struct StreamName {
  uint64_t step = 0;
  std::string_view module_path = {};  ///< "layers.3.attention", or a parameter's name for initial weights
  uint64_t occurrence = 0;
};

/// The stream of a name: XXH3-64 of step and occurrence (8 bytes each, little-endian) followed by the bytes of the
/// path.
uint64_t stream_of(const StreamName& name);

/// Gives out streams and notices when two different names of one run have the same hash (they would draw equal
/// numbers).
///
/// Asking again for a name is fine. Remembers the last `capacity` names (about 60 bytes each) and forgets the oldest,
/// so that a long run does not grow without bound; names further apart than that are not compared. Not thread-safe.
class StreamRegistry {
 public:
  using Hash = uint64_t (*)(const StreamName&);

  explicit StreamRegistry(Hash hash = stream_of, size_t capacity = size_t{1} << 21)
      : hash_(hash), capacity_(capacity) {}

  /// The stream of `name`; BadInput naming both when another name of this run already has it.
  uint64_t open(const StreamName& name);

  /// Names remembered.
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t step, occurrence;
    uint32_t path;  // index into paths_
    bool operator==(const Entry&) const = default;
  };

  uint32_t intern(std::string_view path);
  [[noreturn]] void report(const Entry& known, const StreamName& name) const;

  Hash hash_;
  size_t capacity_;
  std::vector<std::string> paths_;
  std::unordered_map<std::string, uint32_t> path_index_;
  std::unordered_map<uint64_t, Entry> entries_;  // by stream
  std::deque<uint64_t> order_;                   // streams, oldest first
};

}  // namespace lockstep::rng
