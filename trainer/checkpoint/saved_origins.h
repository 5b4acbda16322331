#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>

#include "trainer/checkpoint/checkpoint_index.h"

namespace lockstep::trainer {

/// saved_origin() for who asks after every save: an index, which takes seconds to read if it is large, is read again
/// only if another file is in its place.
class SavedOrigins {
 public:
  std::optional<RunOrigin> of(const std::string& folder);
  /// The folder is no more.
  void forget(const std::string& folder) { known_.erase(folder); }

 private:
  struct Stamp {
    dev_t device = 0;
    ino_t file = 0;
    off_t size = 0;
    int64_t seconds = 0, nanoseconds = 0;  ///< of its last change
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  struct Known {
    Stamp stamp;
    std::optional<RunOrigin> origin;
  };
  static std::optional<Stamp> stamp_of(const std::string& path);

  std::map<std::string, Known> known_;
};

}  // namespace lockstep::trainer
