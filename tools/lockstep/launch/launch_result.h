#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/lockstep/launch/rank_process.h"

/// What a launch says of its ranks.
namespace lockstep::tool {

/// The JSON of a command that ranks run (--json), to which the launcher adds what it knows; without one it does
/// nothing. Looks, when it is made, at the file that an older run left.
class LaunchResult {
 public:
  explicit LaunchResult(const std::vector<std::string>& command);

  /// Adds to what this run's command wrote, if it came to that; to an empty object otherwise.
  void add(const char* name, const nlohmann::ordered_json& value) const;

 private:
  /// Tells a file from the one that was there under its name before.
  using Identity = std::pair<uint64_t, std::pair<int64_t, int64_t>>;
  Identity identity() const;

  std::string path_;
  Identity before_;
};

/// Prints what happened, for a launch that lost a rank.
void report_loss(const std::vector<RankStory>& stories);

}  // namespace lockstep::tool
