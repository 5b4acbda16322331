#include "tools/lockstep/overrides.h"

#include "core/error.h"
#include "trainer/job/job_keys.h"

namespace lockstep::tool {
namespace {

bool is_override(std::string_view argument) {
  const auto name = argument.substr(0, argument.find('='));
  return name.starts_with("--") && name.find('.') != name.npos && name.find('/') == name.npos;
}

/// Whether `next` is this key's value. A flag may stand bare, so it only takes true or false.
bool takes_value(const std::string& key, const std::string* next) {
  const auto* row = trainer::find_job_key(key);
  const bool bare = row && row->accepts_bare_flag();
  if (bare) return next && (*next == "true" || *next == "false");
  if (!next) fail<BadInput>("command line: --{} needs a value.", key);
  return true;
}

}  // namespace

SplitArguments split(int count, const char* const* arguments) {
  SplitArguments result;
  const std::vector<std::string> all(arguments + 1, arguments + count);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!is_override(all[i])) {
      result.rest.push_back(all[i]);
      continue;
    }
    const auto equals = all[i].find('=');
    const auto key = all[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    if (equals != std::string::npos)
      result.overrides.push_back(trainer::command_line_setting(key, all[i].substr(equals + 1)));
    else if (takes_value(key, i + 1 < all.size() ? &all[i + 1] : nullptr))
      result.overrides.push_back(trainer::command_line_setting(key, all[++i]));
    else
      result.overrides.push_back(trainer::command_line_setting(key, "true"));
  }
  return result;
}

}  // namespace lockstep::tool
