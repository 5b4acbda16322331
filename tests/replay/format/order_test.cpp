// A table that lacks a row, has one twice or has two in another order is no recording: what a step makes has one order.
#include <gtest/gtest.h>

#include "replay/format/validate.h"
#include "tests/support/recorded_steps.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::message_of;

/// Two ops with a result and with two, two collectives of two senders; of the second two tensors.
StepRecording ordered() {
  StepRecording r;
  r.world = 3;
  r.names = {"", "linear", "Float[2] [tp=R]"};
  r.scalars = {{"learning_rate", 1}, {"loss", 2}};
  r.ops = {{{1, 0, 0, 1, 0}, 1, 4}, {{1, 0, 0, 1, 1}, 5, 9}};
  r.results = {{0, 0, ResultKind::kDigest, 2, 8, {1, 1}},
               {1, 0, ResultKind::kDigest, 2, 8, {2, 2}},
               {1, 1, ResultKind::kAlias, 2, 0, {}}};
  r.collectives = {{{1, 0, 0, 1, 0}, 0, 1, 1, 1, 6, 5, 9, 0, 2, 2, 3},
                   {{1, 0, 0, 1, 1}, 1, 1, 1, 1, 6, 5, 9, 2, 4, 6, 7}};
  r.pieces = {{1, 0, 2, 0, {1, 0}}, {2, 0, 2, 2, {2, 0}}, {1, 0, 2, 4, {3, 0}},
              {2, 0, 2, 0, {1, 0}}, {1, 1, 2, 6, {4, 0}}, {2, 1, 2, 8, {5, 0}}};
  r.payload.resize(10);
  return r;
}

std::string refusal_of(const std::function<void(StepRecording&)>& change) {
  auto recording = ordered();
  change(recording);
  return message_of<BadInput>([&] { validate(recording); });
}

template <class Rows>
void remove(Rows& rows, std::size_t row) {
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(row));
}

TEST(Order, OfWhatAStepMakesIsFine) {
  EXPECT_EQ(refusal_of([](auto&) {}), "no such error");
}

TEST(Order, NamesAreThereOnce) {
  EXPECT_EQ(refusal_of([](auto& r) { r.names.push_back("linear"); }), "/names has 'linear' twice");
  EXPECT_EQ(refusal_of([](auto& r) { r.scalars.push_back(r.scalars[1]); }), "/scalars has 'loss' twice");
}

TEST(Order, OfOpsAndCollectivesIsThatOfTheirBegins) {
  EXPECT_EQ(refusal_of([](auto& r) { std::swap(r.ops[0], r.ops[1]); }), "/ops row 1 begins before the row before it");
  EXPECT_EQ(refusal_of([](auto& r) { r.collectives[0].begin = r.collectives[0].end = 8; }),
            "/collectives row 1 begins before the row before it");
}

TEST(Order, CollectivesOfAMeshAreNumberedWithoutGaps) {
  EXPECT_EQ(refusal_of([](auto& r) { std::swap(r.collectives[0].number, r.collectives[1].number); }),
            "/collectives row 0 is number 1 of its mesh, number 0 is due");
  EXPECT_EQ(refusal_of([](auto& r) { r.collectives[1].number = 0; }),
            "/collectives row 1 is number 0 of its mesh, number 1 is due");
  EXPECT_EQ(refusal_of([](auto& r) { r.collectives[1].number = 2; }),
            "/collectives row 1 is number 2 of its mesh, number 1 is due");
  EXPECT_EQ(refusal_of([](auto& r) { remove(r.collectives, 0); }),
            "/collectives row 0 is number 1 of its mesh, number 0 is due");
  EXPECT_EQ(refusal_of([](auto& r) { r.collectives[1].mesh = 0; }),
            "/collectives row 1 is number 1 of its mesh, number 0 is due");
  EXPECT_EQ(refusal_of([](auto& r) { r.collectives[1].mesh = 0, r.collectives[1].number = 0; }), "no such error")
      << "another mesh counts its own";
}

TEST(Order, OfResultsIsThatOfTheirOps) {
  EXPECT_EQ(refusal_of([](auto& r) { std::swap(r.results[0], r.results[1]); }),
            "/results row 1 is of op 0, which ended before op 1 of the row before");
  EXPECT_EQ(refusal_of([](auto& r) { std::swap(r.results[1], r.results[2]); }),
            "/results row 1 is number 1 of op 1, apart from the others");
  EXPECT_EQ(refusal_of([](auto& r) { r.results.push_back(r.results[2]); }),
            "/results row 3 is number 1 of op 1, number 2 is due");
  EXPECT_EQ(refusal_of([](auto& r) { r.results.push_back(r.results[0]); }),
            "/results row 3 is number 0 of op 0, apart from the others");
  EXPECT_EQ(refusal_of([](auto& r) { remove(r.results, 1); }),
            "/results row 1 is number 1 of op 1, apart from the others");
}

TEST(Order, OnlyDigestsAreDigests) {
  EXPECT_EQ(refusal_of([](auto& r) { r.results[0].kind = ResultKind::kAlias; }),
            "/results row 0 is of a kind that has no digest, and has one");
  EXPECT_EQ(refusal_of([](auto& r) { r.results[2].bytes = 8; }),
            "/results row 2 is of a kind that has no digest, and has one");
}

TEST(Order, PiecesBelongToOneCollectiveEach) {
  EXPECT_EQ(refusal_of([](auto& r) { r.collectives[1].first_piece = 3, r.collectives[1].pieces = 3; }),
            "/collectives row 1: its pieces begin at 3, 2 is due");
  EXPECT_EQ(refusal_of([](auto& r) { remove(r.collectives, 1); }), "/pieces has 6 rows, 2 are of collectives");
  EXPECT_EQ(refusal_of([](auto& r) { std::swap(r.pieces[0], r.pieces[1]); }),
            "/collectives row 0: its piece 1 is of rank 1, after that of rank 2");
  EXPECT_EQ(refusal_of([](auto& r) { std::swap(r.pieces[4], r.pieces[5]); }),
            "/collectives row 1: its piece 2 is tensor 1 of rank 2, which is not due there");
  EXPECT_EQ(refusal_of([](auto& r) { r.pieces[2].tensor = 1; }),
            "/collectives row 1: its piece 0 is tensor 1 of rank 1, which is not due there");
  EXPECT_EQ(refusal_of([](auto& r) { remove(r.pieces, 5), r.collectives[1].pieces = 3; }),
            "/collectives row 1: 3 pieces of 2 senders");
}

TEST(Order, AStepThatEndedEarlyMayLackPieces) {
  EXPECT_EQ(refusal_of([](auto& r) {
              remove(r.pieces, 5), r.collectives[1].pieces = 3, r.payload.resize(8);
              r.complete = false;
            }),
            "no such error");
}

TEST(Order, OfThePayloadIsThatOfThePieces) {
  EXPECT_EQ(refusal_of([](auto& r) { r.payload.resize(11); }), "/payload has 11 bytes, 10 are of pieces");
  EXPECT_EQ(refusal_of([](auto& r) { std::swap(r.pieces[0].offset, r.pieces[1].offset); }),
            "/pieces row 0: its payload is at 2, 0 is due");
  EXPECT_EQ(refusal_of([](auto& r) { r.pieces[3].offset = kNoPayload; }),
            "/pieces row 3: of some pieces the payload is kept, of others it is not");
}

}  // namespace
}  // namespace lockstep::replay
