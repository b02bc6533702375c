#include "store/component_stage.h"

#include <array>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

using enum Permission;

struct Row {
  std::string_view name;
  std::array<bool, kStages> next;  // filling, sealing, resting, overwriting, appending, checkpointing, failed, removed
};

constexpr std::array<Row, kStages> kTable = {{
    // Straight to kResting goes what a reservation makes: it is empty.
    {"being filled", {false, true, true, false, true, false, true, true}},
    {"being sealed", {true, false, true, false, false, false, true, true}},
    {"at rest", {false, false, false, true, true, true, true, true}},
    {"being overwritten", {false, false, true, false, false, false, true, true}},
    {"being appended to", {true, false, true, false, false, false, true, true}},
    {"being checkpointed", {false, false, true, false, false, false, true, true}},
    {"out of service", {false, false, false, false, false, false, false, true}},
    {"removed", {false, false, false, false, false, false, false, false}},
}};

std::size_t index_of(Stage stage) {
  const auto index = static_cast<std::size_t>(stage);
  PIF_ASSERT(index < kStages, index);
  return index;
}

// Complete, and in service.
bool is_whole(const Situation& s) {
  return s.stage == Stage::kResting || s.stage == Stage::kOverwriting || s.stage == Stage::kCheckpointing ||
         (s.stage == Stage::kAppending && !s.is_open);
}

Permission may_append(const Situation& s) {
  if (s.stage == Stage::kFilling) return s.is_made_by_append ? kNow : kNever;
  if (s.stage == Stage::kResting) return s.is_dirty && s.is_checkpoint_due ? kLater : kNow;
  return is_whole(s) || s.stage == Stage::kAppending ? kLater : kNever;
}

Permission may_close(const Situation& s) {
  switch (s.stage) {
    case Stage::kFilling: return s.has_writer ? kLater : kNow;
    case Stage::kResting:
    case Stage::kFailed: return s.is_dirty ? kLater : kNow;  // images are synced through the files they were written by
    case Stage::kRemoved: return kNow;
    default: return kLater;
  }
}

}  // namespace

std::string_view name_of(Stage stage) { return kTable[index_of(stage)].name; }
bool may_follow(Stage from, Stage to) { return kTable[index_of(from)].next[index_of(to)]; }

Permission may(Operation what, const Situation& s) {
  PIF_ASSERT(static_cast<unsigned>(what) < kOperations, what);
  const bool at_rest = s.stage == Stage::kResting;
  switch (what) {
    case Operation::kRead:
      if (is_whole(s)) return kNow;
      return s.stage == Stage::kSealing ? kLater : kNever;
    case Operation::kFill:
    case Operation::kSeal:
      if (s.stage == Stage::kFilling) return s.is_made_by_append ? kNever : kNow;
      return s.stage == Stage::kSealing ? kLater : kNever;
    case Operation::kOverwrite:
      if (at_rest || s.stage == Stage::kOverwriting) return kNow;  // several images of one batch
      return is_whole(s) ? kLater : kNever;
    case Operation::kAppend: return may_append(s);
    case Operation::kCheckpoint:
      if (at_rest) return kNow;
      return is_whole(s) ? kLater : kNever;
    case Operation::kCopy:
      if (s.has_queued_changes) return kLater;
      if (at_rest || s.stage == Stage::kCheckpointing) return kNow;
      return is_whole(s) ? kLater : kNever;
    case Operation::kClose: return may_close(s);
    case Operation::kRemove: return s.stage == Stage::kRemoved ? kNever : kNow;
  }
  return kNever;
}

}  // namespace pif::lfs
