#include "trainer/job_setting.h"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "trainer/job_keys.h"

namespace lockstep::trainer {
namespace {

std::string place(const std::string& name, const toml::source_region& source) {
  return fmt::format("{}:{}", name, source.begin.line);
}

std::string as_toml(const toml::node& node) {
  if (const auto* text = node.as_string()) return toml_string(text->get());
  std::ostringstream out;
  if (const auto* list = node.as_array()) {
    for (const auto& element : *list) out << (out.tellp() > 0 ? ", " : "") << as_toml(element);
    return "[" + out.str() + "]";
  }
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

Setting setting_of(std::string key, const toml::node& node, const std::string& name) {
  Setting setting{std::move(key), OtherValue{}, as_toml(node), place(name, node.source())};
  if (const auto* flag = node.as_boolean()) setting.value = flag->get();
  if (const auto* integer = node.as_integer()) setting.value = integer->get();
  if (const auto* number = node.as_floating_point()) setting.value = number->get();
  if (const auto* text = node.as_string()) setting.value = setting.written = text->get();
  return setting;
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& name, std::vector<Setting>& out) {
  for (const auto& [key, node] : table) {
    const auto dotted = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      flatten(*inner, dotted + ".", name, out);
      // An empty table still names itself: a misspelled section must not pass because it is empty.
      if (inner->empty()) out.push_back({dotted + ".", OtherValue{}, "", place(name, inner->source())});
    } else {
      out.push_back(setting_of(dotted, node, name));
    }
  }
}

int64_t line_of(const Setting& setting) { return std::stoll(setting.where.substr(setting.where.rfind(':') + 1)); }

}  // namespace

std::vector<Setting> parse_toml(std::string_view text, const std::string& name) {
  std::vector<Setting> settings;
  try {
    flatten(toml::parse(text), "", name, settings);
  } catch (const toml::parse_error& error) {
    fail<BadInput>("{}: {}", place(name, error.source()), error.description());
  }
  std::stable_sort(settings.begin(), settings.end(),
                   [](const Setting& left, const Setting& right) { return line_of(left) < line_of(right); });
  return settings;
}

Setting command_line_setting(std::string key, std::string value) {
  Setting setting{std::move(key), value, value, "command line"};
  setting.typed = false;
  return setting;
}

}  // namespace lockstep::trainer
