#include "overwrite/overwriting.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/pattern/runs.h"
#include "redo/in_place.h"
#include "requests/piece_requests.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kQueuedBytesMax = 32u << 20;
constexpr std::size_t kQueuedMax = 16384;
constexpr std::uint64_t kBatchBytesMax = 8u << 20;  // of images; then only those join that add little, up to twice this
constexpr std::size_t kBeyondMax = 256;             // requests that a full batch passes over, looking for such
constexpr unsigned kWarmingMax = 4;                 // that read for their images at once: the executor has other work
constexpr std::size_t kDirtyMax = 256;              // components whose files stay open until the log is emptied

Error cannot_empty(const Error& why) {
  return {Code::kIo, "the redo log cannot be emptied, start the LFS again: " + why.text, {}};
}

}  // namespace

Overwriting::Overwriting(LfsContext& context, Peers& peers, Holding& holding)
    : context_(context),
      holding_(holding),
      published_rows_(context, peers),
      warming_(context.fibers, kWarmingMax),
      news_(context.fibers) {
  context.operations.bind<&Overwriting::overwrite>(*this);
  context.operations.bind<&Overwriting::overwrite_pieces>(*this);
  context.operations.bind<&Overwriting::flush>(*this);
  context.fibers.start<&Overwriting::serve>(*this);
}

// ---- one request ---------------------------------------------------------------------------------------------------

Status Overwriting::overwrite(const Request& request, const proto::Overwrite& asked) {
  if (asked.count() == 0) return fail(Code::kInvalid, "an overwrite of no rows");
  return take(request, FileId(asked.file()), {asked.first(), asked.count(), asked.within(), asked.bytes()});
}

Status Overwriting::overwrite_pieces(const Request& request, const proto::OverwritePieces& asked) {
  const auto body = request.packet.body.span();
  if (asked.run_bytes() > body.size()) return fail(Code::kInvalid, "the runs are longer than the message");
  const RunLimits limits{kFileBytesMax, body.size() - asked.run_bytes(), true};
  PIF_TRY(check_runs(body.first(asked.run_bytes()), limits));
  PIF_ASSERT(asked.run_bytes() > 0, body.size());
  return take(request, FileId(asked.file()), {0, 0, 0, 0, asked.run_bytes()});
}

Status Overwriting::take(const Request& request, FileId file, const Asked& asked) {
  PIF_TRY(check_room(request));
  PIF_TRY_VALUE(const ComponentPtr component, check_component(request, file));
  const RequestKey key{request.who.session, request.envelope().id()};
  PIF_TRY_VALUE(const bool was_done, is_done(key));
  if (was_done) return {};
  PIF_TRY(LfsContext::check_not_held(*component));
  PIF_TRY(context_.components.open_files(*component, component::OpenMode::kWrite));
  Waiting waiting{key, component, asked, request.packet.body.span(), request.deadline};
  PIF_TRY(look_at(waiting));
  queued_bytes_ += waiting.bytes();
  queue_.push_back(&waiting);
  const daemon::AtExit leave([&] {
    if (!waiting.is_taken) leave_queue(waiting);
  });
  return wait_in_queue(waiting);
}

Status Overwriting::check_room(const Request& request) const {
  if (stuck_) return fail(*stuck_);
  if (queue_.size() >= kQueuedMax || queued_bytes_ + request.packet.body.size() > kQueuedBytesMax)
    return fail(Code::kRetry, fmt::format("{} bytes of overwrites are waiting for the redo log", queued_bytes_));
  return {};
}

Result<ComponentPtr> Overwriting::check_component(const Request& request, FileId file) {
  PIF_TRY_VALUE(auto component, context_.published(request, file));
  if (component->shape.form > 0)
    return fail(Code::kUnsupported, fmt::format("protected: file {} has parity, and this version cannot overwrite "
                                                "in place; put it anew or copy it with --bevy 0",
                                                file.value));
  PIF_TRY(LfsContext::check_not_older(*component));
  return component;
}

