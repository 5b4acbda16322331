#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::testing {

/// Reads a page as XML, and as browsers would: they close a <p> where a block begins, and know only some elements that
/// have no end. fault() says what is wrong first, and what stands there; empty: nothing.
class WellFormed {
 public:
  explicit WellFormed(std::string_view page) : page_(page), rest_(page) {
    if (!skip("<!DOCTYPE html>\n")) fail("no doctype");
    while (!rest_.empty() && fault_.empty()) rest_[0] == '<' ? tag() : text(rest_.substr(0, rest_.find('<')));
    if (fault_.empty() && !open_.empty()) fail("the end, but " + open_.back() + " is open");
    if (fault_.empty() && roots_ != 1) fail("no single root");
  }

  const std::string& fault() const { return fault_; }

 private:
  static bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = what + " at: " + std::string(page_.substr(page_.size() - rest_.size(), 80));
  }

  bool skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }

  std::string name() {
    size_t length = 0;
    const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; };
    while (length < rest_.size() && fits(rest_[length])) ++length;
    std::string found(rest_.substr(0, length));
    rest_.remove_prefix(length);
    if (found.empty()) fail("no name");
    return found;
  }

  /// Between tags or quotes.
  void text(std::string_view part) {
    for (size_t i = 0; i < part.size(); ++i) {
      const auto byte = static_cast<unsigned char>(part[i]);
      if (byte < 0x20 && byte != '\n' && byte != '\t') fail("a control character");
      if (part[i] == '&' && !is_entity(part.substr(i, part.find(';', i) - i))) fail("an & that begins no entity");
    }
    if (open_.empty() && part.find_first_not_of('\n') != part.npos) fail("text outside of the root");
    rest_.remove_prefix(part.size());
  }

  static bool is_entity(std::string_view text) {
    if (!text.starts_with("&#")) return is_one_of(text, {"&lt", "&gt", "&amp", "&quot"});
    return text.size() > 2 && text.find_first_not_of("0123456789", 2) == text.npos;
  }

  void tag() {
    skip("<");
    if (skip("/")) return end_tag();
    const auto element = name();
    if (open_.empty()) ++roots_;
    if (is_one_of("p", {open_.empty() ? "" : open_.back()}) &&
        is_one_of(element, {"p", "dl", "ul", "pre", "table", "section", "details", "h2", "h3", "h4", "div"}))
      fail("a block in a paragraph");
    open_.push_back(element);
    std::set<std::string> attributes;
    while (skip(" ")) attribute(attributes);
    const bool has_ended = skip("/"), never_has_end = is_one_of(element, {"meta", "br"});
    if (never_has_end && !has_ended) fail("no end of " + element);
    if (has_ended && !never_has_end && !is_one_of(element, {"path", "rect", "circle"})) fail("/ in " + element);
    if (!skip(">")) fail("no > of " + element);
    if (has_ended) open_.pop_back();
  }

  void attribute(std::set<std::string>& others) {
    const auto key = name();
    if (!others.insert(key).second) fail("a second " + key);
    if (!skip("=\"")) return fail("no value of " + key);
    const auto value = rest_.substr(0, rest_.find('"'));
    if (value.find('<') != value.npos) fail("< in a value");
    if (key == "id" && !ids_.insert(std::string(value)).second) fail("a second id");
    text(value);
    if (!skip("\"")) fail("no quote");
  }

  void end_tag() {
    const auto element = name();
    if (open_.empty() || open_.back() != element) return fail("an end of " + element + " that is not open");
    open_.pop_back();
    if (!skip(">")) fail("no > of the end of " + element);
  }

  std::string_view page_, rest_;
  std::vector<std::string> open_;
  std::set<std::string> ids_;
  int roots_ = 0;
  std::string fault_;
};

/// For EXPECT_EQ(fault_of(page), "").
inline std::string fault_of(std::string_view page) { return WellFormed(page).fault(); }

/// The page, which is checked for what holds of all: well-formed, without scripts, and nothing of it is elsewhere.
inline std::string checked_page(std::string page) {
  using ::testing::HasSubstr, ::testing::Not;
  EXPECT_EQ(fault_of(page), "");
  EXPECT_THAT(page, ::testing::AllOf(Not(HasSubstr("<script")), Not(HasSubstr("http")), Not(HasSubstr("src="))));
  return page;
}

/// How often the part stands in the text, overlaps included.
inline size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace lockstep::testing
