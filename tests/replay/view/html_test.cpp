// Pages: anybody's text in them, and what the reader of the tests' own takes for well-formed.
#include "replay/view/html.h"

#include <gtest/gtest.h>

#include "replay/view/timeline_page.h"
#include "tests/replay/view/well_formed.h"

namespace lockstep::replay {
namespace {

using testing::fault_of;

const std::string kUnknown = "\xef\xbf\xbd";

TEST(Html, EscapesWhatMeansSomething) {
  EXPECT_EQ(escaped(R"(<b class="x">a & 'b'</b>)"), "&lt;b class=&quot;x&quot;&gt;a &amp; &#39;b&#39;&lt;/b&gt;");
  EXPECT_EQ(escaped(""), "");
  EXPECT_EQ(escaped("two\nlines\tand a tab"), "two\nlines\tand a tab");
}

TEST(Html, KeepsCharactersOfAnyLength) {
  for (const char* text : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x9a\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(escaped(text), text);
}

TEST(Html, ReplacesBytesThatAreNoCharacter) {
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a" + kUnknown + "b");
  EXPECT_EQ(escaped("\x1b[31m"), kUnknown + "[31m");
  EXPECT_EQ(escaped("\xff<"), kUnknown + "&lt;");
  EXPECT_EQ(escaped("cut \xe2\x82"), "cut " + kUnknown + kUnknown);
  EXPECT_EQ(escaped("\xc0\xbc"), kUnknown + kUnknown) << "< in two bytes";
  EXPECT_EQ(escaped("\xed\xa0\x80"), kUnknown + kUnknown + kUnknown) << "half a pair";
  EXPECT_EQ(escaped("\xef\xbf\xbf"), kUnknown + kUnknown + kUnknown) << "no character of XML";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), kUnknown + kUnknown + kUnknown + kUnknown) << "beyond U+10FFFF";
}

TEST(Html, BeginsAPage) {
  const auto page = page_begin("a < b", ".x{}") + std::string(kPageEnd);
  EXPECT_EQ(fault_of(page), "");
  EXPECT_NE(page.find("<title>a &lt; b</title>"), page.npos);
  EXPECT_NE(page.find(".x{}"), page.npos);
}

TEST(Html, TimelinesAreWellFormed) {
  StepRecording recording;
  recording.names = {"", "<script>", "tp"};
  recording.ops = {{{1, 0, 0, 1, 0}, 1, 4}};
  EXPECT_EQ(fault_of(timeline_page({&recording, 1})), "");
  EXPECT_EQ(timeline_page({&recording, 1}).find("<script"), std::string::npos);
  EXPECT_EQ(fault_of(timeline_page({})), "");
}

TEST(WellFormed, FindsFaults) {
  const auto fault = [](const std::string& body) { return fault_of("<!DOCTYPE html>\n" + body); };
  EXPECT_EQ(fault("<html><p class=\"a\">x &amp; &#39;<br/></p></html>\n"), "");
  for (const char* wrong :
       {"", "<a><b></a></b>", "<a>", "</a>", "<a></a><b></b>", "<a>x & y</a>", "<a b=\"1\" b=\"2\"></a>", "<a b=1></a>",
        "<a b=\"<\"></a>", "<a><br></a>", "<a/>", "<p><p></p></p>", "<a><b id=\"x\"></b><b id=\"x\"></b></a>",
        "<a>\x01</a>", "x<a></a>", "<>", "<a"})
    EXPECT_NE(fault(wrong), "") << wrong;
  EXPECT_NE(fault_of("<html></html>"), "");
}

}  // namespace
}  // namespace lockstep::replay
