#pragma once
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "trainer/names/choices.h"

namespace lockstep::trainer {

/// What the names of a job key stand for, mostly functions that build it.
template <class T>
class Registry {
 public:
  struct Entry {
    std::string_view name;
    T value;
  };

  /// REQUIRES: one entry for each of the names that `key` accepts, and none besides: what a job may say is what can be
  /// built. Names and choices are borrowed.
  Registry(std::string_view key, Choices choices, std::initializer_list<Entry> entries)
      : key_(key), choices_(choices), entries_(entries) {
    for (const auto& choice : choices_) LOCKSTEP_CHECK(find(choice.name), "{} \"{}\" is not built", key_, choice.name);
    for (const auto& entry : entries_)
      LOCKSTEP_CHECK(find(entry.name) == &entry && holds(choices_, entry.name), "{} \"{}\" is not offered, or twice",
                     key_, entry.name);
  }

  /// Adds what a plug-in brings. BadInput for a name that is there. REQUIRES: texts that stay, and that nothing runs
  /// beside it.
  void add(Choice name, T value) {
    if (holds(choices_, name.name)) fail<BadInput>("{} \"{}\" is offered already.", key_, name.name);
    entries_.push_back({name.name, std::move(value)});
    offer(choices_, name);
  }

  /// Throws BadInput with the nearest name and all there are.
  const T& at(std::string_view name) const {
    const auto* entry = find(name);
    if (!entry && holds(choices_, name))
      fail<BadInput>("{} \"{}\" is a plug-in's, which this is not offered for.", key_, name);
    if (!entry) fail_unknown_choice(key_, name, choices_);
    return entry->value;
  }

 private:
  const Entry* find(std::string_view name) const {
    for (const auto& entry : entries_)
      if (entry.name == name) return &entry;
    return nullptr;
  }

  std::string_view key_;
  Choices choices_;
  std::vector<Entry> entries_;
};

}  // namespace lockstep::trainer
