#include "tools/lockstep/reports/verify/loss_table.h"

#include <fmt/format.h>

namespace lockstep::tool {
namespace {

constexpr int kDigits = 9;

/// A step that was not reached, since an earlier one differs, has no loss.
std::string cell(const MeshVerdict& verdict, int64_t step, double MeshVerdict::Losses::*loss) {
  const auto found = verdict.losses.find(step);
  return fmt::format("{:>15}",
                     found == verdict.losses.end() ? "-" : fmt::format("{:.{}g}", found->second.*loss, kDigits));
}

std::string row(const MeshVerdict& verdict, std::span<const int64_t> steps, const std::string& name,
                double MeshVerdict::Losses::*loss, const std::string& bits) {
  auto text = fmt::format("{:<34}", name);
  for (const auto step : steps) text += cell(verdict, step, loss);
  return text + fmt::format("{:>16}\n", bits);
}

}  // namespace

std::string loss_table(std::span<const MeshVerdict> verdicts, std::span<const int64_t> steps) {
  if (steps.empty() || verdicts.empty()) return "";
  auto text = fmt::format("\n{:<34}", "loss at step");
  for (const auto step : steps) text += fmt::format("{:>15}", step);
  text += fmt::format("{:>16}\n", "differing bits");
  text += row(verdicts[0], steps, "one device", &MeshVerdict::Losses::one_device, "");
  for (const auto& verdict : verdicts)
    text += row(verdict, steps, verdict.mesh, &MeshVerdict::Losses::mesh, fmt::format("{}", verdict.differing_bits));
  return text;
}

}  // namespace lockstep::tool
