#include "replay/view/page_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "replay/view/html.h"

namespace lockstep::replay {

const char* const kPartsStyle = R"(
.rows{width:100%}.rows td,.rows th{white-space:nowrap}.rows td:first-child{white-space:normal;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:10px 0}dt{color:var(--quiet)}
dd{margin:0;overflow-wrap:anywhere}
pre{font:13px/1.45 ui-monospace,monospace}
pre{margin:4px 0;padding:8px 10px;border:1px solid var(--line);border-radius:6px;background:var(--paper);
white-space:pre-wrap;overflow-wrap:anywhere}
svg.bars{width:100%;min-width:90px;height:18px;margin:2px 0}.bar1{fill:var(--one)}.bar2{fill:var(--two)}
.empty{fill:var(--line)}
@media(max-width:700px){dl{grid-template-columns:1fr;gap:0 0}dd{margin-bottom:8px}
.rows,.rows tbody,.rows tr,.rows td{display:block;width:auto}.rows tr.head{display:none}
.rows tr{border:1px solid var(--line);border-radius:8px;padding:6px 10px;margin:8px 0}
.rows td{display:flex;justify-content:space-between;gap:16px;border:0;padding:1px 0;white-space:normal}
.rows td::before{content:attr(data-column);color:var(--quiet);text-align:left}
.rows td:first-child{font-weight:600}.rows td:first-child::before{content:none}.rows svg.bars{flex:1}}
)";

namespace {

constexpr double kMiddle = 5.5;

/// What is there at all is seen.
std::string bar_at(std::string_view style, double y, double length) {
  if (length <= 0) return {};
  return fmt::format("<rect class=\"{}\" x=\"0\" y=\"{}\" width=\"{:.1f}\" height=\"7\"/>", style, y,
                     std::clamp(length, 0.004, 1.0) * 100);
}

std::string framed(const std::string& bars) {
  return "<svg class=\"bars\" viewBox=\"0 0 100 18\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect "
         "class=\"empty\" x=\"0\" y=\"0\" width=\"0.3\" height=\"18\"/>" +
         bars + "</svg>";
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < std::size(kUnits)) bytes /= 1000, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

std::string count_text(int64_t count) { return fmt::format("{}", fmt::group_digits(count)); }

std::string cell(std::string_view column, std::string_view html) {
  return fmt::format("<td data-column=\"{}\">{}</td>", escaped(column), html);
}

std::string fact(std::string_view name, std::string_view text) {
  if (text.empty()) return {};
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(text));
}

std::string command_block(std::string_view command) { return fmt::format("<pre>{}</pre>\n", escaped(command)); }

std::string bars(double first, double second) {
  return framed(bar_at("bar1", second < 0 ? kMiddle : 1, first) + bar_at("bar2", 10, second));
}

std::string bar(std::string_view style, double length) { return framed(bar_at(style, kMiddle, length)); }

std::string table(std::initializer_list<std::string_view> columns, const std::string& rows) {
  std::string html = "<table class=\"rows\"><tbody>\n<tr class=\"head\">";
  for (const auto column : columns) html += fmt::format("<th>{}</th>", escaped(column));
  return html + "</tr>\n" + rows + "</tbody></table>\n";
}

}  // namespace lockstep::replay
