#include <fmt/ranges.h>

#include <limits>
#include <variant>

#include "core/error.h"
#include "core/suggest.h"
#include "trainer/job/optimizer_settings.h"

namespace lockstep::trainer {
namespace {

using Field = std::variant<std::string ParameterGroup::*, std::optional<double> ParameterGroup::*,
                           bool ParameterGroup::*, std::optional<bool> ParameterGroup::*>;

struct GroupKey {
  std::string_view name;
  Field field;
  std::string_view accepts;
};

constexpr GroupKey kKeys[] = {
    {"pattern", &ParameterGroup::pattern, "a pattern of names such as \"*.norm.weight\""},
    {"lr_factor", &ParameterGroup::lr_factor, "a number, at least 0"},
    {"weight_decay", &ParameterGroup::weight_decay, "a number, at least 0"},
    {"frozen", &ParameterGroup::frozen, "true or false"},
    {"muon", &ParameterGroup::muon, "true or false"},
};

bool read(const Setting& setting, std::string& out) {
  const auto* text = std::get_if<std::string>(&setting.value);
  if (text) out = *text;
  return text && !text->empty();
}
bool read(const Setting& setting, bool& out) {
  const auto* flag = std::get_if<bool>(&setting.value);
  if (flag) out = *flag;
  return flag != nullptr;
}
bool read(const Setting& setting, std::optional<bool>& out) { return read(setting, out.emplace()); }
bool read(const Setting& setting, std::optional<double>& out) {
  const auto* integer = std::get_if<int64_t>(&setting.value);
  const auto* number = std::get_if<double>(&setting.value);
  if (!integer && !number) return false;
  out = integer ? static_cast<double>(*integer) : *number;
  return *out >= 0 && *out <= std::numeric_limits<float>::max();
}

void apply(const Setting& setting, const std::string& name, ParameterGroup& group) {
  std::vector<std::string> names;
  for (const auto& key : kKeys) {
    names.emplace_back(key.name);
    if (key.name != setting.key) continue;
    if (!std::visit([&](auto member) { return read(setting, group.*member); }, key.field))
      fail<BadInput>("{}: {}.{} is {}, must be {}.", setting.where, name, key.name, setting.written, key.accepts);
    return;
  }
  const auto near = nearest(setting.key, names);
  fail<BadInput>("{}: {}.{} is not a key of a group; those are {}.{}", setting.where, name, setting.key,
                 fmt::join(names, ", "), near ? fmt::format(" Did you mean {}?", *near) : "");
}

ParameterGroup group_of(const std::vector<Setting>& table, const std::string& where, const std::string& name) {
  ParameterGroup group;
  for (const auto& setting : table) apply(setting, name, group);
  if (group.pattern.empty())
    fail<BadInput>("{}: {} has no pattern; it names the parameters, such as \"*.norm.weight\".", where, name);
  if (group.frozen && (group.lr_factor || group.weight_decay || group.muon))
    fail<BadInput>("{}: {} is frozen and has other settings, which would do nothing; leave one out.", where, name);
  return group;
}

std::string text(const std::string& value) { return toml_string(value); }
std::string text(bool value) { return value ? "true" : ""; }
std::string text(const std::optional<double>& value) { return value ? toml_number(*value) : ""; }
std::string text(const std::optional<bool>& value) { return value ? (*value ? "true" : "false") : ""; }

std::string group_text(const ParameterGroup& group) {
  std::vector<std::string> parts;
  for (const auto& key : kKeys) {
    const auto value = std::visit([&](auto member) { return text(group.*member); }, key.field);
    if (!value.empty()) parts.push_back(fmt::format("{} = {}", key.name, value));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

}  // namespace

std::optional<std::vector<ParameterGroup>> parse_groups(const Setting& setting) {
  const auto tables = parse_tables(setting.written, setting.where);
  if (!tables) return std::nullopt;
  std::vector<ParameterGroup> groups;
  for (const auto& table : *tables)
    groups.push_back(group_of(table, setting.where, fmt::format("{}[{}]", setting.key, groups.size())));
  return groups;
}

std::string groups_text(const std::vector<ParameterGroup>& groups) {
  std::vector<std::string> texts;
  for (const auto& group : groups) texts.push_back(group_text(group));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

bool fits(std::string_view pattern, std::string_view name) {
  // Goes back to the last star alone: an earlier one never has to take more.
  size_t p = 0, n = 0, after_star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p, taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (after_star != std::string_view::npos) {
      p = after_star, n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace lockstep::trainer
