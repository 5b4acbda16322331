#include "trainer/job/job_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <type_traits>

#include "core/error.h"
#include "core/files/random_access_file.h"
#include "core/suggest.h"
#include "trainer/job/job_keys.h"
#include "trainer/job/offered_names.h"
#include "trainer/job/optimizer_settings.h"
#include "trainer/job/torchtitan_keys.h"

namespace lockstep::trainer {
namespace {

std::string_view section_of(std::string_view dotted) { return dotted.substr(0, dotted.find('.')); }

bool is_section(std::string_view name) {
  const auto sections = job_sections();
  if (std::find(sections.begin(), sections.end(), name) != sections.end()) return true;
  return std::any_of(torchtitan_keys().begin(), torchtitan_keys().end(),
                     [&](const TorchtitanKey& key) { return section_of(key.pattern) == name; });
}

std::string did_you_mean(std::string_view text, std::span<const std::string> candidates, std::string_view format) {
  const auto found = nearest(text, candidates);
  return found ? fmt::format(" Did you mean {}?", fmt::format(fmt::runtime(format), *found)) : "";
}

/// Names of the supported keys in `section`; with an empty section, all dotted names.
std::vector<std::string> names_in(std::string_view section) {
  std::vector<std::string> names;
  for (const auto& key : job_keys()) {
    if (section.empty()) names.push_back(key.dotted());
    if (key.section == section || key.section.starts_with(std::string(section) + "."))
      names.push_back(key.dotted().substr(section.size() + 1));
  }
  return names;
}

constexpr const char* kListed = "'lockstep train --help' lists the keys.";

[[noreturn]] void fail_unknown(const Setting& setting) {
  const auto section = section_of(setting.key);
  if (setting.key.find('.') == setting.key.npos) {
    for (const auto& key : job_keys())
      if (key.name == setting.key)
        fail<BadInput>("{}: {} stands outside any section. Did you mean {}?", setting.where, setting.key, key.dotted());
    fail<BadInput>("{}: {} stands outside any section and is not a key. {}", setting.where, setting.key, kListed);
  }
  if (!is_section(section)) {
    std::vector<std::string> sections(job_sections().begin(), job_sections().end());
    const auto hint = did_you_mean(section, sections, "[{}]");
    fail<BadInput>("{}: [{}] is not a section.{}", setting.where, section,
                   hint.empty() ? ' ' + std::string(kListed) : hint);
  }
  const auto name = setting.key.substr(section.size() + 1);
  auto hint = did_you_mean(name, names_in(section), "{}");
  // The right key under the wrong section is the likelier slip when nothing in the section is close.
  for (const auto& key : job_keys())
    if (hint.empty() && key.name == name) hint = fmt::format(" Did you mean {}?", key.dotted());
  fail<BadInput>("{}: {} is not a key.{}", setting.where, setting.key,
                 hint.empty() ? ' ' + std::string(kListed) : hint);
}

void check_torchtitan_key(const TorchtitanKey& key, const Setting& setting, JobReading& reading) {
  if (asks_for_nothing(key, setting.written)) return;
  const bool refused = key.instead.empty();
  if (!refused || reading.is_dry)
    return reading.unhonoured.push_back(
        {setting.where, setting.key, setting.written, std::string(key.instead), refused});
  const auto neutral = neutral_values(key).front();
  fail<BadInput>("{}: {} = {} asks for something that Lockstep does not support; leave it out or set it to {}.",
                 setting.where, setting.key, setting.written, neutral.empty() ? "\"\"" : neutral);
}

[[noreturn]] void fail_type(const Key& key, const Setting& setting) {
  const bool quoted = std::holds_alternative<std::string>(setting.value);
  fail<BadInput>("{}: {} must be {}, not {}.", setting.where, setting.key, key.type(),
                 quoted ? toml_string(setting.written) : setting.written);
}

template <class T>
bool read_number(const std::string& text, T& out) {
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, out);
  return result.ec == std::errc{} && result.ptr == end;
}

/// Reads a command-line argument as a T; false when it is not one.
bool read_text(const std::string& text, std::string& out) { return out = text, true; }
bool read_text(const std::string& text, int64_t& out) { return read_number(text, out); }
bool read_text(const std::string& text, double& out) { return read_number(text, out); }
/// Separated by commas.
bool read_text(const std::string& text, std::vector<std::string>& out) {
  out.clear();
  for (size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return true;
}
bool read_text(const std::string& text, bool& out) { return out = text == "true", out || text == "false"; }

/// The setting's value as a T; false when it is of another type. An integer also serves where a number is wanted.
template <class T>
bool read_value(const Setting& setting, T& out) {
  if (!setting.typed) return read_text(std::get<std::string>(setting.value), out);
  if (const auto* value = std::get_if<T>(&setting.value)) return out = *value, true;
  if constexpr (std::is_same_v<T, std::vector<std::string>>)  // one is a list, too
    if (const auto* text = std::get_if<std::string>(&setting.value)) {
      out.clear();
      if (!text->empty()) out.push_back(*text);
      return true;
    }
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* value = std::get_if<int64_t>(&setting.value)) return out = static_cast<double>(*value), true;
  }
  return false;
}

