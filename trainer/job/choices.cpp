#include "trainer/job/choices.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/suggest.h"

namespace lockstep::trainer {

bool holds(Choices choices, std::string_view name) {
  return std::any_of(choices.begin(), choices.end(), [&](const Choice& choice) { return choice.name == name; });
}

std::string names_text(Choices choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 < choices.size() ? ", " : " or ", choices[i].name);
  return text;
}

std::string did_you_mean(std::string_view name, Choices choices) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.emplace_back(choice.name);
  const auto close = nearest(name, names);
  return close ? fmt::format(" Did you mean {}?", *close) : "";
}

void fail_unknown_choice(std::string_view key, std::string_view name, Choices choices) {
  fail<BadInput>("{} is \"{}\", must be {}.{}", key, name, names_text(choices), did_you_mean(name, choices));
}

}  // namespace lockstep::trainer
