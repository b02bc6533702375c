// Rows behind the published ones that went bad (scrub_rows.h). They are of an append that is under way, or of one that
// was cancelled, and then they stay until the next one drops them. Nobody reads them, and nobody has others of them.
// But some share a chunk, and so a sum, with the last published rows, which could not be written anew without them.
//
// So the component is made to end with the published rows, in the catalogue first, as it is when a later append begins.
// Rule: only rows are forgotten that were here before the sequencer was asked, and that it answers for (Length with
// at_rest). All ranges that they can be of have then been published or cancelled, and rows that come later are of a
// newer generation.
#include <algorithm>

#include "parity/length_request.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "scrub/scrub_rows.h"

namespace pif::lfs {
namespace {

constexpr Duration kAskAgain = std::chrono::milliseconds(200);

}  // namespace

std::uint64_t ScrubRows::published_bytes() const {
  if (!component_->shape.format.is_fixed()) return offset_;
  return std::min(tail_.bytes, fixed_component_bytes(job_.keeper.layout, job_.keeper.index,
                                                     component_->shape.format.record_length, rows_, job_.published));
}

// Of a chunk that is shared the published rows must be known.
bool ScrubRows::may_forget_rest() const {
  if (job_.pass.only_look || is_changed()) return false;
  if (published_bytes() > tail_.bytes) return false;  // a keeper made rows longer than they can be
  const auto has_rest = [](const BadChunk& bad) { return bad.has_rest(); };
  return std::any_of(bad_.begin(), bad_.end(), has_rest) &&
         std::all_of(bad_.begin(), bad_.end(), [&](const BadChunk& bad) { return bad.is_known || !has_rest(bad); });
}

// What was published meanwhile is looked at as such.
bool ScrubRows::forget_rest(Time patience) {
  LfsContext& context = job_.context();
  const std::uint64_t view = context.view.index(), generation = component_->state.generation();
  const auto length = ask_length(view);
  if (job_.is_gone()) return true;
  if (!length) {
    const bool may_end = length.error().code == Code::kRetry || length.error().code == Code::kOldView;
    if (may_end && context.now() < patience)
      job_.pass.wait_until(context.now() + kAskAgain);
    else
      kept_ = length.error();
    return true;
  }
  const auto held = component_->lock.try_acquire(Mode::kRewrite);
  const bool is_same =
      held.is_held() && view == context.view.index() && generation == component_->state.generation() && !is_changed();
  const FileLength before = job_.published;
  extend(job_.published, *length);
  if (is_same && job_.published == before) {
    const Status cut = cut_rest();
    if (job_.is_gone()) return true;
    if (!cut) kept_ = cut.error();
    if (cut) report_forgotten();
    return true;
  }
  if (tries_ < kTriesMax) return false;
  kept_ = {Code::kRetry, "the file is being appended to", {}};
  return true;
}

Result<FileLength> ScrubRows::ask_length(std::uint64_t view) {
  LfsContext& context = job_.context();
  const LfsIndex sequencer =
      context.view.is_absent(job_.node_of(0)) ? parity::deputy_of(job_.keeper.layout) : LfsIndex(0);
  if (sequencer == job_.keeper.index) return job_.pass.lengths.length_at_rest(component_);
  if (!grant_) return fail(Code::kUnavailable, lacking_);
  FileLength found;
  PIF_TRY(job_.pass.keeping.peers.run(*grant_, [&](access::Requests& requests) {
    requests.add(length_request({sequencer, component_->file.value, false, view, true}, component_->shape.format,
                                [&found](const LengthAnswer& answer) -> Status {
                                  found = answer.length;
                                  return {};
                                }));
  }));
  return found;
}

Status ScrubRows::cut_rest() {
  LfsContext& context = job_.context();
  PIF_ASSERT(!kept_ && may_forget_rest(), component_->file.value);
  PIF_ASSERT(component_->lock.is_held(Mode::kRewrite), component_->file.value);
  context.components.drop_writer(*component_);
  PIF_TRY_VALUE(const component::Tail tail, job_.pass.keeping.works.run<&ScrubRows::published_tail>(*this));
  PIF_TRY(context.batch.commit(component_, [tail](proto::ComponentState& state) { set_tail(state, tail); }));
  tail_ = tail;
  return {};
}

// What shares a chunk with published rows is written anew without them.
void ScrubRows::report_forgotten() {
  job_.context().components.drop_writer(*component_);
  for (BadChunk& bad : bad_) {
    if (bad.published == 0)
      report(bad, true, "forgotten: its rows are of an append that was cancelled");
    else
      bad.place.end = bad.place.begin + bad.published;
  }
  std::erase_if(bad_, [](const BadChunk& bad) { return bad.published == 0; });
}

// The chunk of the stream in which published rows end, if it is bad.
const BadChunk* ScrubRows::half_published(ScrubStream stream) const {
  const auto found = std::find_if(bad_.begin(), bad_.end(), [stream](const BadChunk& bad) {
    return bad.stream == stream && bad.published > 0 && bad.has_rest();
  });
  return found == bad_.end() ? nullptr : &*found;
}

// Away from the loop. As tail_at() has it, but for chunks that are bad: of those by the bytes that they will have.
Result<component::Tail> ScrubRows::published_tail() {
  const component::Shape& shape = component_->shape;
  const component::Reader reader(shape, tail_, *files_);
  component::Tail tail{rows_, published_bytes(), 0, 0};
  PIF_ASSERT(tail.rows <= tail_.rows && tail.bytes <= tail_.bytes, tail.rows, tail.bytes);
  const std::uint64_t begin = tail.bytes - tail.bytes % shape.chunk_bytes;
  if (const BadChunk* const bad = half_published(ScrubStream::kData)) {
    PIF_ASSERT(bad->place.begin == begin && bad->bytes.size() == tail.bytes - begin, begin, bad->bytes.size());
    tail.data_sum = partial_sum(shape, ScrubStream::kData, bad->chunk, bad->bytes);
  } else if (begin < tail.bytes) {
    std::vector<std::byte> bytes(tail.bytes - begin);
    PIF_TRY(reader.read_bytes(begin, bytes));
    tail.data_sum = partial_sum(shape, ScrubStream::kData, begin / shape.chunk_bytes, bytes);
  }
  constexpr std::uint64_t kPerChunk = component::kIndexChunkBytes / sizeof(std::uint64_t);
  const Row first = rows_ - rows_ % kPerChunk;
  if (shape.format.is_fixed() || first == rows_) return tail;
  if (const BadChunk* const bad = half_published(ScrubStream::kIndex)) {
    tail.index_sum = partial_sum(shape, ScrubStream::kIndex, bad->chunk, bad->bytes);
    return tail;
  }
  std::vector<std::uint64_t> ends(rows_ - first + 1);
  PIF_TRY(reader.read_ends(first, rows_ - first, ends));
  tail.index_sum =
      partial_sum(shape, ScrubStream::kIndex, first / kPerChunk, std::as_bytes(std::span(ends).subspan(1)));
  return tail;
}

}  // namespace pif::lfs
