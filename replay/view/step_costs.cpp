#include "replay/view/step_costs.h"

#include <algorithm>
#include <map>

namespace lockstep::replay {
namespace {

/// An op or a collective on the way through a process's time.
struct Item {
  TimeWindow window;
  const std::string* name;
  bool is_collective;
};

std::vector<Item> items_of(const ProcessTimeline& process) {
  std::vector<Item> items;
  for (const auto& op : process.ops) items.push_back({op.window, &op.name, false});
  for (const auto& each : process.collectives) items.push_back({each.window, &each.name, true});
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.window.begin != b.window.begin ? a.window.begin < b.window.begin : a.window.end > b.window.end;
  });
  return items;
}

/// Adds up what a process did. An item that lies wholly inside an op is taken off that op's time.
class ProcessCosts {
 public:
  explicit ProcessCosts(const ProcessTimeline& process) : process_(process) {
    for (const auto& item : items_of(process)) add(item);
    while (!open_.empty()) close();
    add_bytes();
  }

  const std::map<std::pair<bool, std::string>, Cost>& costs() const { return costs_; }
  uint64_t unknown() const { return process_.end() - known_; }

 private:
  struct Open {
    Item item;
    uint64_t own;
    uint64_t taken_until;  ///< of what runs inside of it, if two overlap
  };

  Cost& cost_of(bool is_collective, const std::string& name) { return costs_[{is_collective, name}]; }

  void close() {
    cost_of(false, *open_.back().item.name).time += open_.back().own;
    open_.pop_back();
  }

  void add(const Item& item) {
    while (!open_.empty() && open_.back().item.window.end <= item.window.begin) close();
    if (!open_.empty() && item.window.end <= open_.back().item.window.end) take_off(open_.back(), item.window);
    const auto new_from = std::max(known_until_, item.window.begin);
    if (item.window.end > new_from) known_ += item.window.end - new_from;
    known_until_ = std::max(known_until_, item.window.end);
    auto& cost = cost_of(item.is_collective, *item.name);
    ++cost.times;
    if (item.is_collective)
      cost.time += item.window.length();
    else
      open_.push_back({item, item.window.length(), item.window.begin});
  }

  static void take_off(Open& outer, TimeWindow inner) {
    const auto from = std::max(outer.taken_until, inner.begin);
    if (inner.end <= from) return;
    outer.own -= inner.end - from;
    outer.taken_until = inner.end;
  }

  void add_bytes() {
    for (const auto* rank : process_.ranks)
      for (const auto& result : rank->results)
        cost_of(false, rank->names[rank->ops[result.op].id.op]).bytes += result.bytes;
    for (const auto& each : process_.collectives) cost_of(true, each.name).bytes += each.bytes;
  }

  const ProcessTimeline& process_;
  std::map<std::pair<bool, std::string>, Cost> costs_;
  std::vector<Open> open_;
  uint64_t known_ = 0, known_until_ = 0;
};

}  // namespace

StepCosts costs_of(const std::vector<ProcessTimeline>& processes) {
  StepCosts all;
  std::map<std::pair<bool, std::string>, Cost> rows;
  for (const auto& process : processes) {
    const ProcessCosts mine(process);
    for (const auto& [key, cost] : mine.costs()) {
      auto& row = rows[key];
      row.time += cost.time, row.times += cost.times, row.bytes += cost.bytes;
      if (cost.time >= row.most && (cost.time > row.most || row.where.empty()))
        row.most = cost.time, row.where = process.name();
    }
    all.length += process.end();
    all.unknown += mine.unknown();
  }
  for (auto& [key, row] : rows) {
    row.is_collective = key.first, row.name = key.second;
    all.rows.push_back(std::move(row));
  }
  std::stable_sort(all.rows.begin(), all.rows.end(), [](const Cost& a, const Cost& b) { return a.time > b.time; });
  return all;
}

}  // namespace lockstep::replay