Result<bool> Overwriting::is_done(const RequestKey& key) const {
  const auto known = dedup_.look(key);
  if (known != RequestDedup::Known::kForgotten) return known == RequestDedup::Known::kDone;
  return fail(Code::kOutcomeUnknown,
              "this overwrite was sent too long ago to tell whether it was done: it is not done now");
}

// What is not known without the disk is found out when its image is made.
Status Overwriting::look_at(Waiting& waiting) {
  const Component& component = *waiting.component;
  const bool is_fixed = component.shape.format.is_fixed();
  const auto target = target_of(waiting, component.reader->cached());
  if (!target && target.error().code != Code::kBusy) return fail(target.error());
  if (target && is_fixed) {
    PIF_TRY_VALUE(waiting.touched,
                  touched_chunks(*target, component.shape.chunk_bytes, component.reader->tail().bytes));
  }
  const std::uint64_t length = component.shape.format.record_length;
  waiting.rows_end = is_fixed ? (target->end() + length - 1) / length : waiting.asked.first + waiting.asked.count;
  const std::uint64_t known = PublishedRows::known(component);
  if (PublishedRows::is_known_here(component)) return check_published(waiting, known);
  if (waiting.rows_end > known) waiting.hurdle = Hurdle::kUnpublished;
  return {};
}

Status Overwriting::check_published(const Waiting& waiting, std::uint64_t rows) {
  if (waiting.rows_end <= rows) return {};
  return fail(Code::kEndOfFile,
              fmt::format("rows of file {} are to be overwritten up to {}, and {} rows of it are published on this LFS",
                          name_of(waiting.component->file), waiting.rows_end, rows));
}

// Until it is answered. One that is in a batch stays until the batch has ended.
Status Overwriting::wait_in_queue(Waiting& waiting) {
  while (!waiting.result) {
    if (!waiting.is_taken && waiting.hurdle != Hurdle::kNone) {
      PIF_TRY(clear_hurdle(waiting));
      continue;
    }
    if (!waiting.is_taken) look_again();
    PIF_ASSERT(!waiting.is_taken || is_busy_, waiting.key.request);  // with its batch under way
    waiting.wait = context_.fibers.begin_wait();
    if (!context_.fibers.wait(waiting.wait, waiting.is_taken ? kNever : waiting.deadline) && !waiting.is_taken)
      return fail(Code::kRetry, "the overwrite could not begin in time");
  }
  return std::move(*waiting.result);
}

Status Overwriting::clear_hurdle(Waiting& waiting) {
  Component& c = *waiting.component;
  switch (waiting.hurdle) {
    case Hurdle::kUnpublished: {
      PIF_TRY_VALUE(const std::uint64_t rows, published_rows_.ask(waiting.component));
      PIF_TRY(check_published(waiting, rows));
      break;
    }
    case Hurdle::kCold: warm(waiting); break;
    case Hurdle::kBusy:
      PIF_TRY(LfsContext::check_not_held(c));  // by a worker that came since
      waiting.held = c.lock.acquire(context_.fibers, Mode::kOverwrite, waiting.deadline);
      if (!waiting.held.is_held()) return fail(Code::kRetry, "the overwrite could not begin in time");
      if (is_checkpointing_ || holding_.is_asked()) waiting.held.release();
      break;
    case Hurdle::kNone: break;
  }
  waiting.hurdle = Hurdle::kNone;
  return {};
}

void Overwriting::warm(Waiting& waiting) {
  PIF_ASSERT(waiting.hurdle == Hurdle::kCold);
  const auto slot = warming_.acquire();
  const Component& c = *waiting.component;
  if (waiting.is_taken || !c.reader || !c.files) return;  // refused, removed, or closed meanwhile
  // The image itself is made anew when its batch begins: overwrites before it may be in between. Errors show then, too.
  context_.disk([&waiting, files = c.files, reader = *c.reader] {
    const auto target = target_of(waiting, reader);
    if (target) (void)BatchImages().change(waiting.component, *target, reader);
  });
  waiting.is_warm = true;
}

