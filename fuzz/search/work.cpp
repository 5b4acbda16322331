// What one worker does.
#include <c10/util/Exception.h>

#include "fuzz/search/board.h"
#include "fuzz/search/case_run.h"
#include "fuzz/trials/rule_properties.h"

namespace lockstep::fuzz {
namespace {

/// LibTorch warns once of what cases do on purpose.
class NoWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

constexpr const char* kHeldAgain = " (It held when it ran again: it depends on more than what is drawn.)";

int64_t sum(const std::map<std::string, int64_t>& counts) {
  int64_t total = 0;
  for (const auto& [op, count] : counts) total += count;
  return total;
}

/// What the properties have counted in this process.
struct Evidence {
  int64_t compared = sum(testing::compared_cases()), refused = sum(testing::refused_cases());
};

CaseOutcome run_and_count(Board& board, const Check& check, Board::Tally& tally, const CaseName& name) {
  const Evidence before;
  const auto outcome = run_case(check, name);
  const Evidence after;
  board.digest() += outcome.drawn;
  ++tally.cases;
  tally.left_out += outcome.kind == CaseOutcome::Kind::kLeftOut;
  tally.compared += after.compared - before.compared;
  tally.refused += after.refused - before.refused;
  return outcome;
}

/// Every check has failed before its case of that number.
bool nothing_is_left(Board& board, int64_t number) {
  return std::all_of(board.tallies().begin(), board.tallies().end(),
                     [&](const auto& tally) { return tally.first_failed <= number; });
}

}  // namespace

void work(Board& board, const Checks& checks, const SearchOptions& options, const Share& share, const Report& report) {
  NoWarnings none;
  const c10::WarningUtils::WarningHandlerGuard guard(&none);
  for (int64_t at = share.first; !board.stop(); at += share.stride) {
    if ((options.cases > 0 && at >= options.cases) || Clock::now() >= share.end) return;
    if (share.worker == 0 && options.workers == 0 && options.should_stop()) return;
    const auto turn = turn_of(at, checks.size());
    auto& tally = board.tallies()[turn.check];
    if (tally.first_failed <= turn.number) {
      if (nothing_is_left(board, turn.number)) return;
      continue;
    }
    board.worker(share.worker).since = Clock::now().time_since_epoch().count();
    board.worker(share.worker).turn = at;
    const auto& check = checks[turn.check];
    const auto name = nth_case(check.name, options.seed, turn.number);
    const auto outcome = run_and_count(board, check, tally, name);
    if (!outcome.failed() || !lower(tally.first_failed, turn.number)) continue;
    report(turn.check, turn.number, {name, outcome.message, outcome.drawn});  // a smaller one may end the process
    const auto smaller = shrink_case(check, name, options.shrink_seconds);
    if (smaller.message.empty())
      report(turn.check, turn.number, {name, outcome.message + kHeldAgain, outcome.drawn});
    else
      report(turn.check, turn.number, {smaller.name, smaller.message, smaller.drawn});
  }
}

}  // namespace lockstep::fuzz
