#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"
#include "trainer/job/optimizer_settings.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;

TEST(Patterns, FitWholeNames) {
  const auto is = [](const char* pattern, const char* name) { return fits(pattern, name); };
  EXPECT_TRUE(is("", ""));
  EXPECT_TRUE(is("*", ""));
  EXPECT_TRUE(is("*", "norm.weight"));
  EXPECT_TRUE(is("*.weight", "layers.0.norm.weight"));
  EXPECT_TRUE(is("layers.?.n*m.*", "layers.0.norm.weight"));
  EXPECT_TRUE(is("*a*b*", "xaab"));
  EXPECT_TRUE(is("**", "x"));
  EXPECT_FALSE(is("", "x"));
  EXPECT_FALSE(is("?", ""));
  EXPECT_FALSE(is("norm", "norm.weight"));
  EXPECT_FALSE(is("weight", "norm.weight"));
  EXPECT_FALSE(is("layers.?.*", "layers.10.norm.weight"));
  EXPECT_FALSE(is("*.w", "norm.wx"));
  EXPECT_FALSE(is("a*b*c", "abdb"));
}

TEST(Patterns, OfManyStarsTakeNoLongerThanTheirLengthsMultiplied) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(fits(pattern + "b", std::string(20000, 'a')));
}

constexpr const char* kTables = R"([optimizer]
lr = 0.5
[[optimizer.groups]]
pattern = "*.norm.weight"
weight_decay = 0
[[optimizer.groups]]
pattern = "tok_\"x.*"
frozen = true
[training]
steps = 3
)";

TEST(ParameterGroups, AreReadFromTablesAListOrTheCommandLine) {
  const auto job = parse_job(kTables, "job.toml");
  ASSERT_EQ(job.optimizer.groups.size(), 2u);
  EXPECT_EQ(job.optimizer.groups[0].pattern, "*.norm.weight");
  EXPECT_EQ(job.optimizer.groups[0].weight_decay, 0.0);
  EXPECT_FALSE(job.optimizer.groups[0].lr_factor);
  EXPECT_TRUE(job.optimizer.groups[1].frozen);
  const std::string list =
      R"([{pattern = "*.norm.weight", weight_decay = 0.0}, {pattern = "tok_\"x.*", frozen = true}])";
  EXPECT_EQ(groups_text(job.optimizer.groups), list);
  EXPECT_EQ(to_toml(parse_job("[optimizer]\nlr = 0.5\ngroups = " + list + "\n[training]\nsteps = 3", "j")),
            to_toml(job));
  const std::vector<Setting> overrides{command_line_setting("optimizer.groups", list),
                                       command_line_setting("optimizer.lr", "0.5"),
                                       command_line_setting("training.steps", "3")};
  EXPECT_EQ(to_toml(parse_job("", "j", overrides)), to_toml(job));
  EXPECT_TRUE(
      parse_job(kTables, "j", std::vector{command_line_setting("optimizer.groups", "[]")}).optimizer.groups.empty());
}

TEST(ListsOfLists, AreReadFromTheFileOrTheCommandLine) {
  const std::string key = "parallelism.module_fqns_per_model_part", list = R"([["a", "b\"c"], [], ["layers.0"]])";
  const auto job = parse_job("[parallelism]\nmodule_fqns_per_model_part = " + list, "j");
  EXPECT_EQ(job.parallelism.module_fqns_per_model_part,
            (std::vector<std::vector<std::string>>{{"a", "b\"c"}, {}, {"layers.0"}}));
  const auto given = [&](const std::string& value) {
    return to_toml(parse_job("", "j", std::vector{command_line_setting(key, value)}));
  };
  EXPECT_EQ(given(list), to_toml(job));
  EXPECT_EQ(given("[]"), to_toml(Job{}));
  for (const char* wrong : {R"(["a", "b"])", R"([["a"], "b"])", R"([["a", 1]])", "[[", "a", "3"}) {
    const auto message = testing::message_of<BadInput>([&] { given(wrong); });
    EXPECT_EQ(message,
              fmt::format("command line: {} must be a list of lists of strings, not {}.", key, toml_string(wrong)));
  }
}

