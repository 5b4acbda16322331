#include "trainer/job/job_setting.h"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "trainer/job/job_keys.h"

namespace lockstep::trainer {
namespace {

constexpr int kMostNesting = 16;  ///< of brackets, and of dots in one key

std::string where(const std::string& name, const toml::source_region& source) {
  return fmt::format("{}:{}", name, source.begin.line);
}

std::string toml_key(std::string_view key) {
  const bool is_bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return is_bare ? std::string(key) : toml_string(key);
}

std::string as_toml(const toml::node& node) {
  if (const auto* text = node.as_string()) return toml_string(text->get());
  std::ostringstream out;
  if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table)
      out << (out.tellp() > 0 ? ", " : "") << toml_key(key.str()) << " = " << as_toml(value);
    return "{" + out.str() + "}";
  }
  if (const auto* list = node.as_array()) {
    for (const auto& element : *list) out << (out.tellp() > 0 ? ", " : "") << as_toml(element);
    return "[" + out.str() + "]";
  }
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

Setting setting_of(std::string key, const toml::node& node, const std::string& name) {
  Setting setting{std::move(key), OtherValue{}, as_toml(node), where(name, node.source())};
  if (const auto* flag = node.as_boolean()) setting.value = flag->get();
  if (const auto* integer = node.as_integer()) setting.value = integer->get();
  if (const auto* number = node.as_floating_point()) setting.value = number->get();
  if (const auto* text = node.as_string()) setting.value = setting.written = text->get();
  if (const auto* list = node.as_array(); list && (list->empty() || list->is_homogeneous<std::string>())) {
    std::vector<std::string> texts;
    for (const auto& element : *list) texts.push_back(element.as_string()->get());
    setting.value = std::move(texts);
  }
  return setting;
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& name, std::vector<Setting>& out) {
  for (const auto& [key, node] : table) {
    const auto dotted = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      flatten(*inner, dotted + ".", name, out);
      // An empty table still names itself: a misspelled section must not pass because it is empty.
      if (inner->empty()) out.push_back({dotted + ".", OtherValue{}, "", where(name, inner->source())});
    } else {
      out.push_back(setting_of(dotted, node, name));
    }
  }
}

int64_t line_of(const Setting& setting) { return std::stoll(setting.where.substr(setting.where.rfind(':') + 1)); }

/// Whether the text is UTF-8 as TOML wants it: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t more = lead < 0x80 ? 0 : lead >= 0xc2 && lead < 0xe0 ? 1 : (lead & 0xf0) == 0xe0 ? 2 : 3;
    if (more == 3 && (lead < 0xf0 || lead > 0xf4)) return false;
    if (text.size() - i <= more) return false;
    uint32_t code = more == 0 ? lead : lead & (0x3fu >> more);
    for (size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3f);
    }
    constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[more] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return false;
    i += more + 1;
  }
  return true;
}

/// Finds the line on which a text goes deeper than the parser's stack should: tables, lists and dotted keys nest it one
/// call each. Sees what is text and what is structure; what is no TOML at all is left to the parser, which stops there.
class NestingScan {
 public:
  explicit NestingScan(std::string_view text) : rest_(text) {}

  /// 0 if there is none.
  int64_t too_deep_line() {
    while (!rest_.empty()) {
      if (rest_[0] == '"' || rest_[0] == '\'')
        skip_string();
      else if (rest_[0] == '#')
        skip(std::min(rest_.find('\n'), rest_.size()));
      else
        step(rest_[0]);
      if (brackets_ > kMostNesting || dots_ > kMostNesting) return line_;
    }
    return 0;
  }

 private:
  void step(char character) {
    if (character == '[' || character == '{') ++brackets_;
    if ((character == ']' || character == '}') && brackets_ > 0) --brackets_;
    if (character == '.') ++dots_;
    if (std::string_view("=,[]{}\n").find(character) != std::string_view::npos) dots_ = 0;  // the key ends
    skip(1);
  }

  void skip_string() {
    const std::string quote(rest_.substr(0, 3) == std::string(3, rest_[0]) ? 3 : 1, rest_[0]);
    skip(quote.size());
    while (!rest_.empty() && !rest_.starts_with(quote) && (quote.size() == 3 || rest_[0] != '\n'))
      skip(quote[0] == '"' && rest_[0] == '\\' ? 2 : 1);
    if (rest_.starts_with(quote)) skip(quote.size());
  }

  void skip(size_t count) {
    count = std::min(count, rest_.size());
    line_ += std::count(rest_.begin(), rest_.begin() + static_cast<ptrdiff_t>(count), '\n');
    rest_.remove_prefix(count);
  }

  std::string_view rest_;
  int64_t line_ = 1;
  int brackets_ = 0, dots_ = 0;
};

/// The list that a TOML text is; none if it is something else.
std::optional<toml::array> parse_list(std::string_view value) {
  const auto text = fmt::format("value = {}", value);
  if (NestingScan(text).too_deep_line() > 0) return std::nullopt;
  try {
    const auto parsed = toml::parse(text);
    const auto* list = parsed.size() == 1 ? parsed["value"].as_array() : nullptr;
    return list ? std::optional(*list) : std::nullopt;
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<Setting> parse_toml(std::string_view text, const std::string& name) {
  if (const auto line = NestingScan(text).too_deep_line(); line > 0)
    fail<BadInput>("{}:{}: nested deeper than {} levels; a job has sections and keys.", name, line, kMostNesting);
  std::vector<Setting> settings;
  try {
    flatten(toml::parse(text), "", name, settings);
  } catch (const toml::parse_error& error) {
    fail<BadInput>("{}: {}", where(name, error.source()), without_control_characters(error.description()));
  }
  std::stable_sort(settings.begin(), settings.end(),
                   [](const Setting& left, const Setting& right) { return line_of(left) < line_of(right); });
  return settings;
}

std::optional<std::vector<std::vector<Setting>>> parse_tables(std::string_view value, const std::string& place) {
  const auto list = parse_list(value);
  if (!list) return std::nullopt;
  std::vector<std::vector<Setting>> tables;
  for (const auto& element : *list) {
    if (!element.is_table()) return std::nullopt;
    flatten(*element.as_table(), "", place, tables.emplace_back());
    for (auto& setting : tables.back()) setting.where = place;
  }
  return tables;
}

std::optional<std::vector<std::vector<std::string>>> parse_lists(std::string_view value) {
  const auto list = parse_list(value);
  if (!list) return std::nullopt;
  std::vector<std::vector<std::string>> lists;
  for (const auto& element : *list) {
    const auto* inner = element.as_array();
    if (!inner || (!inner->empty() && !inner->is_homogeneous<std::string>())) return std::nullopt;
    auto& texts = lists.emplace_back();
    for (const auto& text : *inner) texts.push_back(text.as_string()->get());
  }
  return lists;
}

std::string without_control_characters(std::string_view line) {
  std::string text;
  for (const char each : line) {
    const auto code = static_cast<unsigned char>(each);
    text += code < 0x20 || code == 0x7f ? fmt::format("\\x{:02x}", code) : std::string(1, each);
  }
  return text;
}

Setting command_line_setting(std::string key, std::string value) {
  if (!is_utf8(value)) fail<BadInput>("command line: the value of {} is not UTF-8 text.", key);
  Setting setting{std::move(key), value, value, "command line"};
  setting.typed = false;
  return setting;
}

std::string toml_number(double value) {
  auto text = fmt::format("{}", value);
  return text.find_first_of(".en") == text.npos ? text + ".0" : text;
}

std::string toml_string(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      text += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text + '"';
}

}  // namespace lockstep::trainer
