#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Raw key-value pairs of a job, before the table of keys gives them a meaning.
namespace lockstep::trainer {

/// A list of other things than strings, a date or a table where a value belongs: no supported key takes one.
struct OtherValue {};

struct Setting {
  std::string key;  ///< dotted; a key at the top level of the file has no dot
  std::variant<bool, int64_t, double, std::string, std::vector<std::string>, OtherValue> value;
  std::string written;  ///< the value for messages: strings without quotes, lists as TOML
  std::string where;    ///< "jobs/demo.toml:14" or "command line"
  bool typed =
      true;  ///< false: `value` is the text of a command-line argument, and the key's type decides how to read it
};

/// The key-value pairs of a TOML text in file order, tables flattened to dotted keys. An empty section gives nothing.
/// Throws BadInput "name:line: ..." for text that is not TOML and for a section that job_sections() and torchtitan
/// lack.
std::vector<Setting> parse_toml(std::string_view text, const std::string& name);

/// The key-value pairs of each table of `value`, a TOML list of tables: what `written` of such a setting is. All come
/// from `place`. None if it is something else.
std::optional<std::vector<std::vector<Setting>>> parse_tables(std::string_view value, const std::string& place);

/// The strings of each list of `value`, a TOML list of lists. None if it is something else.
std::optional<std::vector<std::vector<std::string>>> parse_lists(std::string_view value);

/// For messages, of which a line stays one whatever a quoted key or a value holds: "a\\x0ab".
std::string without_control_characters(std::string_view line);

/// One `--section.key=value` or `--section.key value` pair from the command line.
Setting command_line_setting(std::string key, std::string value);

/// A double as TOML text: the shortest digits that read back to the same bits, always with a point or an exponent.
std::string toml_number(double value);

/// A string as a TOML basic string, quotes included.
std::string toml_string(std::string_view value);

}  // namespace lockstep::trainer