Result<OverwriteTarget> Overwriting::target_of(const Waiting& w, const component::Reader& reader) {
  if (w.asked.run_bytes == 0) return rows_of(w, reader);
  if (!w.component->shape.format.is_fixed())
    return fail(Code::kUnsupported,
                fmt::format("file {}: records of variable length are overwritten whole", name_of(w.component->file)));
  const auto body = w.body;
  PIF_TRY_VALUE(const auto runs, patterns::RunDecoder::make(body.first(w.asked.run_bytes), {}));
  PIF_ASSERT(runs.payload() == body.size() - w.asked.run_bytes, runs.payload(), body.size());
  if (runs.end() <= reader.tail().bytes) return OverwriteTarget(runs, body.subspan(w.asked.run_bytes));
  return fail(Code::kEndOfFile, fmt::format("a piece of file {} ends at byte {}, and this LFS has {}",
                                            name_of(w.component->file), runs.end(), reader.tail().bytes));
}

Result<OverwriteTarget> Overwriting::rows_of(const Waiting& waiting, const component::Reader& reader) {
  const auto& tail = reader.tail();
  const Asked& w = waiting.asked;
  const Component& component = *waiting.component;
  if (w.first >= tail.rows || w.count > tail.rows - w.first)
    return fail(Code::kEndOfFile, fmt::format("rows {} to {} of file {} are to be overwritten, this LFS has {}",
                                              w.first, w.first + w.count, name_of(component.file), tail.rows));
  const auto body = waiting.body;
  if (component.shape.format.is_fixed()) {
    const std::uint64_t length = component.shape.format.record_length;
    const std::uint64_t begin = w.first * length;
    const std::uint64_t end = std::min((w.first + w.count) * length, tail.bytes);
    if (w.within == 0 && w.bytes == 0) {
      if (body.size() == end - begin) return OverwriteTarget(begin, body);
      return fail(Code::kInvalid,
                  fmt::format("a body of {} bytes for {} rows of {} bytes", body.size(), w.count, end - begin));
    }
    if (w.count != 1 || w.bytes != body.size() || w.bytes > end - begin || w.within > end - begin - w.bytes)
      return fail(Code::kInvalid, fmt::format("bytes {} to {} of one record, with a body of {}; the record has {}",
                                              w.within, std::uint64_t{w.within} + w.bytes, body.size(), end - begin));
    return OverwriteTarget(begin + w.within, body);
  }
  if (w.within != 0 || w.bytes != 0) return fail(Code::kInvalid, "variable records are overwritten whole");
  PIF_TRY_VALUE(const auto rows, parse_variable(body, w.count));
  std::vector<std::uint64_t> ends(w.count + 1);
  PIF_TRY(reader.read_ends(w.first, w.count, ends));
  for (std::uint64_t i = 0; i < w.count; ++i)
    if (ends[i + 1] - ends[i] != rows.lengths[i])
      return fail(Code::kInvalid, fmt::format("row {} has {} bytes, not {}: an overwrite keeps the length", w.first + i,
                                              ends[i + 1] - ends[i], rows.lengths[i]));
  return OverwriteTarget(ends[0], rows.data);
}

// ---- the fiber that has the log ------------------------------------------------------------------------------------

void Overwriting::serve() {
  for (;;) {
    while (!has_news_) news_.wait();
    context_.fibers.settle();  // one batch takes what one turn asked for
    wait_while_held();
    has_news_ = false;
    if (context_.log.failed() && !stuck_)
      stuck_ = Error{Code::kIo, "the redo log failed to sync: overwrites stop until the LFS is started again", {}};
    if (stuck_)
      refuse_all();
    else if (is_checkpoint_due())
      checkpoint();
    else if (write_batch())
      look_again();
  }
}

void Overwriting::wait_while_held() {
  while (holding_.is_asked()) {
    unlock_queue();
    holding_.wait_for_news();
  }
}

void Overwriting::unlock_queue() {
  for (Waiting* const waiting : queue_) waiting->held.release();
}

void Overwriting::look_again() {
  has_news_ = true;
  news_.notify();
}

