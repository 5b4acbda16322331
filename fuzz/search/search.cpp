#include "fuzz/search/search.h"

#include <algorithm>
#include <map>
#include <thread>

#include "core/error.h"
#include "fuzz/search/board.h"
#include "fuzz/search/workers.h"

namespace lockstep::fuzz {
namespace {

/// So many cases of which none compared anything are no accident.
constexpr int64_t kEnough = 40;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Of each check the first that failed, as it was told last: smaller.
class Failures {
 public:
  void add(size_t check, int64_t number, const FoundFailure& failure) {
    const auto found = all_.find(check);
    if (found == all_.end() || number <= found->second.first) all_[check] = {number, failure};
  }
  int64_t count() const { return static_cast<int64_t>(all_.size()); }
  std::vector<FoundFailure> list() const {
    std::vector<FoundFailure> list;
    for (const auto& [check, failure] : all_) list.push_back(failure.second);
    return list;
  }

 private:
  std::map<size_t, std::pair<int64_t, FoundFailure>> all_;
};

void watch(Board& board, Workers& workers, const SearchOptions& options, Clock::time_point start,
           const Failures& failures) {
  for (int round = 0; workers.attend(); ++round) {
    if (options.should_stop() || (options.first_only && failures.count() > 0)) board.stop() = true;
    if (options.on_progress && round % 10 == 0)
      options.on_progress({board.cases(), failures.count(), seconds_since(start)});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

/// What holds because it never compares anything does not hold.
void add_idle_checks(SearchResult& result, const Checks& checks, uint64_t seed) {
  for (size_t c = 0; c < checks.size(); ++c) {
    const auto& tally = result.tallies[c];
    if (checks[c].may_compare_nothing || tally.cases < kEnough || tally.compared + tally.refused > 0) continue;
    result.failures.push_back(
        {nth_case(tally.check, seed, 0),
         fmt::format("{} cases, and nothing was compared: all were refused or left out", tally.cases)});
  }
}

}  // namespace

CheckTally SearchResult::total() const {
  CheckTally total;
  for (const auto& tally : tallies) {
    total.cases += tally.cases, total.left_out += tally.left_out;
    total.compared += tally.compared, total.refused += tally.refused;
  }
  return total;
}

SearchResult search(const Checks& checks, const SearchOptions& options) {
  LOCKSTEP_CHECK(!checks.empty(), "a search without checks finds nothing");
  Board board(checks.size(), static_cast<size_t>(std::max(options.workers, 1)));
  Failures failures;
  const Report report = [&](auto... found) { failures.add(found...); };
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  if (options.workers == 0) {
    work(board, checks, options, {.end = end}, report);
  } else {
    Workers workers(board, checks, options, end, report);
    watch(board, workers, options, start, failures);
  }
  SearchResult result{board.cases(), seconds_since(start), board.digest(), {}, failures.list()};
  for (size_t c = 0; c < checks.size(); ++c) {
    const auto& tally = board.tallies()[c];
    result.tallies.push_back({checks[c].name, tally.cases, tally.left_out, tally.compared, tally.refused});
  }
  add_idle_checks(result, checks, options.seed);
  return result;
}

}  // namespace lockstep::fuzz
