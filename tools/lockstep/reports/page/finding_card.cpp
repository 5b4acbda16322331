#include "tools/lockstep/reports/page/finding_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "replay/view/html.h"
#include "replay/view/page_parts.h"
#include "tools/lockstep/reports/page/differences.h"
#include "tools/lockstep/reports/page/divergence_plot.h"

namespace lockstep::tool {
namespace {

using replay::bars;
using replay::cell;
using replay::command_block;
using replay::count_text;
using replay::escaped;
using replay::fact;
using replay::table;

constexpr size_t kMostModules = 40;

/// What Blame::kind means to someone who has not met it.
struct Kind {
  std::string_view name, meaning;
};
constexpr Kind kKinds[] = {
    {"op",
     "The op took what it takes on one device, and gave something else. Its rule, its kernel or its communication is "
     "at fault."},
    {"collective",
     "Ranks sent each other parts of a tensor to lay it out anew, and it came out changed. The collective is at fault, "
     "or who wrote to its memory meanwhile."},
    {"local move",
     "A tensor was laid out anew without any communication, and came out changed. The cutting or copying is at "
     "fault."},
    {"operand",
     "The op was given something else than the ops before it gave. A view, an input, or a buffer that was written to "
     "in between is at fault."},
    {"number",
     "A number is another than on one device, one that the op was given or one that is computed between ops. Whoever "
     "computes that number is at fault."},
    {"joined",
     "Gradients of microbatches were added up outside of ops, and the sum is another than on one device. Who joins "
     "them "
     "is at fault."},
    {"start",
     "The difference was there before the step began. Initial values, what was loaded, or a write between two steps "
     "are at fault."},
    {"data", "The step was given another batch than the job's data has for it. Who reads the data is at fault."},
    {"step",
     "What was compared while the step ran agrees with one device's, and still what the step leaves does not. What "
     "happens outside of ops is at fault, or what was not compared."},
};

std::string_view meaning_of(const std::string& kind) {
  const auto found = std::ranges::find(kKinds, std::string_view(kind), &Kind::name);
  return found == std::end(kKinds) ? std::string_view() : found->meaning;
}

std::string move_text(const PageFinding& finding) {
  if (finding.collective.empty()) return {};
  auto text = fmt::format("{} on axis {}", finding.collective, finding.axis);
  if (!finding.group.empty()) text += fmt::format(", among {}", finding.group);
  return text;
}

/// Of an op.
std::string axis_text(const PageFinding& finding) {
  if (finding.axis.empty() || !finding.collective.empty()) return {};
  return finding.group.empty() ? finding.axis : fmt::format("{}, among {}", finding.axis, finding.group);
}

std::string_view again_text(const PageFinding& finding) {
  if (finding.kind.empty() || finding.kind == "start" || finding.kind == "data") return {};
  return finding.transient ? "Gone: run again from the same start, the step agreed. Memory, hardware or a race."
                           : "There again: the step was run a second time from the same start.";
}

std::string facts(const PageFinding& finding) {
  return "<dl>\n" + fact("To blame", meaning_of(finding.kind)) + fact("Where", finding.id) +
         fact("Moved by", move_text(finding)) + fact("Rule", finding.rule) + fact("Along axis", axis_text(finding)) +
         fact("Layouts", finding.layouts) + fact("Wrong on", finding.ranks) + fact("Damage", finding.pattern) +
         fact("Worst value", finding.worst) + fact("Before it", finding.before) + fact("Cannot tell", finding.limits) +
         fact("A second time", again_text(finding)) + "</dl>\n";
}

/// Of what differs at all something is seen.
double bar_of(double difference) {
  return difference > 0 || std::isnan(difference) ? std::max(height_of(difference), 0.01) : 0;
}

std::string module_row(const PageModule& module, bool is_blamed) {
  auto row = fmt::format("<tr{}>", is_blamed ? " class=\"blamed\"" : "");
  row += cell("module", escaped(module.name) + (is_blamed ? " (to blame)" : ""));
  row += cell("", bars(bar_of(module.gradient), bar_of(module.parameter)));
  row += cell("loss, gradients", relative_text(module.gradient)) + cell("parameters", relative_text(module.parameter));
  return row + cell("wrong elements", fmt::format("{} of {}", count_text(module.wrong), count_text(module.elements))) +
         "</tr>\n";
}

std::string modules_table(const PageFinding& finding) {
  if (finding.modules.empty()) return {};
  std::string rows;
  const size_t shown = std::min(finding.modules.size(), kMostModules);
  for (size_t i = 0; i < shown; ++i)
    rows += module_row(finding.modules[i], finding.modules[i].name == finding.module && !finding.module.empty());
  auto html = fmt::format(
      "<h4>What differs after the step, by module</h4>\n"
      "<p class=\"legend\"><span><i class=\"key bar1\"></i>loss and gradients</span>"
      "<span><i class=\"key bar2\"></i>parameters and optimizer state</span></p>\n{}",
      table({"module", "1e-16 to 1e4, logarithmic", "loss, gradients", "parameters", "wrong elements"}, rows));
  if (shown < finding.modules.size())
    html += fmt::format("<p>{} more modules differ.</p>\n", finding.modules.size() - shown);
  return html;
}

std::string next_step(const PageFinding& finding) {
  return finding.next.empty() ? "" : "<h4>Next</h4>\n" + command_block(finding.next);
}

std::string report(const PageFinding& finding) {
  if (finding.report.empty()) return {};
  return "<details><summary>As the terminal says it</summary>\n" + command_block(finding.report) + "</details>\n";
}

}  // namespace

std::string blamed_text(const PageFinding& finding) {
  if (finding.kind == "start") return "the start of the step";
  if (finding.kind == "data") return "the step's batch";
  if (!finding.collective.empty()) return fmt::format("{} on {}", finding.collective, finding.axis);
  if (!finding.op.empty()) return finding.op;
  return finding.kind.empty() ? "copies that have drifted apart" : "the step as a whole";
}

std::string finding_card(const PageFinding& finding, const std::string& mesh, size_t number) {
  return fmt::format(
      "<section class=\"card bad\" id=\"finding-{}\">\n<h3>{}. {}, step {}: {}</h3>\n<p class=\"what\">{}</p>\n{}{}{}{}"
      "</section>\n",
      number, number, escaped(mesh), finding.step, escaped(blamed_text(finding)), escaped(finding.difference),
      facts(finding), next_step(finding), modules_table(finding), report(finding));
}

}  // namespace lockstep::tool
