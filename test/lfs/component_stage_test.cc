// Who may do what to a component at the same time.
#include "../../lfs/src/store/component_stage.h"

#include <catch2/catch.hpp>

using namespace pif::lfs;
using enum Stage;
using enum Permission;

namespace {

Permission at(Stage stage, Operation what) { return may(what, {.stage = stage}); }
bool changes(Operation what) {
  return what == Operation::kOverwrite || what == Operation::kAppend || what == Operation::kFill ||
         what == Operation::kSeal;
}

}  // namespace

TEST_CASE("stages: while one change is under way no other begins, and no worker gets a copy") {
  for (const Stage stage : {kOverwriting, kAppending, kCheckpointing}) {
    CAPTURE(name_of(stage));
    const bool is_of_its_batch = stage == kOverwriting;
    CHECK(at(stage, Operation::kOverwrite) == (is_of_its_batch ? kNow : kLater));
    CHECK(at(stage, Operation::kAppend) == kLater);
    CHECK(at(stage, Operation::kCheckpoint) == kLater);
    CHECK(at(stage, Operation::kCopy) == (stage == kCheckpointing ? kNow : kLater));
    CHECK(at(stage, Operation::kClose) == kLater);
    CHECK(at(stage, Operation::kRead) == kNow);
  }
}

TEST_CASE("stages: a component is read, changed and copied once it is complete, and filled and sealed before") {
  for (unsigned i = 0; i < kOperations; ++i) {
    const auto what = static_cast<Operation>(i);
    CAPTURE(i);
    const bool of_both = what == Operation::kClose || what == Operation::kRemove;
    const bool of_new = what == Operation::kFill || what == Operation::kSeal;
    CHECK((at(kResting, what) == kNow) == !of_new);
    CHECK((at(kFilling, what) == kNow) == (of_new || of_both));
    if (!of_both) CHECK(at(kSealing, what) != kNow);
  }
}

TEST_CASE("stages: what has failed or was removed is not changed and not read") {
  for (const Stage stage : {kFailed, kRemoved}) {
    for (unsigned i = 0; i < kOperations; ++i)
      if (changes(static_cast<Operation>(i))) CHECK(at(stage, static_cast<Operation>(i)) == kNever);
    CHECK(at(stage, Operation::kRead) == kNever);
    CHECK(at(stage, Operation::kCheckpoint) == kNever);
    CHECK(at(stage, Operation::kCopy) == kNever);
    CHECK(at(stage, Operation::kClose) == kNow);
  }
  CHECK(at(kFailed, Operation::kRemove) == kNow);
  CHECK(at(kRemoved, Operation::kRemove) == kNever);
}

TEST_CASE("stages: nothing is appended to what is dirty while a checkpoint is due") {
  CHECK(may(Operation::kAppend, {.stage = kResting, .is_dirty = true, .is_checkpoint_due = true}) == kLater);
  CHECK(may(Operation::kAppend, {.stage = kResting, .is_dirty = true}) == kNow);
  CHECK(may(Operation::kAppend, {.stage = kResting, .is_checkpoint_due = true}) == kNow);
}

TEST_CASE("stages: files stay open where what they hold is known nowhere else") {
  CHECK(may(Operation::kClose, {.stage = kResting, .is_dirty = true}) == kLater);
  CHECK(may(Operation::kClose, {.stage = kFailed, .is_dirty = true}) == kLater);
  CHECK(may(Operation::kClose, {.stage = kFilling, .has_writer = true}) == kLater);
  CHECK(may(Operation::kClose, {.stage = kResting, .has_writer = true}) == kNow);
}

TEST_CASE("stages: a component that an append makes takes appends only, and is not read before it is complete") {
  const Situation made{.stage = kFilling, .is_open = true, .is_made_by_append = true};
  CHECK(may(Operation::kAppend, made) == kNow);
  CHECK(may(Operation::kFill, made) == kNever);
  CHECK(may(Operation::kSeal, made) == kNever);
  CHECK(may(Operation::kRead, {.stage = kAppending, .is_open = true, .is_made_by_append = true}) == kNever);
}

TEST_CASE("stages: a worker waits for the changes that came before it") {
  CHECK(may(Operation::kCopy, {.stage = kResting, .has_queued_changes = true}) == kLater);
  CHECK(may(Operation::kCopy, {.stage = kResting}) == kNow);
}

TEST_CASE("stages: everything can be removed, nothing comes back, and one change ends before the next begins") {
  for (unsigned i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    CAPTURE(name_of(stage));
    CHECK(may_follow(stage, kRemoved) == (stage != kRemoved));
    CHECK_FALSE(may_follow(kRemoved, stage));
    CHECK_FALSE(may_follow(stage, stage));
    CHECK(may_follow(kFailed, stage) == (stage == kRemoved));
    for (const Stage change : {kOverwriting, kCheckpointing}) CHECK(may_follow(stage, change) == (stage == kResting));
    CHECK(may_follow(stage, kAppending) == (stage == kResting || stage == kFilling));
    CHECK(may_follow(stage, kSealing) == (stage == kFilling));
  }
}