/// As TOML, from a file or the command line alike.
template <class T, class Parse>
bool read_toml(const Setting& setting, T& out, const Parse& parse) {
  auto parsed = setting.typed && std::holds_alternative<std::string>(setting.value) ? std::nullopt : parse(setting);
  if (parsed) out = std::move(*parsed);
  return parsed.has_value();
}
bool read_value(const Setting& setting, std::vector<ParameterGroup>& out) {
  return read_toml(setting, out, parse_groups);
}
bool read_value(const Setting& setting, std::vector<std::vector<std::string>>& out) {
  return read_toml(setting, out, [](const Setting& each) { return parse_lists(each.written); });
}

bool is_allowed(const Allowed&, const std::vector<ParameterGroup>&) { return true; }
bool is_allowed(const Allowed&, const std::vector<std::vector<std::string>>&) { return true; }
bool is_allowed(const Allowed&, bool) { return true; }
bool is_allowed(const Allowed& allowed, int64_t value) { return allowed.accepts(static_cast<double>(value)); }
bool is_allowed(const Allowed& allowed, double value) { return allowed.accepts(value); }
bool is_allowed(const Allowed& allowed, const std::string& value) { return allowed.accepts(value); }
bool is_allowed(const Allowed& allowed, const std::vector<std::string>& values) {
  return std::all_of(values.begin(), values.end(), [&](const auto& value) { return allowed.accepts(value); });
}

template <class T>
void assign(const Key& key, const Setting& setting, T& out) {
  T value{};
  if (!read_value(setting, value)) fail_type(key, setting);
  if (!is_allowed(key.allowed, value))
    fail<BadInput>("{}: {} is {}, must be {}.{}", setting.where, setting.key,
                   std::is_same_v<T, std::string> ? toml_string(setting.written) : setting.written, key.allowed.text(),
                   did_you_mean(setting.written, key.allowed.choices));
  out = value;
}
template <class T>
void assign(const Key& key, const Setting& setting, std::optional<T>& out) {
  if (!setting.typed && setting.written == "none") return out.reset();
  assign(key, setting, out.emplace());
}

void assign(const Key& key, const Setting& setting, Job& job) {
  std::visit([&](auto member) { assign(key, setting, member(job)); }, key.field);
}

using Settings = std::vector<Setting>;

bool has(const Settings& all, std::string_view key) { return std::ranges::find(all, key, &Setting::key) != all.end(); }

/// A value that only torchtitan knows.
void stand_in(const Key& key, const TorchtitanValue& value, const Setting& setting, const Settings& all, Job& job,
              JobReading& reading) {
  const bool refused = value.stand_in.empty() || (!value.with.empty() && !has(all, value.with));
  if (refused && !reading.is_dry && !value.with.empty())
    fail<BadInput>(
        "{}: {} = {} needs {}: files of tokens, which lockstep data prepare makes of documents; nothing is downloaded.",
        setting.where, setting.key, setting.written, value.with);
  if (refused && !reading.is_dry) return assign(key, setting, job);  // says what there is
  const std::string instead(refused ? "" : value.instead);
  reading.unhonoured.push_back({setting.where, setting.key, setting.written, instead, refused});
  if (refused) return;
  auto other = setting;
  other.value = other.written = std::string(value.stand_in);
  assign(key, other, job);
}

void apply(const Setting& setting, const Settings& all, Job& job, JobReading& reading) {
  if (setting.key.ends_with('.') && is_section(section_of(setting.key))) return;
  if (const auto* key = find_job_key(setting.key)) {
    const auto* value = find_torchtitan_value(setting.key, setting.written);
    return value ? stand_in(*key, *value, setting, all, job, reading) : assign(*key, setting, job);
  }
  if (const auto* key = find_torchtitan_key(setting.key)) return check_torchtitan_key(*key, setting, reading);
  fail_unknown(setting);
}

