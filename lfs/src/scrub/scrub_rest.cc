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
  return std::min(tail_.bytes, fixed_component_bytes(job_->keeper.layout, job_->keeper.index,
                                                     component_->shape.format.record_length, rows_, job_->published));
}

// Of a chunk that is shared the published rows must be known.
bool ScrubRows::may_forget_rest() const {
  if (job_->pass.only_look || is_changed()) return false;
  if (published_bytes() > tail_.bytes) return false;  // a keeper made rows longer than they can be
  const auto has_rest = [](const BadChunk& bad) { return bad.has_rest(); };
  return std::any_of(bad_.begin(), bad_.end(), has_rest) &&
         std::all_of(bad_.begin(), bad_.end(), [&](const BadChunk& bad) { return bad.is_known || !has_rest(bad); });
}

void ScrubRows::ask_length() {
  LfsContext& context = job_->context();
  if (context.now() < ask_next_) {
    next_try_ = ask_next_;
    return;
  }
  const LfsIndex sequencer =
      context.view.is_absent(job_->node_of(0)) ? parity::deputy_of(job_->keeper.layout) : LfsIndex(0);
  asked_ = {context.view.index(), component_->state.generation()};
  if (sequencer == job_->keeper.index) return take_length(context.length_at_rest(component_));
  if (!grant_) return keep_rest({Code::kUnavailable, lacking_, {}});
  is_busy_ = true;
  auto found = std::make_shared<FileLength>();
  auto request = length_request({sequencer, component_->file.value, false, asked_.view, true}, component_->shape.format,
                                [found](const LengthTold& told) -> Status {
                                  *found = told.length;
                                  return {};
                                });
  job_->pass.keeping.peers.run(
      *grant_, [&request](access::Requests& requests) { requests.add(std::move(request)); },
      [self = shared_from_this(), found](const Status& status) {
        self->is_busy_ = false;
        self->take_length(status ? Result<FileLength>(*found) : fail(status.error()));
      });
}

// What was published meanwhile is looked at as such.
void ScrubRows::take_length(const Result<FileLength>& length) {
  LfsContext& context = job_->context();
  if (component_->is_removed() || component_->failure) return end();
  if (!length) {
    const bool may_end = length.error().code == Code::kRetry || length.error().code == Code::kOldView;
    if (!may_end || context.now() >= patience_) return keep_rest(length.error());
    ask_next_ = next_try_ = context.now() + kAskAgain;
    return;
  }
  const bool is_same = asked_.view == context.view.index() && asked_.generation == component_->state.generation() &&
                       !is_changed() && context.may(Operation::kAppend, *component_) == Permission::kNow;
  const FileLength before = job_->published;
  extend(job_->published, *length);
  if (is_same && job_->published == before) return forget_rest();
  if (tries_ >= kTriesMax) return keep_rest({Code::kRetry, "the file is being appended to", {}});
  again();
}

void ScrubRows::keep_rest(const Error& why) {
  kept_ = why;
  step();
}

void ScrubRows::forget_rest() {
  PIF_ASSERT(!is_busy_ && !kept_ && may_forget_rest(), component_->file.value);
  is_busy_ = true;
  component_->enter(Stage::kAppending);  // nothing else is, meanwhile
  job_->context().components.drop_writer(*component_);
  auto tail = std::make_shared<Result<component::Tail>>(fail(Code::kInternal, "not read"));
  job_->pass.keeping.works.submit([self = shared_from_this(), tail] { *tail = self->published_tail(); },
                                  [self = shared_from_this(), tail] {
                                    if (self->component_->is_removed()) return self->forgotten({}, {});
                                    if (!*tail) return self->forgotten(fail(tail->error()), {});
                                    self->job_->context().batch.update(
                                        self->component_,
                                        [to = **tail](proto::ComponentState& state) { set_tail(state, to); },
                                        [self, to = **tail](const Status& status) { self->forgotten(status, to); });
                                  });
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

void ScrubRows::forgotten(const Status& status, const component::Tail& tail) {
  is_busy_ = false;
  component_->end_change();
  if (component_->is_removed() || component_->failure) return end();
  job_->context().components.drop_writer(*component_);
  if (!status) return keep_rest(status.error());
  tail_ = tail;
  for (BadChunk& bad : bad_) {
    if (bad.published == 0)
      report(bad, true, "forgotten: its rows are of an append that was cancelled");
    else
      bad.place.end = bad.place.begin + bad.published;
  }
  std::erase_if(bad_, [](const BadChunk& bad) { return bad.published == 0; });
  step();
}

}  // namespace pif::lfs
