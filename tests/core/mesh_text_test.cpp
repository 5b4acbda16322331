#include "core/mesh_text.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep {
namespace {

std::string problem(std::string_view text) {
  try {
    parse_mesh_axes(text);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "none";
}

TEST(MeshText, ReadsAxesInTheirOrder) {
  EXPECT_EQ(parse_mesh_axes(" dp_shard = 2 ,\ttp=3\n"), (std::vector<MeshAxis>{{"dp_shard", 2}, {"tp", 3}}));
  EXPECT_EQ(to_text(parse_mesh_axes(" dp_shard = 2 , tp=3")), "dp_shard=2,tp=3");
  EXPECT_EQ(to_text(parse_mesh_axes("")), "one device");
  EXPECT_EQ(parse_mesh_axes("one device"), std::vector<MeshAxis>{});
}

TEST(MeshText, ReadsWhatAPartFixes) {
  const auto mesh = parse_mesh_text("pp=2,dp=3,tp=2 at pp=1, dp=0");
  EXPECT_EQ(to_text(mesh.axes), "pp=2,dp=3,tp=2");
  EXPECT_EQ(mesh.at, (std::vector<std::pair<std::string, int64_t>>{{"pp", 1}, {"dp", 0}}));
}

TEST(MeshText, SplitsLists) {
  EXPECT_EQ(split_mesh_list("tp=2; dp=2,tp=2 ;"), (std::vector<std::string_view>{"tp=2", "dp=2,tp=2", ""}));
}

TEST(MeshText, NamesWhatIsWrong) {
  EXPECT_EQ(problem("tp"), "mesh \"tp\": \"tp\" is not of the form axis=size.");
  EXPECT_EQ(problem("=2"), "mesh \"=2\": \"=2\" is not of the form axis=size.");
  EXPECT_EQ(problem("t p=2"), "mesh \"t p=2\": \"t p=2\" is not of the form axis=size.");
  EXPECT_EQ(problem("tp=2,"), "mesh \"tp=2,\": \"\" is not of the form axis=size.");
  EXPECT_EQ(problem("tp=two"), "mesh \"tp=two\": the size of tp is \"two\", must be an integer of at least 1.");
  EXPECT_EQ(problem("tp=0"), "mesh \"tp=0\": the size of tp is \"0\", must be an integer of at least 1.");
  EXPECT_EQ(problem("tp=99999999999999999999"),
            "mesh \"tp=99999999999999999999\": the size of tp is "
            "\"99999999999999999999\", must be an integer of at least 1.");
  EXPECT_EQ(problem("tp=2,tp=2"), "mesh \"tp=2,tp=2\": tp is given twice.");
  EXPECT_EQ(problem("a=1048576,b=1048576,c=1048576,d=1048576"),
            "mesh \"a=1048576,b=1048576,c=1048576,d=1048576\" has more than 1048576 ranks.");
  EXPECT_EQ(problem("pp=2 at pp=1"), "mesh \"pp=2 at pp=1\" is a part of a mesh; a whole mesh is expected here.");
}

}  // namespace
}  // namespace lockstep
