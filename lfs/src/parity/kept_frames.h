// Frames of .pap as the operations of parity use them: written behind the others, looked up, read as rows of an absent
// LFS, and given up at the front.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pif/component/parity.h"
#include "pif/proto/messages.pb.h"
#include "store/keeper.h"

namespace pif::lfs {

using ParityFilesPtr = std::shared_ptr<component::ParityFiles>;

// Writes frames at `end`, which goes behind them; adds what was written to `written`. Away from the loop. Does not
// sync.
[[nodiscard]] Status add_frames(FileId file, component::ParityFiles& files, std::span<const component::NewFrame> frames,
                                std::uint64_t& end, std::vector<component::Frame>& written);

// Bytes of a record in a file of this length; nothing: a variable record, of which nobody knows.
std::optional<std::uint32_t> record_bytes(const Format& format, const FileLength& file_length, RecordNumber record);
// The frame that counts, of a record of a file of this length. Null: there is none.
const component::Frame* counted_frame(const component::FrameIndex& index, const proto::ComponentState& state,
                                      const Format& format, const FileLength& file_length, RecordNumber record);

// Rows of one LFS out of their frames. It has its own list of them: the index may change.
// Thread-safety: as a RowSource.
class FrameRows final : public component::RowSource {
 public:
  FrameRows(FileId file, ParityFilesPtr files) : file_(file), files_(std::move(files)) {}
  // row: above those added before.
  void add(Row row, const component::Frame& frame);
  // kEndOfFile: of some row no frame was added.
  [[nodiscard]] Status read(Row first, std::uint64_t count, std::uint64_t step, component::PackedRows& out) override;

 private:
  const FileId file_;
  const ParityFilesPtr files_;
  std::vector<Row> rows_;
  std::vector<component::Frame> frames_;
};

// By member: null for those that are asked for their rows themselves.
using CopiedMembers = std::vector<std::shared_ptr<component::RowSource>>;
using FrameOf = std::function<const component::Frame*(RecordNumber)>;

struct CopiesNeeded {
  std::vector<bool> is_absent;    // by member
  std::deque<Range> pages;        // of all their rows
  std::deque<Range> parity_rows;  // of which those of `records` must have frames
  Range records;
};
// kNotFound: a row has no frame. Pure; any thread.
[[nodiscard]] Result<CopiedMembers> find_copies(const Keeper& keeper, const CopiesNeeded& needed,
                                                const ParityFilesPtr& files, const FrameOf& frame_of);

// Takes frames of earlier generations behind the base of this one out of the index: what they copied was cancelled, and
// never published.
std::vector<component::Frame> take_void_frames(component::FrameIndex& index, const Format& format,
                                               std::uint64_t generation, const FileLength& base);
// Writes zeros over them, as holes are. Away from the loop; does not sync.
[[nodiscard]] Status erase_frames(component::ParityFiles& files, std::vector<component::Frame> frames);

// Where the first frame begins whose row is in none of the first `pages` pages; `end` if there is none.
std::uint64_t front_of_frames(const Keeper& keeper, const component::FrameIndex& index, std::uint64_t pages);
// Gives back what lies before `begin`. Away from the loop; what cannot be given back stays.
void punch_front(component::ParityFiles& files, std::uint64_t begin);

}  // namespace pif::lfs
