#include "scrub/scrub_frames.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "store/covered.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kUncoveredMax = 1000;  // records, at once
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr Duration kLookAgain = std::chrono::milliseconds(50);

// The one that went bad may still be known.
void replace_frame(component::FrameIndex& index, const component::Frame& frame) {
  const auto [begin, end] = index.frames.equal_range(frame.record);
  for (auto at = begin; at != end;) {
    const bool is_same = at->second.bytes == frame.bytes && at->second.generation <= frame.generation;
    at = is_same ? index.frames.erase(at) : std::next(at);
  }
  index.frames.emplace(frame.record, frame);
}

Status busy() { return fail(Code::kBusy, "the file is being appended to"); }

}  // namespace

void ScrubFrames::run() {
  if (job_.keeper.parity_rows(job_.published) == 0) return;
  Time patience = job_.context().now() + kPatience;
  for (bool is_over = false; !is_over;) {
    job_.pass.pace();
    if (job_.is_gone()) return;
    const auto index = scan();
    if (job_.is_gone()) return;
    if (!index) return job_.report(fmt::format("file {}: {}", name_of(component_->file), index.error().text), false);
    const Uncovered uncovered = find_uncovered(*index);
    if (uncovered.rows.empty()) return;
    const auto copied = copy(uncovered.rows, patience);
    if (job_.is_gone()) return;
    if (!copied) continue;
    for (const std::string& text : uncovered.texts)
      job_.report(text + (*copied ? "; copied from its LFS" : "; not repaired: " + copied->error().text),
                  copied->has_value());
    patience = job_.context().now() + kPatience;
    is_over = !*copied || uncovered.texts.size() < kUncoveredMax;  // else there may be more
  }
}

Result<component::FrameIndex> ScrubFrames::scan_file(std::uint64_t begin) const {
  PIF_TRY_VALUE(auto files, component::open_parity(job_.storage, job_.stem, component::OpenMode::kRead));
  return component::scan_frames(component_->file, files, begin);
}

Result<component::FrameIndex> ScrubFrames::scan() {
  Component& c = *component_;
  if (!c.lock.keeps_parity()) c.frames.reset();  // what is known of .pap may not be so any more
  (void)job_.context().components.open_parity(c, component::OpenMode::kCreate);
  const std::uint64_t writes = c.frame_writes;
  PIF_TRY_VALUE(auto index, job_.pass.keeping.works.run<&ScrubFrames::scan_file>(*this, c.state.pap_begin()));
  if (!job_.is_gone() && !c.frames && !c.lock.keeps_parity() && c.mode && c.frame_writes == writes) c.frames = index;
  return index;
}

// A row that got its page meanwhile needs no frame.
ScrubFrames::Uncovered ScrubFrames::find_uncovered(const component::FrameIndex& index) const {
  const Keeper& keeper = job_.keeper;
  const auto& state = component_->state;
  const std::uint64_t page_rows = keeper.shape.page_rows();
  const std::uint64_t end = keeper.parity_rows(job_.published);
  Uncovered out;
  for (std::uint64_t j = state.pages() * page_rows; j < end && out.texts.size() < kUncoveredMax; ++j) {
    for (std::size_t member = 0; member < keeper.size() && !has_page(state, j / page_rows); ++member) {
      const RecordNumber record = keeper.record(member, j);
      if (record >= job_.published.records || out.texts.size() >= kUncoveredMax) continue;
      if (counted_frame(index, state, keeper.format(), job_.published, record) != nullptr) continue;
      out.texts.push_back(fmt::format("file {}: record {} has its parity here, and neither a page nor a copy of it",
                                      name_of(component_->file), record));
      if (out.rows.empty() || out.rows.back().end <= j) out.rows.push_back({j, j + 1});
    }
  }
  return out;
}

std::uint64_t ScrubFrames::frame_bytes(Range parity_rows) const {
  const std::uint64_t rows = parity_rows.size() * job_.keeper.size();
  const std::uint64_t bytes = job_.keeper.format().is_fixed() ? rows * job_.keeper.format().record_length
                                                              : std::min(job_.published.bytes, rows * kRecordLengthMax);
  return bytes + rows * (component::kFrameHeaderBytes + 8);
}

Result<ComponentLock::Held> ScrubFrames::lock(Time patience) const {
  for (;;) {
    job_.pass.await_leave();
    if (job_.is_gone()) return ComponentLock::Held();
    auto held = component_->lock.try_acquire(Mode::kKeepParity);
    if (held.is_held()) return held;
    const Time now = job_.context().now();
    if (now >= patience) return fail(busy().error());
    job_.pass.wait_until(now + kLookAgain);
  }
}

// Behind all others. Room for them is taken before they are written: whoever covers rows writes behind it.
std::optional<Status> ScrubFrames::copy(const std::deque<Range>& rows, Time patience) {
  if (job_.pass.only_look) return fail(Code::kCancelled, "as was asked for");
  Component& c = *component_;
  const auto held = lock(patience);
  if (!held) return fail(held.error());
  if (job_.is_gone()) return std::nullopt;
  if (Status opened = job_.context().components.open_parity(c, component::OpenMode::kCreate); !opened) return opened;
  if (!c.frames && job_.context().now() < patience) return std::nullopt;
  if (!c.frames) return busy();
  ParityPlan plan;
  plan.generation = c.state.parity_generation();
  plan.end = c.frames->end;
  plan.frames = rows;
  std::uint64_t reserved = plan.end;
  for (const Range& range : rows) reserved += frame_bytes(range);
  reserved = (reserved + 7) / 8 * 8;
  c.frames->end = reserved;
  return write_frames(plan, reserved);
}

Status ScrubFrames::write_frames(const ParityPlan& plan, std::uint64_t reserved) {
  Component& c = *component_;
  MemberOptions members;
  members.file_length = job_.published;
  members.records = {0, job_.published.records};
  members.epoch = c.state.epoch();
  members.by_message = true;
  const auto files = c.parity;
  ParityRun run(job_.pass.keeping.peers, job_.storage, job_.pass.keeping.works, job_.keeper, members, plan, files);
  PIF_TRY(run.run(c.state.shape()));
  const ParityRun::Outcome& outcome = run.outcome();
  const Status written = job_.pass.keeping.works.run([&]() -> Status {
    PIF_TRY(component::sync(*files));
    PIF_TRY(job_.storage.sync_folder(job_.folder()));  // files that were missing have names now
    return read_back(outcome.frames);
  });
  PIF_ASSERT(c.frames && c.frames->end == reserved && outcome.end <= reserved, outcome.end, reserved);
  ++c.frame_writes;
  if (written) {
    for (const component::Frame& frame : outcome.frames) replace_frame(*c.frames, frame);
  } else {
    c.frames.reset();
    c.parity.reset();
  }
  return written;
}

// Out of the file that has the name: it may be another one than the LFS had open.
Status ScrubFrames::read_back(std::span<const component::Frame> frames) const {
  PIF_TRY_VALUE(auto files, component::open_parity(job_.storage, job_.stem, component::OpenMode::kRead));
  if (files.frames == nullptr) return fail(Code::kNotFound, "the file of copies was removed meanwhile");
  std::vector<std::byte> row;
  for (const component::Frame& frame : frames) PIF_TRY(component::read_frame(component_->file, files, frame, row));
  return {};
}

}  // namespace pif::lfs
