#include "trainer/pipeline/schedule_csv.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "core/error.h"
#include "core/files/mapped_file.h"

namespace lockstep::pipeline {
namespace {

constexpr std::string_view kOverlap = "OVERLAP_F_B";
/// After the number of a stage; the first four have a microbatch, too.
constexpr std::string_view kCommunication[] = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                               "UNSHARD", "RESHARD", "REDUCE_GRAD"};
constexpr size_t kWithMicrobatch = 4;

std::string_view without(std::string_view text, std::string_view around) {
  const auto first = text.find_first_not_of(around);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(around) - first + 1);
}

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_communication(std::string_view cell) {
  const auto name_at = cell.find_first_not_of("0123456789");
  if (name_at == cell.npos || name_at == 0) return false;
  const auto rest = cell.substr(name_at);
  for (size_t i = 0; i < std::size(kCommunication); ++i)
    if (rest.starts_with(kCommunication[i])) {
      const auto microbatch = rest.substr(kCommunication[i].size());
      return i < kWithMicrobatch ? !microbatch.empty() && all_digits(microbatch) : microbatch.empty();
    }
  return false;
}

/// "(0F5;7B2)OVERLAP_F_B".
void add_pair(std::string_view cell, const std::string& where, std::vector<Action>& actions) {
  const auto semicolon = cell.find(';'), end = cell.find(')');
  if (semicolon == cell.npos || end == cell.npos || semicolon > end || cell.substr(end + 1) != kOverlap)
    fail<BadInput>("{}: \"{}\" is no pair. Two actions and {} were expected, such as (0F5;7B2){}.", where, cell,
                   kOverlap, kOverlap);
  auto first = parse_action(without(cell.substr(1, semicolon - 1), " "), where);
  const auto second = parse_action(without(cell.substr(semicolon + 1, end - semicolon - 1), " "), where);
  if (first.kind != ActionKind::kForward || second.kind != ActionKind::kBackward)
    fail<BadInput>("{}: \"{}\" pairs {} and {}; a forward (F) and then a whole backward (B) were expected.", where,
                   cell, text_of(first), text_of(second));
  first.overlaps_next = true;
  actions.insert(actions.end(), {first, second});
}

/// Calls `use` with each part and its number from 1 on.
void for_each_part(std::string_view text, char separator, const std::function<void(std::string_view, int64_t)>& use) {
  for (int64_t number = 1;; ++number) {
    const auto end = text.find(separator);
    use(text.substr(0, end), number);
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

std::vector<Action> parse_line(std::string_view line, const std::string& where, int64_t& left_out) {
  std::vector<Action> actions;
  for_each_part(line, ',', [&](std::string_view text, int64_t number) {
    const auto cell = without(text, " \t\r\"");
    if (cell.empty()) return;
    const auto place = fmt::format("{}, cell {}", where, number);
    if (is_communication(cell)) {
      ++left_out;
    } else if (cell.front() == '(') {
      add_pair(cell, place, actions);
    } else {
      actions.push_back(parse_action(cell, place));
    }
  });
  return actions;
}

/// Largest numbers, and which rank has which stage. A stage that no rank has gets -1, which check() refuses.
void find_out_sizes(Schedule& schedule) {
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (const auto& action : schedule.ranks[rank]) {
      schedule.microbatches = std::max(schedule.microbatches, action.microbatch + 1);
      const auto stage = static_cast<size_t>(action.stage);
      if (stage >= schedule.rank_of_stage.size()) schedule.rank_of_stage.resize(stage + 1, -1);
      auto& holder = schedule.rank_of_stage[stage];
      if (holder < 0) holder = static_cast<int64_t>(rank);
      if (holder != static_cast<int64_t>(rank))
        fail<BadInput>("{}:{}: {} is on rank {}, but stage {} is on rank {} (line {}). One rank has to hold it.",
                       schedule.name, rank + 1, text_of(action), rank, stage, holder, holder + 1);
    }
}

}  // namespace

ScheduleFile parse_schedule_csv(std::string_view text, const std::string& name) {
  ScheduleFile file;
  file.schedule.name = name;
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  if (text.empty()) fail<BadInput>("{}: is empty. A line of actions for each rank was expected.", name);
  for_each_part(text, '\n', [&](std::string_view line, int64_t number) {
    file.schedule.ranks.push_back(parse_line(line, fmt::format("{}:{}", name, number), file.left_out));
  });
  find_out_sizes(file.schedule);
  return file;
}

ScheduleFile read_schedule_csv(const std::string& path) try {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return parse_schedule_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
} catch (const FileError& error) {
  fail<BadInput>("{} A schedule (csv) was expected.", error.what());
}

std::string to_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.ranks) {
    for (size_t i = 0; i < actions.size(); ++i) {
      const bool is_second = i > 0 && actions[i - 1].overlaps_next;
      if (i > 0) text += is_second ? ';' : ',';
      if (actions[i].overlaps_next) text += '(';
      text += text_of(actions[i]);
      if (is_second) text += fmt::format("){}", kOverlap);
    }
    text += '\n';
  }
  return text;
}

}  // namespace lockstep::pipeline
