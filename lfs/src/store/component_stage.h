// What a component is going through, and what may be done to it meanwhile. This is the one place that says who may
// read, fill, seal, overwrite, append to, checkpoint, copy, close and remove a component at the same time as others.
//
//   kFilling -> kSealing -> kResting <-> kOverwriting, kAppending, kCheckpointing
//
// A component that an append makes goes from kFilling to kAppending. What fails goes back to where it began, or, if its
// files are unknown now, to kFailed. Everything can go to kRemoved, and nothing leaves that.
#pragma once

#include <cstdint>
#include <string_view>

namespace pif::lfs {

enum class Stage : std::uint8_t {
  kFilling,        // rows come, in any order; nobody reads it; not in the catalogue
  kSealing,        // complete: its bytes become durable, then its entry in the catalogue
  kResting,        // complete, and nothing changes it
  kOverwriting,    // images of its chunks are in the batch of the redo log that is under way
  kAppending,      // rows behind its end become durable, then its new length in the catalogue
  kCheckpointing,  // its in-place data becomes durable, so that the redo log can forget the images
  kFailed,         // what its files hold is unknown until the LFS is started again
  kRemoved,        // not in the catalogue any more, or never was; its files go
};
inline constexpr unsigned kStages = 8;

std::string_view name_of(Stage stage);
// Whether a component may go from one stage to the other.
bool may_follow(Stage from, Stage to);

enum class Operation : std::uint8_t {
  kRead,  // of rows, and by descriptors that change with the component
  kFill,  // write rows by message, or get descriptors that can write
  kSeal,
  kOverwrite,  // join a batch of the redo log
  kAppend,     // begin to make rows durable, or to drop rows that were never published
  kCheckpoint,
  kCopy,   // give descriptors to a worker, who holds it against changes from then on
  kClose,  // its files, which somebody opens again when they are needed
  kRemove,
};
inline constexpr unsigned kOperations = 9;

enum class Permission : std::uint8_t {
  kNow,
  kLater,  // when what is under way has ended
  kNever,
};

// What the answer depends on.
struct Situation {
  Stage stage = Stage::kFilling;
  bool is_open = false;  // no entry of the catalogue says that it is complete
  bool is_made_by_append = false;
  bool is_dirty = false;            // it has images in the redo log
  bool has_writer = false;          // which knows what is nowhere else while the component is filled
  bool has_queued_changes = false;  // overwrites or appends that wait
  bool is_checkpoint_due = false;   // the redo log is about to be emptied: nothing is appended to what is dirty
};
Permission may(Operation what, const Situation& situation);

}  // namespace pif::lfs
