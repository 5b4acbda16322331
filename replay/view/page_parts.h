#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

/// What pages have in common beside their frame (html.h): numbers as texts, facts, tables, bars.
namespace lockstep::replay {

/// "912 B", "0.53 MB".
std::string bytes_text(double bytes);
/// "1,865,456".
std::string count_text(int64_t count);

/// A cell with the name of its column, which narrow screens show beside it. `html` is not escaped.
std::string cell(std::string_view column, std::string_view html);

/// A row of <dl>; nothing if there is no text. Escapes it.
std::string fact(std::string_view name, std::string_view text);

/// A command to copy.
std::string command_block(std::string_view command);

/// Two bars below each other, as wide as their place, of lengths from 0 to 1. `second`: negative for a single bar.
std::string bars(double first, double second);

/// A single bar of that class, of a length from 0 to 1.
std::string bar(std::string_view style, double length);

/// A table that turns into blocks on narrow screens, from its rows and columns' names.
std::string table(std::initializer_list<std::string_view> columns, const std::string& rows);

/// The CSS of what these give.
extern const char* const kPartsStyle;

}  // namespace lockstep::replay
