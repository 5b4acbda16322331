#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Names of which a job chooses one.
namespace lockstep::trainer {

struct Choice {
  std::string_view name;        ///< as the job has it: "llama3"
  std::string_view about = {};  ///< what it stands for, where the name does not say it
};
using Choices = std::span<const Choice>;

/// Adds a name to those of a list, for the rest of the process: a plug-in's. REQUIRES: texts that stay, and that
/// nothing runs beside it.
void offer(Choices choices, Choice added);

/// What was offered besides.
const std::vector<Choice>& offered_besides(Choices choices);

bool holds(Choices choices, std::string_view name);

/// "linear, sqrt or cosine"
std::string names_text(Choices choices);

/// " Did you mean llama3?", with the space; empty where no name is close.
std::string did_you_mean(std::string_view name, Choices choices);

/// Throws BadInput: model.name is "lama3", must be gpt2, llama3, mlp or moe. Did you mean llama3?
[[noreturn]] void fail_unknown_choice(std::string_view key, std::string_view name, Choices choices);

}  // namespace lockstep::trainer
