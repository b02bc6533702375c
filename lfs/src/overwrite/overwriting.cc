#include "overwrite/overwriting.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/pattern/runs.h"
#include "requests/piece_requests.h"
#include "store/in_place.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kQueuedBytesMax = 32u << 20;
constexpr std::size_t kQueuedMax = 16384;
constexpr std::uint64_t kBatchBytesMax = 8u << 20;  // of images; then only those join that add little, up to twice this
constexpr std::size_t kBeyondMax = 256;             // requests that a full batch passes over, looking for such
constexpr unsigned kWarmingMax = 4;     // components that are read for images at once: the executor has other work
constexpr std::size_t kDirtyMax = 256;  // components whose files stay open until the log is emptied

Error cannot_empty(const Error& why) {
  return {Code::kIo, "the redo log cannot be emptied, start the LFS again: " + why.text, {}};
}

}  // namespace

Overwriting::Overwriting(LfsContext& context, Peers& peers) : context_(context), published_rows_(context, peers) {
  context.operations.bind<&Overwriting::overwrite>(*this);
  context.operations.bind<&Overwriting::overwrite_pieces>(*this);
  context.operations.bind<&Overwriting::flush>(*this);
}

Status Overwriting::check(const Request& request) {
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

void Overwriting::overwrite(const Request& request, const proto::Overwrite& asked) {
  if (asked.count() == 0) return context_.replies.answer(request, fail(Code::kInvalid, "an overwrite of no rows"));
  take(request, FileId(asked.file()), {asked.first(), asked.count(), asked.within(), asked.bytes()});
}

void Overwriting::overwrite_pieces(const Request& request, const proto::OverwritePieces& asked) {
  const auto body = request.packet.body.span();
  if (asked.run_bytes() > body.size())
    return context_.replies.answer(request, fail(Code::kInvalid, "the runs are longer than the message"));
  const RunLimits limits{kFileBytesMax, body.size() - asked.run_bytes(), true};
  if (auto ok = check_runs(body.first(asked.run_bytes()), limits); !ok)
    return context_.replies.answer(request, fail(std::move(ok.error())));
  PIF_ASSERT(asked.run_bytes() > 0, body.size());
  take(request, FileId(asked.file()), {0, 0, 0, 0, asked.run_bytes()});
}

void Overwriting::take(const Request& request, FileId file, const Asked& asked) {
  if (auto ok = check(request); !ok) return context_.replies.answer(request, fail(std::move(ok.error())));
  auto component = check_component(request, file);
  if (!component) return context_.replies.answer(request, fail(std::move(component.error())));
  const RequestKey key{request.who.session, request.envelope().id()};
  const auto done = is_done(key);
  if (!done) return context_.replies.answer(request, fail(done.error()));
  if (*done) return context_.replies.answer(context_.replies.defer(request), Status());
  if (auto free = context_.check_not_held(**component); !free)
    return context_.replies.answer(request, fail(std::move(free.error())));
  if (auto opened = context_.components.open_files(**component, component::OpenMode::kWrite); !opened)
    return context_.replies.answer(request, fail(std::move(opened.error())));
  enqueue(request, std::make_shared<Waiting>(Waiting{0, key, *component, QueuedChange(*component), asked,
                                                     net::Buffer::copy_of(request.packet.body.span())}));
}

Result<bool> Overwriting::is_done(const RequestKey& key) const {
  const auto known = dedup_.look(key);
  if (known != RequestDedup::Known::kForgotten) return known == RequestDedup::Known::kDone;
  return fail(Code::kOutcomeUnknown,
              "this overwrite was sent too long ago to tell whether it was done: it is not done now");
}

void Overwriting::enqueue(const Request& request, WaitingPtr waiting) {
  const Component& component = *waiting->component;
  // What cannot be told without the disk is found out when its image is made.
  const auto target = target_of(*waiting, component.reader->cached());
  if (!target && target.error().code != Code::kBusy) return context_.replies.answer(request, fail(target.error()));
  if (target && component.shape.format.is_fixed()) {
    auto touched = touched_chunks(*target, component.shape.chunk_bytes, component.reader->tail().bytes);
    if (!touched) return context_.replies.answer(request, fail(std::move(touched.error())));
    waiting->touched = std::move(*touched);
  }
  const std::uint64_t length = component.shape.format.record_length;
  waiting->rows_end = component.shape.format.is_fixed() ? (target->end() + length - 1) / length
                                                        : waiting->asked.first + waiting->asked.count;
  waiting->is_published = waiting->rows_end <= PublishedRows::known(component);
  if (!waiting->is_published && PublishedRows::is_known_here(component))
    return context_.replies.answer(request, fail(not_published(*waiting, PublishedRows::known(component))));
  waiting->token = context_.replies.defer(request);
  PIF_ASSERT(waiting->token != 0);
  queued_bytes_ += waiting->bytes();
  queue_.push_back(waiting);
  if (!waiting->is_published) ask_published(waiting->component);
}

// Those that come while LFS 0 is being asked are asked for anew: what it says is of before.
void Overwriting::ask_published(const ComponentPtr& component) {
  if (!asking_.insert(component->file.value).second) return;
  std::vector<WaitingPtr> asked;
  for (const auto& waiting : queue_)
    if (waiting->component == component && !waiting->is_published) asked.push_back(waiting);
  PIF_ASSERT(!asked.empty(), component->file.value);
  published_rows_.ask(*component, [this, component, asked = std::move(asked)](const Result<std::uint64_t>& rows) {
    asking_.erase(component->file.value);
    for (const auto& waiting : asked) told_published(waiting, rows);
    // Perhaps of another component, if the file was removed and is back.
    const auto next = std::find_if(queue_.begin(), queue_.end(), [&](const WaitingPtr& w) {
      return w->component->file == component->file && !w->is_published;
    });
    if (next != queue_.end()) ask_published((*next)->component);
  });
}

void Overwriting::told_published(const WaitingPtr& waiting, const Result<std::uint64_t>& rows) {
  waiting->is_published = rows && waiting->rows_end <= *rows;
  const auto place = std::find(queue_.begin(), queue_.end(), waiting);
  if (waiting->is_published || place == queue_.end()) return;  // or all were refused meanwhile
  queue_.erase(place);
  PIF_ASSERT(queued_bytes_ >= waiting->bytes(), queued_bytes_, waiting->bytes());
  queued_bytes_ -= waiting->bytes();
  context_.replies.answer(waiting->token, fail(rows ? not_published(*waiting, *rows) : rows.error()));
}

Error Overwriting::not_published(const Waiting& waiting, std::uint64_t rows) {
  return {Code::kEndOfFile,
          fmt::format("rows of file {} are to be overwritten up to {}, and {} rows of it are published on this LFS",
                      name_of(waiting.component->file), waiting.rows_end, rows),
          {}};
}

Result<OverwriteTarget> Overwriting::target_of(const Waiting& w, const component::Reader& reader) {
  if (w.asked.run_bytes == 0) return rows_of(w, reader);
  if (!w.component->shape.format.is_fixed())
    return fail(Code::kUnsupported,
                fmt::format("file {}: records of variable length are overwritten whole", name_of(w.component->file)));
  const auto body = w.body.span();
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
  const auto body = waiting.body.span();
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

void Overwriting::advance() {
  if (busy()) return;
  if (context_.log.failed() && !stuck_)
    stuck_ = Error{Code::kIo, "the redo log failed to sync: overwrites stop until the LFS is started again", {}};
  if (stuck_) return refuse_all();
  context_.checkpointing = checkpoint_asked_ || context_.log.is_half_full() || dirty_.size() >= kDirtyMax;
  if (context_.checkpointing && may_drain()) return checkpoint();
  if (!context_.checkpointing && !queue_.empty()) start_batch();
}

void Overwriting::refuse_all() {
  context_.checkpointing = false;
  for (const auto& waiting : std::exchange(queue_, {})) context_.replies.answer(waiting->token, Status(fail(*stuck_)));
  queued_bytes_ = 0;
  if (checkpoint_asked_) end_checkpoint(fail(*stuck_));
  checkpoint_asked_ = false;
}

bool Overwriting::is_blocked(const Waiting& w, std::set<std::uint64_t>& blocked) const {
  if (blocked.contains(w.component->file.value)) return true;
  const bool is_slow = w.heat == Heat::kWarming || (w.heat == Heat::kCold && warming_ >= kWarmingMax);
  if (w.is_published && !is_slow && context_.may(Operation::kOverwrite, *w.component) != Permission::kLater)
    return false;
  blocked.insert(w.component->file.value);
  return true;
}

bool Overwriting::waiting() const {
  if (checkpoint_asked_ || context_.checkpointing) return may_drain();
  std::set<std::uint64_t> blocked;
  return std::any_of(queue_.begin(), queue_.end(), [&](const WaitingPtr& w) { return !is_blocked(*w, blocked); });
}

bool Overwriting::may_drain() const {
  return std::none_of(dirty_.begin(), dirty_.end(), [this](const auto& entry) {
    return context_.may(Operation::kCheckpoint, *entry.second) == Permission::kLater;
  });
}

void Overwriting::warm(const WaitingPtr& waiting) {
  const Component& c = *waiting->component;
  PIF_ASSERT(warming_ < kWarmingMax && c.reader && c.files, warming_);
  ++warming_;
  waiting->heat = Heat::kWarming;
  // The image itself is made anew when its batch begins: overwrites before it may be in between. Errors show then, too.
  auto work = [waiting, files = c.files, reader = *c.reader] {
    const auto target = target_of(*waiting, reader);
    if (target) (void)BatchImages().change(waiting->component, *target, reader);
  };
  context_.world.executor.submit(std::move(work), [this, waiting] {
    PIF_ASSERT(warming_ > 0 && waiting->heat == Heat::kWarming, warming_, waiting->heat);
    --warming_;
    waiting->heat = Heat::kWarm;
  });
}

// kBusy if the disk would hold up the loop. False: there is nothing to do, for rows of length 0.
Result<bool> Overwriting::change_images(BatchImages& images, const Waiting& waiting) {
  Component& c = *waiting.component;
  if (c.is_removed()) return fail(Code::kStaleFile, "the file was deleted meanwhile");
  if (c.failure) return fail(*c.failure);
  PIF_TRY(context_.components.open_files(c, component::OpenMode::kWrite));  // they may have been closed meanwhile
  const component::Reader reader = waiting.heat == Heat::kWarm ? *c.reader : c.reader->cached();
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
  return std::none_of(passed.beyond.begin(), passed.beyond.end(), [&](const WaitingPtr& earlier) {
    return earlier->component == waiting.component && have_common(earlier->touched, waiting.touched);
  });
}

bool Overwriting::is_answered(Batch& batch, const Waiting& waiting) const {
  const auto done = is_done(waiting.key);
  if (!done || *done) {
    context_.replies.answer(waiting.token, done ? Status() : Status(fail(done.error())));
    return true;
  }
  if (!batch.keys.contains(waiting.key)) return false;
  PIF_ASSERT(!batch.images.empty() && waiting.key.session != 0, waiting.key.request);
  batch.changes.push_back({waiting.token, waiting.key, waiting.component});
  return true;
}

bool Overwriting::join(Batch& batch, const WaitingPtr& waiting, Passed& passed) {
  if (is_blocked(*waiting, passed.files)) return false;
  if (!context_.replies.is_waiting(waiting->token)) return true;  // who asked is gone
  if (is_answered(batch, *waiting)) return true;
  if (!has_room(batch, *waiting, passed)) {
    passed.beyond.push_back(waiting);
    if (waiting->touched.empty()) passed.files.insert(waiting->component->file.value);
    return false;
  }
  const auto changed = change_images(batch.images, *waiting);
  if (!changed && changed.error().code == Code::kBusy) {
    waiting->heat = Heat::kCold;
    if (warming_ < kWarmingMax) warm(waiting);
    passed.files.insert(waiting->component->file.value);
    return false;
  }
  if (!changed || !*changed) {
    context_.replies.answer(waiting->token, changed ? Status() : Status(fail(changed.error())));
    return true;
  }
  if (waiting->component->stage() != Stage::kOverwriting) waiting->component->enter(Stage::kOverwriting);
  batch.changes.push_back({waiting->token, waiting->key, waiting->component});
  if (waiting->key.session != 0) batch.keys.insert(waiting->key);
  return true;
}

void Overwriting::gather(Batch& batch) {
  Passed passed;
  std::deque<WaitingPtr> later;
  while (!queue_.empty() && passed.beyond.size() < kBeyondMax) {
    const WaitingPtr waiting = std::move(queue_.front());
    queue_.pop_front();
    if (!join(batch, waiting, passed)) {
      later.push_back(waiting);
      continue;
    }
    PIF_ASSERT(queued_bytes_ >= waiting->bytes(), queued_bytes_, waiting->bytes());
    queued_bytes_ -= waiting->bytes();
  }
  std::move(later.rbegin(), later.rend(), std::front_inserter(queue_));
}

void Overwriting::start_batch() {
  PIF_ASSERT(!busy() && !context_.checkpointing);
  auto batch = std::make_shared<Batch>();
  gather(*batch);
  PIF_ASSERT(batch->images.empty() == batch->changes.empty(), batch->changes.size());
  if (!batch->changes.empty()) write_batch(std::move(batch));
}

void Overwriting::write_batch(std::shared_ptr<Batch> batch) {
  for (auto& image : batch->images.images()) {
    image.number = context_.numbers.take();
    const Component& c = *image.component;
    PIF_ASSERT(c.stage() == Stage::kOverwriting, c.file.value, c.stage());
    PIF_ASSERT(c.mode && *c.mode != component::OpenMode::kRead, c.file.value);
    PIF_ASSERT(!image.bytes.empty(), c.file.value);
    context_.log.add(image.make_entry(), image.number);
  }
  context_.log.close_batch({batch->keys.begin(), batch->keys.end()});
  syncing_ = true;
  auto written = std::make_shared<Status>();
  context_.world.executor.submit([log = context_.shared_log, batch, written] { *written = log->write_batch(); },
                                 [this, batch, written] { finish_batch(*batch, *written); });
}

void Overwriting::finish_batch(Batch& batch, const Status& written) {
  const auto& images = batch.images.images();
  PIF_ASSERT(syncing_ && !checkpointing_ && !images.empty(), images.size());
  context_.log.end_batch(written.has_value());
  syncing_ = false;
  if (!written) spdlog::error("{}", written.error().text);
  if (written) context_.numbers.became_durable(images.back().number);
  for (const auto& image : images) finish_image(image, written);
  for (const Change& change : batch.changes) answer(change, written);
  for (const auto& image : images)
    if (image.component->stage() == Stage::kOverwriting) image.component->end_change();
}

void Overwriting::finish_image(const BatchImages::Image& image, const Status& written) {
  Component& c = *image.component;
  PIF_ASSERT(c.stage() == Stage::kOverwriting || c.failure || c.is_removed(), c.file.value, c.stage());
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

void Overwriting::answer(const Change& change, const Status& written) {
  const Component& c = *change.component;
  if (!written) return context_.replies.answer(change.token, written);
  if (c.is_removed())
    return context_.replies.answer(change.token, Status(fail(Code::kStaleFile, "the file was deleted meanwhile")));
  // The log has it: it will be there when the LFS has been started again. Until then nobody may see half of it.
  if (c.failure) return context_.replies.answer(change.token, Status(fail(*c.failure)));
  dedup_.add(change.key, context_.now());
  context_.replies.answer(change.token, Status());
}

Status Overwriting::apply(const BatchImages::Image& image) {
  Component& c = *image.component;
  PIF_ASSERT(c.stage() == Stage::kOverwriting, c.file.value, c.stage());
  PIF_TRY(context_.components.open_files(c, component::OpenMode::kWrite));
  dirty_.emplace(c.file.value, image.component);
  c.dirty = true;
  auto tail = tail_of(c.state);
  PIF_TRY(write_home(c.shape, *c.files, image.first_chunk, image.bytes, tail));
  set_tail(c.state, tail);
  c.reader->set_tail(tail);
  context_.components.drop_writer(c);  // it may remember the old bytes of the last chunk
  c.applied = image.number;
  ++c.changes;
  return {};
}

void Overwriting::flush(const Request& request, const proto::Flush&) {
  if (stuck_) return context_.replies.answer(request, fail(*stuck_));
  flushers_.push_back(context_.replies.defer(request));
  checkpoint_asked_ = true;
}

void Overwriting::checkpoint() {
  PIF_ASSERT(!busy() && context_.checkpointing);
  checkpointing_ = true;
  checkpoint_asked_ = false;
  std::erase_if(dirty_, [](const auto& entry) { return entry.second->is_removed(); });
  for (const auto& [id, component] : dirty_) {
    // What a failed sync was to write may be lost, and is never told of again: the log still has it.
    if (!component->failure) continue;
    stuck_ = cannot_empty(*component->failure);
    spdlog::error("{}", stuck_->text);
    return end_checkpoint(fail(*stuck_));
  }
  sync_in_place();
}

void Overwriting::sync_in_place() {
  auto components = std::make_shared<std::vector<ComponentPtr>>();
  std::vector<std::shared_ptr<component::Files>> files;
  for (const auto& [id, component] : dirty_) {
    PIF_ASSERT(component->dirty && component->files, id);
    component->enter(Stage::kCheckpointing);
    components->push_back(component);
    files.push_back(component->files);
  }
  auto results = std::make_shared<std::vector<Status>>(components->size());
  auto work = [files, results] {
    for (std::size_t i = 0; i < files.size(); ++i) (*results)[i] = sync_home(*files[i]);
  };
  context_.world.executor.submit(std::move(work),
                                 [this, components, results] { in_place_synced(*components, *results); });
}

void Overwriting::in_place_synced(const std::vector<ComponentPtr>& components, const std::vector<Status>& results) {
  PIF_ASSERT(checkpointing_ && components.size() == results.size(), components.size(), results.size());
  for (std::size_t i = 0; i < components.size(); ++i) {
    Component& c = *components[i];
    if (results[i] || c.is_removed()) continue;
    context_.components.set_failed(c, results[i].error());
    spdlog::error("{}", c.failure->text);
    stuck_ = cannot_empty(results[i].error());
  }
  if (stuck_) return end_checkpoint(fail(*stuck_));
  // Sums of tails are durable in the catalogue before the log forgets them.
  auto left = std::make_shared<std::size_t>(1);
  auto failed = std::make_shared<Status>();
  const auto one_done = [this, left, failed](const Status& status) {
    PIF_ASSERT(*left > 0 && checkpointing_, *left);
    if (!status && status.error().code != Code::kStaleFile) *failed = status;
    if (--*left > 0) return;
    if (*failed) return restart_log();
    end_checkpoint(*failed);
  };
  for (const auto& c : components) {
    if (c->is_removed()) continue;
    ++*left;
    context_.batch.update(
        c, [number = c->applied](proto::ComponentState& state) { state.set_log_applied(number); }, one_done);
  }
  one_done({});
}

void Overwriting::restart_log() {
  PIF_ASSERT(checkpointing_ && !syncing_);
  dedup_.expire(context_.now());
  PIF_ASSERT(!context_.log.failed());
  auto result = std::make_shared<Status>();
  auto requests = std::make_shared<const LoggedRequests>(dedup_.snapshot());
  context_.world.executor.submit(
      [log = context_.shared_log, result, requests] { *result = log->checkpoint(0, *requests); },
      [this, result] { end_checkpoint(*result); });
}

void Overwriting::end_checkpoint(const Status& status) {
  for (const auto& [id, component] : dirty_)
    if (component->stage() == Stage::kCheckpointing) component->end_change();
  checkpointing_ = context_.checkpointing = false;
  if (status) {
    for (auto& [id, component] : dirty_) component->dirty = false;
    dirty_.clear();
  } else if (!stuck_) {
    stuck_ = status.error();
    spdlog::error("{}", status.error().text);
  }
  for (const auto token : std::exchange(flushers_, {})) context_.replies.answer(token, status);
}

}  // namespace pif::lfs
