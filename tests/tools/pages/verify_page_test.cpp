// The page of `lockstep verify --html` from plain data: what it says, and that it is well-formed.
#include "tools/lockstep/reports/verify/verify_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/replay/view/well_formed.h"
#include "tests/tools/golden_report.h"
#include "tests/tools/pages/sample_page.h"
#include "tools/lockstep/reports/page/differences.h"

namespace lockstep::tool {
namespace {

using lockstep::testing::checked_page;
using lockstep::testing::count_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string checked(const VerifyPage& page) { return checked_page(verify_page(page)); }

VerifyPage page_with(std::vector<PageMesh> meshes) {
  auto page = sample_page(meshes.size());
  page.meshes = std::move(meshes);
  return page;
}

// What it says

TEST(VerifyPage, SaysThatAllAgree) {
  const auto html = checked(page_with({agreeing_mesh("tp=2"), agreeing_mesh("tp=3")}));
  EXPECT_THAT(html, AllOf(HasSubstr("<h1>Verification of demo</h1>"),
                          HasSubstr("All 2 meshes do what one device does."), HasSubstr("2 steps compared bit by bit"),
                          HasSubstr("2 meshes that agree"), Not(HasSubstr("What was found"))));
  EXPECT_THAT(checked(page_with({agreeing_mesh("tp=2")})), HasSubstr("tp=2 does what one device does."));
}

TEST(VerifyPage, SaysWhatIsPlannedBeforeTheFirstStep) {
  auto mesh = agreeing_mesh("tp=2");
  mesh.steps.clear();
  auto page = page_with({mesh});
  page.finished = false;
  EXPECT_THAT(checked(page), AllOf(HasSubstr("tp=2: no difference so far."), HasSubstr("not compared yet"),
                                   HasSubstr("<h4>What a rank sends in a step</h4>"), Not(HasSubstr("agrees</span>")),
                                   Not(HasSubstr("Nothing is sent"))));
  mesh.traffic.clear(), mesh.bytes = 0;
  EXPECT_THAT(checked(page_with({mesh})), HasSubstr("Nothing is sent"));
  mesh.most_state = 0;
  EXPECT_THAT(checked(page_with({mesh})), Not(HasSubstr("Nothing is sent"))) << "nobody has counted";
}

TEST(VerifyPage, SaysWhatDiffers) {
  const auto html = checked(page_with({agreeing_mesh("tp=2"), differing_mesh("dp_shard=2,tp=2")}));
  EXPECT_THAT(html, AllOf(HasSubstr("1 of 2 meshes does not do what one device does."),
                          HasSubstr("<a href=\"#finding-1\">dp_shard=2,tp=2, step 2</a>"),
                          HasSubstr("embedding_dense_backward comes first of what differs."),
                          HasSubstr("<pre>lockstep replay --case outputs/case-1.h5</pre>"), HasSubstr("1,865,456")));
}

TEST(VerifyPage, OfNoMeshes) {
  auto page = sample_page(3);
  page.finished = false;
  EXPECT_THAT(checked(page), AllOf(HasSubstr("No mesh has been compared yet."), HasSubstr("Still running")));
  page.finished = true;
  EXPECT_THAT(checked(page), HasSubstr("No mesh was compared."));
}

TEST(VerifyPage, OfARunThatIsNotOverNeverSaysThatAllAgree) {
  auto page = page_with({agreeing_mesh("tp=2")});
  page.planned = 3, page.finished = false;
  EXPECT_THAT(checked(page), AllOf(HasSubstr("1 of 3 meshes compared so far, no difference."),
                                   Not(HasSubstr("class=\"card verdict good\""))));
  page.ended_by = "SIGINT <now>";
  EXPECT_THAT(checked(page), AllOf(HasSubstr("It ended before it was done"), HasSubstr("SIGINT &lt;now&gt;")));
}

TEST(VerifyPage, OfNativeNumericsShowsTheBound) {
  auto page = page_with({agreeing_mesh("tp=2")});
  page.tolerance = 1e-9;
  page.meshes[0].steps = {{.step = 1, .loss = 2e-15}, {.step = 2, .loss = 3e-15}};
  for (auto& traffic : page.meshes[0].traffic) traffic.native_bytes.reset();
  EXPECT_THAT(checked(page), AllOf(HasSubstr("compared in float64"), HasSubstr("most that is allowed"),
                                   HasSubstr("<td data-column=\"loss\">3.0e-15</td>"), Not(HasSubstr("differing bits")),
                                   Not(HasSubstr("canonical</span>"))));
}

TEST(VerifyPage, Of64MeshesHasASectionAndACardForEach) {
  std::vector<PageMesh> meshes;
  for (int i = 0; i < 64; ++i) {
    const auto name = "dp_shard=" + std::to_string(i + 2);
    meshes.push_back(i % 4 == 3 ? differing_mesh(name) : agreeing_mesh(name));
  }
  const auto html = checked(page_with(meshes));
  EXPECT_THAT(html, AllOf(HasSubstr("16 of 64 meshes do not do what one device does."), HasSubstr("id=\"finding-16\""),
                          HasSubstr("48 meshes that agree"), HasSubstr("11 meshes more that differ, the worst")));
  EXPECT_EQ(count_of(html, "<details class=\"card good\">"), 48U);
  EXPECT_EQ(count_of(html, "<details class=\"card bad\" open=\"open\">"), 16U);
}

TEST(VerifyPage, EscapesAllTexts) {
  const std::string evil = "<script>alert('&\"');</script>\x1b\xff";
  auto page = page_with({differing_mesh(evil), differing_mesh("tp=2")});
  for (auto* text : {&page.job, &page.model, &page.batch, &page.numerics, &page.machine, &page.build, &page.date,
                     &page.command, &page.ended_by})
    *text = evil;
  auto& mesh = page.meshes[0];
  mesh.gathered = {evil};
  mesh.traffic = {{evil, evil, 1, 1, 1}};
  auto& finding = mesh.findings[0];
  for (auto* text : {&finding.kind, &finding.op, &finding.id, &finding.module, &finding.rule, &finding.layouts,
                     &finding.collective, &finding.axis, &finding.group, &finding.ranks, &finding.difference,
                     &finding.worst, &finding.pattern, &finding.before, &finding.next, &finding.report})
    *text = evil;
  finding.modules = {{.name = evil}};
  EXPECT_GT(count_of(checked(page), "&lt;script&gt;alert(&#39;&amp;&quot;&#39;);&lt;/script&gt;"), 24U);
}

// Findings

std::string card_of(const PageFinding& finding) {
  auto mesh = differing_mesh("tp=2");
  mesh.findings = {finding};
  const auto html = checked(page_with({mesh}));
  const auto begin = html.find("<section class=\"card bad\" id");
  return html.substr(begin, html.find("</section>", begin) - begin);
}

TEST(VerifyPage, ShowsAFinding) {
  auto finding = sample_finding();
  finding.modules.resize(2);
  expect_golden("\n" + card_of(finding), R"html(
<section class="card bad" id="finding-1">
<h3>1. tp=2, step 2: embedding_dense_backward</h3>
<p class="what">gradient of tok_embeddings.weight[1056, 251] = -0.009186126292, one device: 0 (relative 1.0e+00; 9984 of 524288 elements wrong)</p>
<dl>
<dt>To blame</dt><dd>The op took what it takes on one device, and gave something else. Its rule, its kernel or its communication is at fault.</dd>
<dt>Where</dt><dd>step 2, microbatch 0, backward, tok_embeddings, embedding_dense_backward #0</dd>
<dt>Rule</dt><dd>embedding &quot;...d,...-&gt;vd&quot;</dd>
<dt>Layouts</dt><dd>[dp_shard=S(0), tp=R], [dp_shard=S(0), tp=R] -&gt; [dp_shard=P(sum:4/1), tp=S(0)]</dd>
<dt>Wrong on</dt><dd>ranks 1, 3</dd>
<dt>Damage</dt><dd>zeros, in [1024:2048, 0:256]</dd>
<dt>Worst value</dt><dd>result of embedding_dense_backward[1056, 251] = -0.009186126292, one device: 0</dd>
<dt>Before it</dt><dd>480 ops and 97 moves agree until then</dd>
<dt>A second time</dt><dd>There again: the step was run a second time from the same start.</dd>
</dl>
<h4>Next</h4>
<pre>lockstep replay --case outputs/case-1.h5</pre>
<h4>What differs after the step, by module</h4>
<p class="legend"><span><i class="key bar1"></i>loss and gradients</span><span><i class="key bar2"></i>parameters and optimizer state</span></p>
<table class="rows"><tbody>
<tr class="head"><th>module</th><th>1e-16 to 1e4, logarithmic</th><th>loss, gradients</th><th>parameters</th><th>wrong elements</th></tr>
<tr><td data-column="module">gradient norm</td><td data-column=""><svg class="bars" viewBox="0 0 100 18" preserveAspectRatio="none" aria-hidden="true"><rect class="empty" x="0" y="0" width="0.3" height="18"/><rect class="bar1" x="0" y="1" width="67.4" height="7"/></svg></td><td data-column="loss, gradients">3.0e-03</td><td data-column="parameters">0</td><td data-column="wrong elements">1 of 1</td></tr>
<tr class="blamed"><td data-column="module">tok_embeddings (to blame)</td><td data-column=""><svg class="bars" viewBox="0 0 100 18" preserveAspectRatio="none" aria-hidden="true"><rect class="empty" x="0" y="0" width="0.3" height="18"/><rect class="bar1" x="0" y="1" width="80.0" height="7"/><rect class="bar2" x="0" y="10" width="71.2" height="7"/></svg></td><td data-column="loss, gradients">1.0e+00</td><td data-column="parameters">1.7e-02</td><td data-column="wrong elements">29,952 of 1,572,864</td></tr>
</tbody></table>
<details><summary>As the terminal says it</summary>
<pre>INCONSISTENT  step 2, mesh dp_shard=2,tp=2: gradient of tok_embeddings.weight[1056, 251]</pre>
</details>
)html");
}

TEST(VerifyPage, ExplainsEveryKind) {
  auto finding = sample_finding();
  for (const char* kind : {"op", "collective", "local move", "operand", "number", "joined", "start", "data", "step"}) {
    finding.kind = kind;
    EXPECT_THAT(card_of(finding), HasSubstr("<dt>To blame</dt>")) << kind;
  }
}

TEST(VerifyPage, NamesACollectiveByItsAxisAndRanks) {
  auto finding = sample_finding();
  finding.kind = "collective", finding.op = "reduce_gradients";
  finding.collective = "reduce_scatter", finding.axis = "dp_shard", finding.group = "ranks 0-1";
  EXPECT_THAT(card_of(finding), AllOf(HasSubstr("step 2: reduce_scatter on dp_shard</h3>"),
                                      HasSubstr("reduce_scatter on axis dp_shard, among ranks 0-1")));
}

TEST(VerifyPage, NamesTheAxisOfAnOpAndWhatCannotBeTold) {
  auto finding = sample_finding();
  finding.axis = "tp", finding.group = "ranks 0-1", finding.limits = "what replicas share";
  EXPECT_THAT(card_of(finding), AllOf(HasSubstr("<dt>Along axis</dt><dd>tp, among ranks 0-1</dd>"),
                                      HasSubstr("<dt>Cannot tell</dt><dd>what replicas share</dd>")));
}

TEST(VerifyPage, SaysWhatDidNotComeBack) {
  auto finding = sample_finding();
  finding.transient = true;
  EXPECT_THAT(card_of(finding), HasSubstr("Gone: run again from the same start, the step agreed."));
  finding.kind = "start";
  EXPECT_THAT(card_of(finding), AllOf(Not(HasSubstr("Gone:")), HasSubstr("the start of the step")));
}

TEST(VerifyPage, LeavesOutWhatIsNotKnown) {
  PageFinding finding;
  finding.step = 3, finding.difference = "copies of a parameter differ", finding.report = "INCONSISTENT";
  EXPECT_THAT(card_of(finding), AllOf(HasSubstr("copies of a parameter differ"), HasSubstr("INCONSISTENT"),
                                      Not(HasSubstr("<dt>")), Not(HasSubstr("<h4>"))));
}

TEST(VerifyPage, ShowsTheFirst40Modules) {
  auto finding = sample_finding();
  finding.modules.assign(45, {.name = "layers.0", .gradient = 1e-3});
  const auto card = card_of(finding);
  EXPECT_EQ(count_of(card, "data-column=\"module\""), 40U);
  EXPECT_THAT(card, HasSubstr("5 more modules differ."));
}

// Numbers

TEST(VerifyPage, TheWorstIsWhatIsNotANumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  PageMesh mesh = differing_mesh("tp=2");
  mesh.steps = {{.step = 1, .loss = nan, .differing_bits = 1}, {.step = 2, .loss = 5, .differing_bits = 2}};
  EXPECT_TRUE(std::isnan(mesh.worst().loss));
  EXPECT_EQ(mesh.worst().differing_bits, 3);
  EXPECT_THAT(checked(page_with({mesh})), HasSubstr("not finite"));
}

TEST(VerifyPage, BitsThatDifferAreSeenWhereNumbersAreEqual) {
  EXPECT_EQ(PageStep{}.worst(), 0);
  EXPECT_GT((PageStep{.step = 1, .differing_bits = 1}.worst()), 0);
}

TEST(VerifyPage, TextsOfNumbers) {
  EXPECT_EQ(relative_text(0), "0");
  EXPECT_EQ(relative_text(0.48), "4.8e-01");
  EXPECT_EQ(relative_text(HUGE_VAL), "not finite");
}

}  // namespace
}  // namespace lockstep::tool