/// Of torchtitan's data sets what validates on is not looked at where nothing does.
bool is_unread(const Setting& setting, const Settings& all) {
  if (setting.key != "validation.dataset" || !find_torchtitan_value(setting.key, setting.written)) return false;
  return std::ranges::none_of(
      all, [](const Setting& each) { return each.key == "validation.enable" && each.written == "true"; });
}

/// Without those that a later setting of the same key replaces.
std::vector<Setting> last_of_each(const std::vector<Setting>& settings) {
  std::map<std::string_view, const Setting*> last;
  for (const auto& setting : settings) last[setting.key] = &setting;
  std::vector<Setting> kept;
  for (const auto& setting : settings)
    if (last.at(setting.key) == &setting) kept.push_back(setting);
  return kept;
}

/// Later settings win.
Job job_of(const std::vector<Setting>& settings, const std::string& name, JobReading& reading) {
  constexpr size_t kMostLines = 20;  // another kind of file has thousands
  Job job;
  std::vector<std::string> problems;
  const auto last = last_of_each(settings);
  for (const auto& setting : last) try {
      if (is_unread(setting, last)) continue;
      if (problems.size() <= kMostLines) apply(setting, last, job, reading);
    } catch (const BadInput& error) {
      problems.push_back(without_control_characters(error.what()));
    }
  if (problems.size() > kMostLines) problems.back() = fmt::format("{}: there is more; is this a job?", name);
  if (!problems.empty()) throw RefusedJob(problems);
  for (const auto* meant : meant_defaults(last, job))
    reading.unhonoured.push_back({name, std::string(meant->key),
                                  fmt::format("{}, torchtitan's default", meant->their_default),
                                  std::string(meant->what)});
  return job;
}

/// A plug-in's dataset need not be in files.
bool is_read(std::string_view dataset) {
  return std::any_of(std::begin(kDatasetNames), std::end(kDatasetNames),
                     [&](const Choice& own) { return own.name == dataset; });
}

}  // namespace

RefusedJob::RefusedJob(const std::vector<std::string>& lines)
    : BadInput(fmt::format("{}", fmt::join(lines, "\n"))), lines_(lines) {}

Job parse_job(std::string_view text, const std::string& name, std::span<const Setting> overrides, JobReading& reading) {
  auto settings = parse_toml(text, name);
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  return job_of(settings, name, reading);
}

Job parse_job(std::string_view text, const std::string& name, std::span<const Setting> overrides) {
  JobReading reading;
  return parse_job(text, name, overrides, reading);
}

Job parse_saved_job(std::string_view text, const std::string& name, std::span<const Setting> overrides) {
  std::vector<Setting> settings{{"optimizer.decay_1d", false, "false", name}};
  const auto saved = parse_toml(text, name);
  settings.insert(settings.end(), saved.begin(), saved.end());
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  JobReading reading;
  return job_of(settings, name, reading);
}

Job load_job(const std::string& path, std::span<const Setting> overrides) {
  JobReading reading;
  return load_job(path, overrides, reading);
}

Job load_job(const std::string& path, std::span<const Setting> overrides, JobReading& reading) {
  constexpr int64_t kMostBytes = 1 << 20;
  std::string text;
  try {
    text = RandomAccessFile(path).text(kMostBytes);
  } catch (const FileError& error) {
    fail<BadInput>("{} A job file (TOML) was expected.", error.what());
  }
  return parse_job(text, path, overrides, reading);
}

std::string to_toml(const Job& job) {
  std::string text;
  std::string_view section;
  for (const auto& key : job_keys()) {
    if (key.section != section) text += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", key.section);
    section = key.section;
    if (const auto value = key.text(job); !value.empty()) text += fmt::format("{} = {}\n", key.name, value);
  }
  return text;
}

void require_dataset_path(const Job& job) {
  if (is_read(job.training.dataset) && job.training.dataset_path.empty())
    fail<BadInput>("training.dataset_path is not set; it names the data to train on.");
  if (job.validation.enable && is_read(job.validation.dataset) && job.validation.dataset_path.empty())
    fail<BadInput>("validation.dataset_path is not set; it names the data to validate on.");
}

}  // namespace lockstep::trainer
