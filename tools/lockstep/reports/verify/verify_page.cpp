#include "tools/lockstep/reports/verify/verify_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "replay/view/html.h"
#include "replay/view/page_parts.h"
#include "tools/lockstep/reports/page/differences.h"
#include "tools/lockstep/reports/page/divergence_plot.h"
#include "tools/lockstep/reports/page/finding_card.h"
#include "tools/lockstep/reports/page/mesh_section.h"

namespace lockstep::tool {
namespace {

using replay::command_block;
using replay::escaped;
using replay::fact;
using replay::kPartsStyle;

constexpr const char* kPageStyle = R"(
h1{font-size:1.6em;margin:0 0 4px}h2{font-size:1.2em;margin:28px 0 6px}h3{font-size:1.05em;margin:0 0 6px}
h4{font-size:1em;margin:14px 0 2px}h1,h2,h3,h4,p{overflow-wrap:anywhere}.quiet{color:var(--quiet)}
.card{background:var(--card);border:1px solid var(--line);border-left:5px solid var(--line);border-radius:8px;
padding:12px 16px;margin:14px 0}.card.good{border-left-color:var(--good)}.card.bad{border-left-color:var(--bad)}
.verdict{font-size:1.15em}.verdict p{margin:4px 0}.verdict strong{font-size:1.1em}
.good strong,td .good{color:var(--good)}.bad strong,td .bad{color:var(--bad)}.what{font-weight:600}
.blamed td:first-child{color:var(--bad)}summary{cursor:pointer;padding:3px 0}.legend{margin:4px 0}
.key.bar1{background:var(--one)}.key.bar2{background:var(--two)}a{color:var(--one)}
@media(min-width:1000px){.pair{display:grid;grid-template-columns:minmax(0,5fr) minmax(0,7fr);gap:0 32px}}
)";

constexpr std::string_view kWords = R"(<details><summary>What the words mean</summary><dl>
<dt>one device</dt><dd>The same step without any mesh: nothing is cut, nothing is sent. What a mesh has to equal.</dd>
<dt>rank</dt><dd>One of the devices that a mesh has, or a part of this process that plays it.</dd>
<dt>mesh</dt><dd>How ranks share the work: dp_shard=2,tp=3 are 2 x 3 ranks. The axis dp_replicate copies the model,
dp_shard cuts its parameters, tp its matrices, cp its sequences.</dd>
<dt>layout</dt><dd>How a tensor lies on a mesh: S(0) is cut along its dimension 0, R whole on every rank, P a part of a
sum that is still to be added up.</dd>
<dt>relative difference</dt><dd>How far a value is off, over the largest of its tensor. 0: equal numbers.</dd>
<dt>bits</dt><dd>With canonical numerics every sum has one order, so all bits have to be equal. With native numerics
both sides run in float64, where rounding is 1e-14 and a mistake keeps its size.</dd>
<dt>module</dt><dd>A part of the model, as its code names it.</dd>
</dl></details>
)";

size_t count_of_differing(const VerifyPage& page) {
  return static_cast<size_t>(std::ranges::count(page.meshes, false, &PageMesh::agrees));
}

std::string meshes_text(size_t count) { return count == 1 ? "1 mesh" : fmt::format("{} meshes", count); }

/// The verdict in a few words.
std::string headline(const VerifyPage& page) {
  const size_t compared = page.meshes.size(), differing = count_of_differing(page);
  if (compared == 0) return page.finished ? "No mesh was compared." : "No mesh has been compared yet.";
  if (differing > 0 && page.planned == 1) return page.meshes.front().mesh + " does not do what one device does.";
  if (differing > 0)
    return fmt::format("{} of {} {} not do what one device does.", differing, meshes_text(page.planned),
                       differing == 1 ? "does" : "do");
  if (!page.finished && page.planned == 1) return page.meshes.front().mesh + ": no difference so far.";
  if (!page.finished)
    return fmt::format("{} of {} compared so far, no difference.", compared, meshes_text(page.planned));
  if (compared == 1) return page.meshes.front().mesh + " does what one device does.";
  return fmt::format("All {} do what one device does.", meshes_text(compared));
}

std::string compared_text(const VerifyPage& page) {
  size_t steps = 0;
  for (const auto& mesh : page.meshes) steps = std::max(steps, mesh.steps.size());
  const auto what = steps == 0   ? std::string("Compared")
                    : steps == 1 ? std::string("1 step compared")
                                 : fmt::format("{} steps compared", steps);
  auto text = fmt::format("{} {}: loss, every gradient, the gradient norm, every parameter and the optimizer's state.",
                          what, page.compares_bits() ? "bit by bit" : "in float64");
  if (!page.compares_bits()) text += fmt::format(" {:.0e} of a tensor's largest value is allowed.", page.tolerance);
  return text;
}

std::string state_html(const VerifyPage& page) {
  if (!page.ended_by.empty())
    return "<p>It ended before it was done; what is here stays true.</p>\n" + command_block(page.ended_by);
  if (page.finished) return {};
  return "<p>Still running when this page was written. It is written again after each result.</p>\n";
}

