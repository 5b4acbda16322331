#include "trainer/optim/parameter_settings.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/suggest.h"
#include "trainer/job/optimizer_settings.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kGroups = "optimizer.groups";

[[noreturn]] void fail_unused(const ParameterGroup& group, const std::vector<models::Parameter*>& parameters) {
  std::vector<std::string> names;
  for (const auto* parameter : parameters) {
    if (holds(kGroups, group.pattern, *parameter))
      fail<BadInput>("optimizer.groups: all that \"{}\" fits belongs to groups before it; the first that fits counts.",
                     group.pattern);
    names.push_back(name_of(*parameter));
  }
  fail<BadInput>("{}: \"{}\" fits no parameter.{}", kGroups, group.pattern, nearest_names(group.pattern, names));
}

/// Settings of what no step changes would not be heeded.
void require_heeded(const ParameterGroup& group, const std::vector<models::Parameter*>& parameters) {
  if (group.frozen) return;
  for (const auto* parameter : parameters)
    if (holds(kGroups, group.pattern, *parameter) && parameter->trainable()) return;
  fail<BadInput>(
      "{}: all that \"{}\" fits is frozen: [lora] trains changes alone. Choose a pattern that fits them, such "
      "as \"*.lora_b\".",
      kGroups, group.pattern);
}

std::set<const models::Parameter*> matrices_of_layers(models::Model& model) {
  std::set<const models::Parameter*> matrices;
  const auto blocks = model.blocks();
  for (size_t block = 1; block + 1 < blocks.size(); ++block)
    for (const auto* parameter : blocks[block]->parameters())
      if (parameter->sizes().size() == 2) matrices.insert(parameter);
  return matrices;
}

bool is_muons(const ParameterGroup* group, const models::Parameter& parameter, bool by_rule) {
  if (!group || !group->muon) return by_rule;
  if (*group->muon && parameter.sizes().size() != 2)
    fail<BadInput>("optimizer.groups: \"{}\" has muon = true and fits {}, which is no matrix: it has {} dimension{}.",
                   group->pattern, name_of(parameter), parameter.sizes().size(),
                   parameter.sizes().size() == 1 ? "" : "s");
  return *group->muon;
}

}  // namespace

const std::string& name_of(const models::Parameter& parameter) {
  const auto& parts = parameter.division().parts();
  return parts.size() == 1 ? parts[0].name : parameter.name();
}

std::string nearest_names(const std::string& pattern, const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  const auto near = nearest(pattern, names);
  const auto shown = std::min(kShown, names.size());
  return fmt::format("{} The model's {} are {}{}.", near ? fmt::format(" Did you mean {}?", *near) : "", names.size(),
                     fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", "),
                     shown < names.size() ? ", ..." : "");
}

bool holds(std::string_view key, const std::string& pattern, const models::Parameter& parameter) {
  if (fits(pattern, parameter.name())) return true;
  std::vector<std::string> inside, outside;
  for (const auto& part : parameter.division().parts())
    (fits(pattern, part.name) ? inside : outside).push_back(part.name);
  if (!inside.empty() && !outside.empty())
    fail<BadInput>(
        "{}: \"{}\" fits {}, which is computed as one parameter with {}, {}. Choose a pattern that fits "
        "all of them.",
        key, pattern, fmt::join(inside, ", "), fmt::join(outside, ", "), name_of(parameter));
  return outside.empty();
}

std::vector<ParameterSettings> apply_groups(const OptimizerSection& optimizer, models::Model& model) {
  const auto parameters = model.parameters();
  const auto matrices = optimizer.name == "Muon" ? matrices_of_layers(model) : std::set<const models::Parameter*>{};
  if (std::any_of(parameters.begin(), parameters.end(), [](const auto* each) { return each->is_adapter(); }))
    for (const auto& group : optimizer.groups) require_heeded(group, parameters);
  std::set<const ParameterGroup*> used;
  std::vector<ParameterSettings> all;
  for (auto* parameter : parameters) {
    const auto found = std::find_if(optimizer.groups.begin(), optimizer.groups.end(),
                                    [&](const auto& group) { return holds(kGroups, group.pattern, *parameter); });
    const auto* group = found == optimizer.groups.end() ? nullptr : &*found;
    auto& settings = all.emplace_back();
    settings.muon = is_muons(group, *parameter, matrices.contains(parameter));
    if (!group) continue;
    used.insert(group);
    settings.lr_factor = group->lr_factor.value_or(1);
    settings.weight_decay = group->weight_decay;
    if (group->frozen) parameter->freeze();
  }
  for (const auto& group : optimizer.groups)
    if (!used.contains(&group)) fail_unused(group, parameters);
  if (!optimizer.groups.empty() &&
      std::none_of(parameters.begin(), parameters.end(), [](const auto* each) { return each->trainable(); }))
    fail<BadInput>("optimizer.groups: every parameter is frozen; nothing is left to train.");
  return all;
}

}  // namespace lockstep::trainer
