// Which rank is to blame: the rules in the order in which they are tried, surest first.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "tools/lockstep/reports/flight_report.h"

namespace lockstep::tool {
namespace {

using Stories = std::vector<RankStory>;

std::string name_of(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string where(const RankStory& story) {
  const auto* note = story.last();
  if (!note) return "before its first collective";
  return fmt::format("{} {} of {}", note->state == FlightState::kDone ? "after" : "in", note->text(), note->op_id);
}

bool names(const RankStory& story, int rank) {
  const auto* note = story.last();
  return note && note->state != FlightState::kDone && std::ranges::find(note->ranks, rank) != note->ranks.end();
}

/// Of those that wait for it: who they are, and in what.
std::string waiters_of(const Stories& stories, int rank) {
  std::vector<int> ranks;
  const RankStory* first = nullptr;
  for (const auto& story : stories) {
    if (!names(story, rank)) continue;
    ranks.push_back(story.rank);
    if (!first) first = &story;
  }
  if (!first) return "";
  return fmt::format("{} waited for it {}", name_of(ranks), where(*first));
}

std::string with_waiters(const std::string& text, const Stories& stories, int rank) {
  const auto waiters = waiters_of(stories, rank);
  return waiters.empty() ? text : text + "; " + waiters;
}

/// The first of those that fit.
template <class Fits>
const RankStory* earliest(const Stories& stories, const Fits& fits) {
  const RankStory* found = nullptr;
  for (const auto& story : stories)
    if (fits(story) && (!found || story.ended < found->ended)) found = &story;
  return found;
}

std::string blame_killed(const Stories& stories) {
  const auto* story = earliest(stories, [](const RankStory& s) { return s.signal > 0; });
  if (!story) return "";
  return with_waiters(fmt::format("rank {} was killed by signal {} ({}) {}", story->rank, story->signal,
                                  ::strsignal(story->signal), where(*story)),
                      stories, story->rank);
}

std::string blame_failed(const Stories& stories) {
  const auto* story = earliest(stories, [](const RankStory& s) {
    return s.code != ExitCode::kFine && s.code != ExitCode::kTransport && s.code != ExitCode::kInterrupted;
  });
  if (!story) return "";
  return with_waiters(
      fmt::format("rank {} failed (exit {}) {}", story->rank, static_cast<int>(story->code), where(*story)), stories,
      story->rank);
}

/// Of a rank that gave up, and those it gave up on.
bool gave_up(const RankStory& story, FlightState state) { return story.last() && story.last()->state == state; }

/// Whether a rank has done, or does, what can be the other's part of the collective that `story` is in. Bytes may
/// differ.
bool goes_along(const RankStory& other, const RankStory& story) {
  return std::ranges::any_of(other.notes, [&mine = *story.last()](const FlightNote& theirs) {
    return mine.collective == theirs.collective && mine.kind == theirs.kind && mine.dtype == theirs.dtype &&
           mine.axis == theirs.axis;
  });
}

/// How many others a rank is alone against: those that say they disagree with it, less those that do as it does.
/// REQUIRES: last().
int oddness(const Stories& stories, const RankStory& story) {
  int result = 0;
  for (const auto& other : stories) {
    if (other.rank == story.rank) continue;
    result += 2 * (gave_up(other, FlightState::kDisagrees) && names(other, story.rank));
    result -= goes_along(other, story);
  }
  return result;
}

std::string blame_disagreeing(const Stories& stories) {
  std::vector<std::pair<int, const RankStory*>> accused;
  for (const auto& story : stories)
    if (story.last() && std::ranges::any_of(stories, [&](const RankStory& other) {
          return gave_up(other, FlightState::kDisagrees) && (names(other, story.rank) || other.rank == story.rank);
        }))
      accused.emplace_back(-oddness(stories, story), &story);
  if (accused.size() < 2) return "";
  std::ranges::stable_sort(accused, {}, [](const auto& entry) { return entry.first; });
  const auto &odd = *accused[0].second, &other = *accused[1].second;
  const char* certainty = accused[0].first < accused[1].first ? "the others" : "the other";
  return fmt::format("rank {} is at {} of {}, {} (rank {}) at {} of {}: they disagree", odd.rank, odd.last()->text(),
                     odd.last()->op_id, certainty, other.rank, other.last()->text(), other.last()->op_id);
}

std::string blame_stopped(const Stories& stories) {
  for (const auto& story : stories)
    if (story.stopped)
      return with_waiters(fmt::format("rank {} is stopped (by a signal, such as SIGSTOP) {}", story.rank, where(story)),
                          stories, story.rank);
  return "";
}

/// Whoever is waited for and does not wait himself.
std::string blame_awaited(const Stories& stories) {
  for (const auto& story : stories) {
    const auto waiters = waiters_of(stories, story.rank);
    if (waiters.empty() || gave_up(story, FlightState::kGaveUp)) continue;
    const char* what = story.ended_by_launcher ? "is late" : "has ended";
    return fmt::format("rank {} {} {}; {}", story.rank, what, where(story), waiters);
  }
  return "";
}

/// Ranks that gave up on each other: what was between them broke.
std::string blame_connection(const Stories& stories) {
  for (const auto& story : stories)
    for (const auto& other : stories)
      if (story.rank < other.rank && gave_up(story, FlightState::kGaveUp) && gave_up(other, FlightState::kGaveUp) &&
          names(story, other.rank) && names(other, story.rank))
        return fmt::format("rank {} and rank {} have lost each other {}", story.rank, other.rank, where(story));
  return "";
}

}  // namespace

std::string blame(const Stories& stories) {
  for (const auto rule :
       {blame_killed, blame_failed, blame_disagreeing, blame_stopped, blame_awaited, blame_connection})
    if (auto text = rule(stories); !text.empty()) return text;
  return "";
}

}  // namespace lockstep::tool
