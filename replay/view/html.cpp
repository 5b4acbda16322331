#include "replay/view/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace lockstep::replay {
namespace {

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2126;--quiet:#57606a;--line:#d5dae0;--card:#f5f7f9;
--good:#17713a;--bad:#b3261e;--one:#0b66b0;--two:#c2500a;--three:#0a7d5a;--four:#9a3f8f;--five:#8a6d00;--six:#1d7f8c;
--seven:#777}
@media(prefers-color-scheme:dark){:root{--paper:#13171b;--ink:#e4e8ec;--quiet:#9aa4ae;--line:#343b43;--card:#1b2127;
--good:#57c27f;--bad:#ff8a80;--one:#6cb6ff;--two:#f0965a;--three:#4fc79b;--four:#dd8fd2;--five:#d8b93c;--six:#5cc5d3;
--seven:#999}}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;padding:20px;max-width:1300px;background:var(--paper);
color:var(--ink)}
table{border-collapse:collapse;margin:12px 0}
td,th{padding:3px 12px;text-align:right;border-bottom:1px solid var(--line);font-variant-numeric:tabular-nums}
td:first-child,th:first-child{text-align:left}th{font-weight:600;color:var(--quiet)}
svg{display:block;margin:4px 0}svg text{fill:currentColor}
.key{display:inline-block;width:12px;height:12px;margin:0 4px 0 14px}
)";

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

constexpr bool is_character(uint32_t code) {
  if (code < 0x20) return code == '\t' || code == '\n';
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) && code != 0xfffe && code != 0xffff;
}

/// How many bytes of the non-empty text are its first character, in the shortest form; 0 if they are none.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return is_character(byte(0)) ? 1 : 0;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  uint32_t code = byte(0) & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0x80, 0x800, 0x10000};
  return code >= kLeast[length - 2] && is_character(code) ? length : 0;
}

/// What stands for a character that means something to HTML, or is none at all; empty: itself.
std::string_view entity(std::string_view character) {
  if (character.empty()) return kReplacement;
  switch (character[0]) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '&':
      return "&amp;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto character = text.substr(0, character_length(text));
    const auto instead = entity(character);
    out += instead.empty() ? character : instead;
    text.remove_prefix(std::max<size_t>(character.size(), 1));
  }
  return out;
}

std::string page_begin(std::string_view title, std::string_view style) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{}</title>\n<style>{}{}</style></head>\n<body>\n",
      escaped(title), kStyle, style);
}

}  // namespace lockstep::replay
