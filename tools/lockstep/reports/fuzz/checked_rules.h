#pragma once
#include <map>
#include <string>

#include "fuzz/search/search.h"

/// How often each rule was compared with one device, by the last soak that found nothing (lockstep fuzz ops --record).
namespace lockstep::tool {

/// Of the sources of rules, planning and own ops that this program was built from.
std::string rules_digest();

struct CheckedRules {
  std::string rules;                     ///< rules_digest() of the program that checked
  std::string when;                      ///< "2026-11-25"
  std::map<std::string, int64_t> cases;  ///< comparisons, and calls refused as they should be, of each row

  /// Whether these very rules were checked.
  bool is_of_this_code() const { return rules == rules_digest(); }
  /// Of a row; 0 where other rules were checked.
  int64_t count(const std::string& op) const;
  /// Behind the table: when, or since when not.
  std::string text() const;
};

/// From the file that record_checked() wrote; nothing was checked where there is none. FileError for a damaged one.
CheckedRules read_checked(const std::string& path);

/// REQUIRES: a search without failures.
void record_checked(const std::string& path, const fuzz::SearchResult& result);

}  // namespace lockstep::tool