std::string problem(const std::string& groups) {
  try {
    parse_job("", "j", std::vector{command_line_setting("optimizer.groups", groups)});
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

TEST(ParameterGroups, SayWhatIsWrongWithThem) {
  const std::string no_list = "command line: optimizer.groups must be a list of tables, not \"";
  for (const char* text : {"3", "*.norm", "", "[3]", "[{pattern = \"a\"}]\nsteps = 3", "[[{pattern = \"a\"}]]", "{}"})
    EXPECT_THAT(problem(text), HasSubstr(no_list)) << text;
  const std::string group = "command line: optimizer.groups[0]";
  EXPECT_EQ(problem("[{}]"), group + " has no pattern; it names the parameters, such as \"*.norm.weight\".");
  EXPECT_EQ(problem(R"([{pattern = "a", lr = 0.1}])"),
            group + ".lr is not a key of a group; those are pattern, lr_factor, weight_decay, frozen, muon.");
  EXPECT_THAT(problem(R"([{pattern = "a", weight_deca = 0.1}])"), HasSubstr("Did you mean weight_decay?"));
  EXPECT_EQ(problem(R"([{pattern = "a", lr_factor = -1}])"), group + ".lr_factor is -1, must be a number, at least 0.");
  EXPECT_THAT(problem(R"([{pattern = "a", lr_factor = nan}])"), HasSubstr("must be a number, at least 0."));
  EXPECT_THAT(problem(R"([{pattern = "a", weight_decay = 1e39}])"), HasSubstr("must be a number, at least 0."));
  EXPECT_EQ(problem(R"([{pattern = "a", frozen = 1}])"), group + ".frozen is 1, must be true or false.");
  EXPECT_EQ(problem(R"([{pattern = 7}])"),
            group + ".pattern is 7, must be a pattern of names such as \"*.norm.weight\".");
  EXPECT_EQ(
      problem(R"([{pattern = "b"}, {pattern = "a", frozen = true, lr_factor = 2}])"),
      "command line: optimizer.groups[1] is frozen and has other settings, which would do nothing; leave one out.");
  EXPECT_THROW(parse_job("[optimizer]\ngroups = \"[{pattern = 'a'}]\"", "j"), BadInput) << "a text is no list";
  try {
    parse_job("[optimizer]\nlr = 1.0\n\n[[optimizer.groups]]\npatern = \"a\"\n", "job.toml");
    ADD_FAILURE();
  } catch (const BadInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("job.toml:4: optimizer.groups[0].patern is not a key of a group"));
  }
}

std::string refusal(const std::string& optimizer, const std::string& more = "") {
  try {
    resolve(parse_job("[optimizer]\n" + optimizer + "\n" + more, "j"), {.simulated = true});
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

TEST(OptimizerKeys, ThatTheOptimizerDoesNotReadAreRefused) {
  EXPECT_EQ(refusal("name = \"SGD\"\nbeta1 = 0.8"),
            "optimizer.beta1 0.8 is of AdamW, Adam, Lion, Muon or Ranger21; optimizer.name is \"SGD\". Leave it out or "
            "choose one of these.");
  EXPECT_THAT(refusal("name = \"Lion\"\neps = 1e-6"),
              HasSubstr("optimizer.eps 1e-06 is of AdamW, Adam, Muon or Ranger21"));
  EXPECT_THAT(refusal("name = \"Adam\"\nmomentum = 0.9"), HasSubstr("optimizer.momentum 0.9 is of SGD or Muon; "));
  EXPECT_THAT(refusal("name = \"Muon\"\nnesterov = true"), HasSubstr("optimizer.nesterov true is of SGD; "));
  EXPECT_THAT(refusal("name = \"AdamW\"", "[ranger21]\nsoftplus = false"),
              HasSubstr("ranger21.softplus false is of Ranger21; optimizer.name is \"AdamW\". Leave it out or choose "
                        "\"Ranger21\"."));
  EXPECT_THAT(refusal("name = \"Lion\"\noffload_state = true"),
              HasSubstr("optimizer.offload_state true is of AdamW or Adam; optimizer.name is \"Lion\""));
  EXPECT_EQ(refusal("name = \"SGD\"\nnesterov = true"),
            "optimizer.nesterov needs optimizer.momentum above 0; there is none.");
  EXPECT_THAT(refusal("name = \"SGD\"\nnesterov = true\nmomentum = 0.0"),
              HasSubstr("needs optimizer.momentum above 0"));
  EXPECT_THAT(refusal("groups = [{pattern = \"*\", muon = false}]"),
              HasSubstr("muon of \"*\" is of Muon; optimizer.name is \"AdamW\"."));
}

TEST(OptimizerKeys, ThatAreTheDefaultAskForNothing) {
  EXPECT_EQ(refusal("name = \"SGD\"\nbeta1 = 0.9\neps = 1e-8\nnesterov = false", "[ranger21]\nsoftplus = true"), "");
  for (const char* name : {"AdamW", "Adam", "SGD", "Lion", "Muon", "Ranger21"}) {
    const auto job = parse_job(std::string("[optimizer]\nname = \"") + name + "\"", "j");
    EXPECT_NO_THROW(resolve(parse_job(to_toml(job), "printed"), {.simulated = true})) << name;
  }
}

TEST(OptimizerKeys, OfASecondScheduleAreRefused) {
  const std::string name = "name = \"Ranger21\"";
  EXPECT_EQ(
      refusal(name, "[lr_scheduler]\nwarmup_steps = 7"),
      "lr_scheduler.warmup_steps 7 would not be heeded: ranger21.linear_warmup gives the rate there. Leave it out "
      "or set ranger21.linear_warmup to false.");
  for (const char* key : {"decay_ratio = 0.5", "decay_type = \"cosine\"", "min_lr_factor = 0.1"})
    EXPECT_THAT(refusal(name, std::string("[lr_scheduler]\n") + key), HasSubstr("ranger21.explore_exploit gives"));
  EXPECT_EQ(refusal(name, "[ranger21]\nlinear_warmup = false\n[lr_scheduler]\nwarmup_steps = 7"), "");
  EXPECT_EQ(refusal(name, "[ranger21]\nexplore_exploit = false\n[lr_scheduler]\ndecay_ratio = 0.5"), "");
}

}  // namespace
}  // namespace lockstep::trainer