std::string links_to_findings(const VerifyPage& page) {
  std::string html;
  size_t number = 0;
  for (const auto& mesh : page.meshes)
    for (const auto& finding : mesh.findings) {
      ++number;
      html += fmt::format("<p><a href=\"#finding-{}\">{}, step {}</a>: {} comes first of what differs.</p>\n", number,
                          escaped(mesh.mesh), finding.step, escaped(blamed_text(finding)));
    }
  return html;
}

std::string verdict(const VerifyPage& page) {
  const bool differs = count_of_differing(page) > 0, agrees = !differs && page.finished && !page.meshes.empty();
  auto html = fmt::format("<section class=\"card verdict {}\">\n<p><strong>{}{}</strong></p>\n<p>{}</p>\n",
                          differs  ? "bad"
                          : agrees ? "good"
                                   : "open",
                          differs  ? "&#10007; "
                          : agrees ? "&#10003; "
                                   : "",
                          escaped(headline(page)), escaped(compared_text(page)));
  return html + state_html(page) + links_to_findings(page) + "</section>\n";
}

std::string header(const VerifyPage& page) {
  return fmt::format("<h1>Verification of {}</h1>\n<p class=\"quiet\">{}</p>\n", escaped(page.job),
                     escaped(page.date)) +
         "<dl>\n" + fact("Model", page.model) + fact("A step", page.batch) + fact("Numerics", page.numerics) +
         fact("Machine", page.machine) + fact("Program", page.build) + fact("Command", page.command) + "</dl>\n";
}

std::string findings(const VerifyPage& page) {
  std::string html;
  size_t number = 0;
  for (const auto& mesh : page.meshes)
    for (const auto& finding : mesh.findings) html += finding_card(finding, mesh.mesh, ++number);
  return html.empty() ? "" : "<h2>What was found</h2>\n" + html;
}

/// The worst at each step of those meshes.
PlotLine worst_of(const std::vector<const PageMesh*>& meshes, std::string name) {
  std::map<int64_t, double> worst;
  for (const auto* mesh : meshes)
    for (const auto& step : mesh->steps) {
      const auto [entry, is_new] = worst.try_emplace(step.step, step.worst());
      if (is_worse(step.worst(), entry->second)) entry->second = step.worst();
    }
  return {std::move(name), {worst.begin(), worst.end()}};
}

/// A line for each mesh that differs, as long as there are lines, and one for the others of each sort.
std::vector<PlotLine> lines_of(const VerifyPage& page) {
  std::vector<const PageMesh*> agreeing, differing;
  for (const auto& mesh : page.meshes) (mesh.agrees ? agreeing : differing).push_back(&mesh);
  std::vector<PlotLine> lines;
  if (agreeing.size() == 1) lines.push_back(worst_of(agreeing, agreeing[0]->mesh));
  if (agreeing.size() > 1)
    lines.push_back(worst_of(agreeing, fmt::format("{} that agree", meshes_text(agreeing.size()))));
  const size_t single =
      differing.size() + lines.size() <= kMostPlotLines ? differing.size() : kMostPlotLines - lines.size() - 1;
  for (size_t i = 0; i < single; ++i) lines.push_back(worst_of({differing[i]}, differing[i]->mesh));
  if (single < differing.size())
    lines.push_back(worst_of({differing.begin() + static_cast<ptrdiff_t>(single), differing.end()},
                             fmt::format("{} more that differ, the worst", meshes_text(differing.size() - single))));
  return lines;
}

std::string plot(const VerifyPage& page) {
  if (page.planned == 1) return {};  // its own section has it
  return "<h2>Difference by step</h2>\n<p class=\"quiet\">The worst relative difference of anything that is compared. "
         "A "
         "mesh is left at its first step that differs.</p>\n" +
         divergence_plot(lines_of(page), page.tolerance);
}

}  // namespace

double PageStep::worst() const {
  double worst = loss;
  for (const double each : {gradient, parameter})
    if (is_worse(each, worst)) worst = each;
  return worst <= 0 && differing_bits > 0 ? std::numeric_limits<double>::min() : worst;
}

PageStep PageMesh::worst() const {
  PageStep worst;
  for (const auto& step : steps) {
    worst.step = step.step;
    if (is_worse(step.loss, worst.loss)) worst.loss = step.loss;
    if (is_worse(step.gradient, worst.gradient)) worst.gradient = step.gradient;
    if (is_worse(step.parameter, worst.parameter)) worst.parameter = step.parameter;
    worst.differing_bits += step.differing_bits;
  }
  return worst;
}

std::string verify_page(const VerifyPage& page) {
  auto html =
      replay::page_begin("Verification of " + page.job, fmt::format("{}{}{}", kPageStyle, kPartsStyle, kPlotStyle));
  html += header(page) + verdict(page) + findings(page);
  if (!page.meshes.empty()) html += meshes_table(page) + plot(page) + mesh_sections(page);
  html += kWords;
  html += replay::kPageEnd;
  return html;
}

}  // namespace lockstep::tool
