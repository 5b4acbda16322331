#pragma once
#include <exception>
#include <string>
#include <string_view>

namespace lockstep {

/// What Gloo says, without the file that it says it from, in one line.
inline std::string plain_reason(const std::exception& error) {
  std::string_view text = error.what();
  if (const auto file = text.find(".cc:"); text.starts_with('[') && file != text.npos)
    if (const auto end = text.find("] ", file); end != text.npos) text.remove_prefix(end + 2);
  text = text.substr(0, text.find('\n'));
  return std::string(text);
}

}  // namespace lockstep
