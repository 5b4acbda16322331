#pragma once
#include <string>
#include <string_view>

/// What pages are made of. They are well-formed XML, too, need no other file, and are light or dark as their reader
/// has chosen.
namespace lockstep::replay {

/// Anybody's text, for between tags and within quotes. What is no UTF-8 and no character of XML becomes U+FFFD.
std::string escaped(std::string_view text);

/// From the doctype to <body>. `style`: CSS beside what all pages share: colours by name (--ink, --quiet, --line,
/// --paper, --card, --good, --bad, --one to --seven), tables whose first column is left-aligned, .key.
std::string page_begin(std::string_view title, std::string_view style);

inline constexpr std::string_view kPageEnd = "</body></html>\n";

}  // namespace lockstep::replay
