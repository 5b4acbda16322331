// Python's pickles as data: values of every kind, and nothing of what cannot be data.
#include "trainer/weights/torch_checkpoint/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "tests/trainer/weights/torch_folder.h"

namespace lockstep::trainer {
namespace {

using namespace std::literals;
using ::testing::HasSubstr;
using testing::message_of;
using testing::PickleWriter;
using Kind = Pickle::Kind;

std::string refusal_of(std::string_view bytes) {
  return message_of<FileError>([&] { const Pickle pickle(bytes, "file"); });
}

/// pickle.dumps([None, True, -3, 70000, "é", (1, 2), {"a": [b"x"]}, 0.5], protocol=4) of CPython 3.11
constexpr std::string_view kList(
    "\x80\x04\x95\x33\x00\x00\x00\x00\x00\x00\x00]\x94("
    "N\x88J\xfd\xff\xff\xffJp\x11\x01\x00\x8c\x02\xc3\xa9\x94K\x01K\x02"
    "\x86\x94}\x94\x8c\x01"
    "a\x94]\x94"
    "C\x01x\x94"
    "asG?\xe0\x00\x00\x00\x00\x00\x00"
    "e.",
    62);

TEST(Pickle, HasTheValuesOfPython) {
  const Pickle pickle(kList, "file");
  const auto& items = pickle.root().items;
  ASSERT_EQ(items.size(), 8U);
  EXPECT_EQ(items[0]->kind, Kind::kNone);
  EXPECT_EQ(items[1]->number, 1);
  EXPECT_EQ(items[2]->number, -3);
  EXPECT_EQ(items[3]->number, 70000);
  EXPECT_EQ(items[4]->text, "é");
  EXPECT_EQ(items[5]->items[1]->number, 2);
  EXPECT_EQ(entry_of(items[6], "a")->items[0]->kind, Kind::kOther);
  EXPECT_EQ(entry_of(items[6], "b"), nullptr);
  EXPECT_EQ(items[7]->kind, Kind::kOther);
}

/// An object stays what it would be made of: os.system is a name here.
TEST(Pickle, RunsNothing) {
  const Pickle pickle(
      "cos\nsystem\n(X\x04\x00\x00\x00true"
      "tR."sv,
      "file");
  EXPECT_EQ(pickle.root().kind, Kind::kObject);
  EXPECT_EQ(pickle.root().made_by->text, "os system");
  EXPECT_EQ(pickle.root().arguments->items[0]->text, "true");
}

TEST(Pickle, RemembersValuesByNumber) {
  const Pickle pickle(
      PickleWriter().raw("]q\x05(h\x05").text("x").raw("r\x00\x01\x00\x00j\x00\x01\x00\x00"sv).raw("e").finished(),
      "file");
  const auto& root = pickle.root();
  ASSERT_EQ(root.items.size(), 3U);
  EXPECT_EQ(root.items[0], &root) << "a list may hold itself";
  EXPECT_EQ(root.items[1], root.items[2]);
}

TEST(Pickle, IsRefusedWhereItIsNoData) {
  EXPECT_EQ(refusal_of("\x80\x04i."),
            "file: byte 2: opcode 0x69 is none that plain data is written with. It may be damaged, or no checkpoint of "
            "PyTorch's.");
  EXPECT_THAT(refusal_of(""), HasSubstr("byte 0: the file ends too early"));
  EXPECT_THAT(refusal_of("."), HasSubstr("nothing is there to take"));
  EXPECT_THAT(refusal_of("t."), HasSubstr("there is no mark"));
  EXPECT_THAT(refusal_of("h\x03."), HasSubstr("nothing was remembered as 3"));
  EXPECT_THAT(refusal_of("NNa."), HasSubstr("there is no list to change"));
  EXPECT_THAT(refusal_of("}(Nu."), HasSubstr("a key has no value"));
  EXPECT_THAT(refusal_of("NNb."), HasSubstr("there is no object to change"));
  EXPECT_THAT(refusal_of("NNR."), HasSubstr("what is made has no class"));
  EXPECT_THAT(refusal_of("NN\x93."), HasSubstr("a name is no text"));
  EXPECT_THAT(refusal_of("c" + std::string(150, 'm') + "\n" + std::string(150, 'n') + "\n."),
              HasSubstr("a name is too long"));
  EXPECT_THAT(refusal_of("\x8a\x09"), HasSubstr("a number of more than 64 bits"));
  EXPECT_THAT(refusal_of("X\xff\xff\xff\xff."), HasSubstr("the file ends too early"));
  EXPECT_THAT(refusal_of("N(a."), HasSubstr("nothing is there")) << "what lies below a mark is not taken";
}

TEST(Pickle, CutShortAnywhereIsRefused) {
  for (size_t length = 0; length < kList.size(); ++length)
    EXPECT_NE(refusal_of(kList.substr(0, length)), "no such error") << length;
}

}  // namespace
}  // namespace lockstep::trainer