void Overwriting::refuse_all() {
  for (Waiting* const waiting : std::exchange(queue_, {})) answer(*waiting, fail(*stuck_));
  queued_bytes_ = 0;
  is_checkpoint_asked_ = false;
  for (const auto& done : std::exchange(flushers_, {})) done(fail(*stuck_));
}

void Overwriting::leave_queue(const Waiting& waiting) {
  const std::size_t left = std::erase(queue_, &waiting);
  PIF_ASSERT(left == 1 && queued_bytes_ >= waiting.bytes(), left, queued_bytes_, waiting.bytes());
  queued_bytes_ -= waiting.bytes();
  look_again();  // those behind it may begin
}

void Overwriting::answer(Waiting& waiting, Status result) {
  PIF_ASSERT(!waiting.result);
  waiting.is_taken = true;
  waiting.held.release();
  waiting.result = std::move(result);
  context_.fibers.wake(waiting.wait);
}

// ---- batches -------------------------------------------------------------------------------------------------------

bool Overwriting::write_batch() {
  PIF_ASSERT(!is_busy_ && !is_checkpointing_);
  Batch batch;
  gather(batch);
  auto& images = batch.images.images();
  PIF_ASSERT(images.empty() == batch.changes.empty(), batch.changes.size());
  if (images.empty()) return false;
  is_busy_ = true;
  const daemon::AtExit end([&] { is_busy_ = false; });
  add_to_log(batch);
  const Status written = context_.disk<&RedoLog::write_batch>(context_.log);
  PIF_ASSERT(is_busy_ && !is_checkpointing_);
  context_.log.end_batch(written.has_value());
  if (!written) spdlog::error("{}", written.error().text);
  if (written) context_.numbers.became_durable(images.back().number);
  for (const auto& image : images) put_in_place(image, written);
  for (Waiting* const waiting : batch.changes) answer(*waiting, outcome_of(*waiting, written));
  return true;
}

void Overwriting::gather(Batch& batch) {
  Passed passed;
  std::deque<Waiting*> later;
  while (!queue_.empty() && passed.beyond.size() < kBeyondMax) {
    Waiting* const waiting = queue_.front();
    queue_.pop_front();
    if (!join(batch, *waiting, passed)) {
      later.push_back(waiting);
      continue;
    }
    waiting->is_taken = true;
    PIF_ASSERT(queued_bytes_ >= waiting->bytes(), queued_bytes_, waiting->bytes());
    queued_bytes_ -= waiting->bytes();
  }
  std::move(later.rbegin(), later.rend(), std::front_inserter(queue_));
}

bool Overwriting::join(Batch& batch, Waiting& waiting, Passed& passed) {
  if (is_blocked(waiting, passed)) return false;
  if (is_answered(batch, waiting)) return true;
  if (!has_room(batch, waiting, passed)) {
    passed.beyond.push_back(&waiting);
    if (waiting.touched.empty()) passed.files.insert(waiting.component->file.value);
    return false;
  }
  const auto changed = change_images(batch.images, waiting);
  if (!changed && changed.error().code == Code::kBusy) {
    waiting.hurdle = Hurdle::kCold;
    context_.fibers.wake(waiting.wait);
    passed.files.insert(waiting.component->file.value);
    return false;
  }
  if (!changed || !*changed) {
    answer(waiting, changed ? Status() : fail(changed.error()));
    return true;
  }
  PIF_ASSERT(waiting.held.is_held(), waiting.component->file.value);  // until it is answered
  batch.changes.push_back(&waiting);
  if (waiting.key.session != 0) batch.keys.insert(waiting.key);
  return true;
}

// Then neither can those of the same file begin that came later.
bool Overwriting::is_blocked(Waiting& waiting, Passed& passed) {
  if (passed.files.contains(waiting.component->file.value)) return true;
  if (waiting.hurdle == Hurdle::kNone && !waiting.held.is_held())
    waiting.held = waiting.component->lock.try_acquire(Mode::kOverwrite);
  if (waiting.hurdle == Hurdle::kNone && !waiting.held.is_held()) {
    waiting.hurdle = Hurdle::kBusy;
    context_.fibers.wake(waiting.wait);
  }
  if (waiting.hurdle == Hurdle::kNone) return false;
  passed.files.insert(waiting.component->file.value);
  return true;
}

