#include "trainer/names/choices.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/error.h"
#include "core/suggest.h"

namespace lockstep::trainer {

namespace {

/// By where the list is: each is one array of the whole program.
std::map<const Choice*, std::vector<Choice>>& added_choices() {
  static std::map<const Choice*, std::vector<Choice>> all;
  return all;
}

std::vector<Choice> with_added(Choices choices) {
  std::vector<Choice> all(choices.begin(), choices.end());
  const auto& added = offered_besides(choices);
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

}  // namespace

void offer(Choices choices, Choice added) { added_choices()[choices.data()].push_back(added); }

const std::vector<Choice>& offered_besides(Choices choices) {
  static const std::vector<Choice> none;
  const auto found = added_choices().find(choices.data());
  return found == added_choices().end() ? none : found->second;
}

bool holds(Choices choices, std::string_view name) {
  const auto has = [&](const Choice& choice) { return choice.name == name; };
  const auto& added = offered_besides(choices);
  return std::any_of(choices.begin(), choices.end(), has) || std::any_of(added.begin(), added.end(), has);
}

std::string names_text(Choices choices) {
  const auto all = with_added(choices);
  std::string text;
  for (size_t i = 0; i < all.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 < all.size() ? ", " : " or ", all[i].name);
  return text;
}

std::string did_you_mean(std::string_view name, Choices choices) {
  std::vector<std::string> names;
  for (const auto& choice : with_added(choices)) names.emplace_back(choice.name);
  const auto close = nearest(name, names);
  return close ? fmt::format(" Did you mean {}?", *close) : "";
}

void fail_unknown_choice(std::string_view key, std::string_view name, Choices choices) {
  fail<BadInput>("{} is \"{}\", must be {}.{}", key, name, names_text(choices), did_you_mean(name, choices));
}

}  // namespace lockstep::trainer