bool Overwriting::is_answered(Batch& batch, Waiting& waiting) {
  const auto done = is_done(waiting.key);
  if (!done || *done) {
    answer(waiting, done ? Status() : fail(done.error()));
    return true;
  }
  if (!batch.keys.contains(waiting.key)) return false;
  PIF_ASSERT(!batch.images.empty() && waiting.key.session != 0, waiting.key.request);
  batch.changes.push_back(&waiting);
  return true;
}

// kBusy if the disk would hold up the loop. False: there is nothing to do, for rows of length 0.
Result<bool> Overwriting::change_images(BatchImages& images, const Waiting& waiting) {
  Component& c = *waiting.component;
  PIF_TRY(check_there(c));
  PIF_TRY(context_.components.open_files(c, component::OpenMode::kWrite));  // they may have been closed meanwhile
  const component::Reader reader = waiting.is_warm ? *c.reader : c.reader->cached();
  PIF_TRY_VALUE(const auto target, target_of(waiting, reader));
  PIF_TRY(images.change(waiting.component, target, reader));
  return !target.empty();
}

// Whom a full batch takes along must not begin before what came earlier and changes the same chunks.
bool Overwriting::has_room(const Batch& batch, const Waiting& waiting, const Passed& passed) {
  const std::uint64_t bytes = batch.images.bytes();
  if (bytes < kBatchBytesMax) return true;
  if (waiting.touched.empty()) return false;
  std::uint64_t touched = 0;
  for (const ChunkRange& range : waiting.touched) touched += range.count;
  const Component& c = *waiting.component;
  const std::uint64_t missing = batch.images.count_missing(c.file, waiting.touched, touched / 4);
  if (missing > touched / 4 || bytes + missing * c.shape.chunk_bytes > 2 * kBatchBytesMax) return false;
  return std::none_of(passed.beyond.begin(), passed.beyond.end(), [&](const Waiting* earlier) {
    return earlier->component == waiting.component && have_common(earlier->touched, waiting.touched);
  });
}

void Overwriting::add_to_log(Batch& batch) {
  for (auto& image : batch.images.images()) {
    image.number = context_.numbers.take();
    const Component& c = *image.component;
    PIF_ASSERT(c.lock.is_held(Mode::kOverwrite), c.file.value);
    PIF_ASSERT(c.mode && *c.mode != component::OpenMode::kRead, c.file.value);
    PIF_ASSERT(!image.bytes.empty(), c.file.value);
    context_.log.add(image.make_entry(), image.number);
  }
  context_.log.close_batch({batch.keys.begin(), batch.keys.end()});
}

void Overwriting::put_in_place(const BatchImages::Image& image, const Status& written) {
  Component& c = *image.component;
  PIF_ASSERT(c.lock.is_held(Mode::kOverwrite), c.file.value);
  PIF_ASSERT(image.number > c.applied, image.number, c.applied);
  // A failed entry may be in the log all the same. What is made durable of the component from here on says that it has
  // no need of it: its image would put back a chunk that rows were added to since.
  if (!written) c.applied = image.number;
  if (!written || c.is_removed() || c.failure) return;
  if (auto applied = apply(image); !applied) {
    context_.components.set_failed(c, applied.error());
    stuck_ = *c.failure;
  }
}

Status Overwriting::apply(const BatchImages::Image& image) {
  Component& c = *image.component;
  PIF_ASSERT(c.lock.is_held(Mode::kOverwrite) && c.is_whole(), c.file.value);
  PIF_TRY(context_.components.open_files(c, component::OpenMode::kWrite));
  dirty_.emplace(c.file.value, image.component);
  c.dirty = true;
  auto tail = tail_of(c.state);
  PIF_TRY(write_in_place(c.shape, *c.files, image.first_chunk, image.bytes, tail));
  set_tail(c.state, tail);
  c.reader->set_tail(tail);
  context_.components.drop_writer(c);  // it may remember the old bytes of the last chunk
  c.applied = image.number;
  ++c.changes;
  return {};
}

Status Overwriting::outcome_of(const Waiting& waiting, const Status& written) {
  const Component& c = *waiting.component;
  PIF_TRY(written);
  // Of one that failed the log has it: it will be there when the LFS has been started again. Until then nobody may see
  // half of it.
  PIF_TRY(check_there(c));
  dedup_.add(waiting.key, context_.now());
  return {};
}

// ---- checkpoints ---------------------------------------------------------------------------------------------------

Status Overwriting::flush(const Request&, const proto::Flush&) {
  if (stuck_) return fail(*stuck_);
  is_checkpoint_asked_ = true;
  look_again();
  return daemon::await<Status>(context_.fibers, [&](auto done) { flushers_.push_back(std::move(done)); });
}

bool Overwriting::is_checkpoint_due() const {
  return is_checkpoint_asked_ || context_.log.is_half_full() || dirty_.size() >= kDirtyMax;
}

void Overwriting::checkpoint() {
  is_checkpointing_ = true;
  unlock_queue();
  wait_while_held();
  const std::vector<LockedComponent> locked = lock_dirty();
  wait_while_held();
  PIF_ASSERT(!is_busy_);
  is_busy_ = true;
  is_checkpoint_asked_ = false;
  const Status status = empty_log();
  is_busy_ = is_checkpointing_ = false;
  if (!status && !stuck_) stuck_ = status.error();
  if (!status) spdlog::error("{}", status.error().text);
  for (const auto& [id, component] : dirty_)
    if (status) component->dirty = false;
  if (status) dirty_.clear();
  for (const auto& done : std::exchange(flushers_, {})) done(status);
  look_again();
}

// In turn behind those who change them, so that nothing more is appended to what is dirty before it is synced. Only
// this fiber makes a component dirty.
std::vector<LockedComponent> Overwriting::lock_dirty() {
  std::vector<LockedComponent> locked;
  for (const auto& [id, component] : dirty_)
    locked.push_back({component, component->lock.acquire(context_.fibers, Mode::kCheckpoint, kNever)});
  PIF_ASSERT(locked.size() == dirty_.size(), locked.size(), dirty_.size());
  return locked;
}

Status Overwriting::empty_log() {
  std::erase_if(dirty_, [](const auto& entry) { return entry.second->is_removed(); });
  std::vector<ComponentPtr> components;
  for (const auto& [id, component] : dirty_) {
    // What a failed sync was to write may be lost, and is never reported again: the log still has it.
    if (component->failure) return fail(cannot_empty(*component->failure));
    PIF_ASSERT(component->dirty && component->files && component->lock.is_held(Mode::kCheckpoint), id);
    components.push_back(component);
  }
  PIF_TRY(sync_in_place(components));
  PIF_TRY(commit_tails(components));
  dedup_.expire(context_.now());
  PIF_ASSERT(!context_.log.failed());
  PIF_ASSERT(is_busy_ && is_checkpointing_);
  const LoggedRequests requests = dedup_.snapshot();
  return context_.disk([&] { return context_.log.checkpoint(0, requests); });
}

Status Overwriting::sync_in_place(const std::vector<ComponentPtr>& components) {
  std::vector<std::shared_ptr<component::Files>> files;
  for (const auto& component : components) files.push_back(component->files);
  std::vector<Status> results(files.size());
  context_.disk([&] {
    for (std::size_t i = 0; i < files.size(); ++i) results[i] = sync_data_and_sums(*files[i]);
  });
  Status status;
  for (std::size_t i = 0; i < components.size(); ++i) {
    Component& c = *components[i];
    if (results[i] || c.is_removed()) continue;
    context_.components.set_failed(c, results[i].error());
    spdlog::error("{}", c.failure->text);
    status = fail(cannot_empty(results[i].error()));
  }
  return status;
}

Status Overwriting::commit_tails(const std::vector<ComponentPtr>& components) {
  return context_.batch.commit_each(components, [](const Component& component, proto::ComponentState& state) {
    state.set_log_applied(component.applied);
  });
}

}  // namespace pif::lfs
