#include "overwrite/overwriting.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "store/in_place.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kQueuedBytesMax = 32u << 20;
constexpr std::size_t kQueuedMax = 16384;
constexpr std::uint64_t kBatchBytesMax = 8u << 20;
constexpr unsigned kWarmingMax = 4;     // components that are read for images at once: the executor has other work
constexpr std::size_t kDirtyMax = 256;  // components whose files stay open until the log is emptied

Error cannot_empty(const Error& why) {
  return {Code::kIo, "the redo log cannot be emptied, start the LFS again: " + why.text, {}};
}

}  // namespace

Overwriting::Overwriting(LfsContext& context) : context_(context) {
  context.operations.bind<&Overwriting::overwrite>(*this);
  context.operations.bind<&Overwriting::flush>(*this);
}

Status Overwriting::check(const Request& request) {
  const auto& asked = request.envelope().overwrite();
  if (stuck_) return fail(*stuck_);
  if (queue_.size() >= kQueuedMax || queued_bytes_ + request.packet.body.size() > kQueuedBytesMax)
    return fail(Code::kRetry, fmt::format("{} bytes of overwrites are waiting for the redo log", queued_bytes_));
  if (asked.count() == 0) return fail(Code::kInvalid, "an overwrite of no rows");
  return {};
}

void Overwriting::overwrite(const Request& request, const proto::Overwrite& asked) {
  if (auto ok = check(request); !ok) return context_.replies.answer(request, fail(std::move(ok.error())));
  auto component = context_.published(request, FileId(asked.file()));
  if (!component) return context_.replies.answer(request, fail(std::move(component.error())));
  if ((*component)->shape.form > 0)
    return context_.replies.answer(
        request,
        fail(Code::kUnsupported, fmt::format("protected: file {} has parity, and this version cannot overwrite "
                                             "in place; put it anew or copy it with --bevy 0",
                                             asked.file())));
  if (auto ok = LfsContext::check_not_older(**component); !ok)
    return context_.replies.answer(request, fail(std::move(ok.error())));
  const RequestDedup::Key key{request.who.session, request.envelope().id()};
  if (dedup_.knows(key)) return context_.replies.answer(context_.replies.defer(request), Status());
  if (auto free = context_.check_not_held(**component); !free)
    return context_.replies.answer(request, fail(std::move(free.error())));
  if (auto opened = context_.components.open_files(**component, component::OpenMode::kWrite); !opened)
    return context_.replies.answer(request, fail(std::move(opened.error())));
  auto waiting = std::make_shared<Waiting>(Waiting{0, key, *component, QueuedChange(*component), asked.first(),
                                                   asked.count(), asked.within(), asked.bytes(),
                                                   net::Buffer::copy_of(request.packet.body.span())});
  // What cannot be told without the disk is found out when its image is made.
  const auto target = target_of(*waiting, (*component)->reader->cached());
  if (!target && target.error().code != Code::kBusy) return context_.replies.answer(request, fail(target.error()));
  waiting->token = context_.replies.defer(request);
  PIF_ASSERT(waiting->token != 0);
  queued_bytes_ += waiting->body.size();
  queue_.push_back(std::move(waiting));
}

Result<Overwriting::Target> Overwriting::target_of(const Waiting& w, const component::Reader& reader) {
  const auto& tail = reader.tail();
  if (w.first >= tail.rows || w.count > tail.rows - w.first)
    return fail(Code::kEndOfFile, fmt::format("rows {} to {} of file {} are to be overwritten, this LFS has {}",
                                              w.first, w.first + w.count, name_of(w.component->file), tail.rows));
  const auto body = w.body.span();
  if (w.component->shape.format.is_fixed()) {
    const std::uint64_t length = w.component->shape.format.record_length;
    const std::uint64_t begin = w.first * length;
    const std::uint64_t end = std::min((w.first + w.count) * length, tail.bytes);
    if (w.within == 0 && w.bytes == 0) {
      if (body.size() == end - begin) return Target{begin, body};
      return fail(Code::kInvalid,
                  fmt::format("a body of {} bytes for {} rows of {} bytes", body.size(), w.count, end - begin));
    }
    if (w.count != 1 || w.bytes != body.size() || w.bytes > end - begin || w.within > end - begin - w.bytes)
      return fail(Code::kInvalid, fmt::format("bytes {} to {} of one record, with a body of {}; the record has {}",
                                              w.within, std::uint64_t{w.within} + w.bytes, body.size(), end - begin));
    return Target{begin + w.within, body};
  }
  if (w.within != 0 || w.bytes != 0) return fail(Code::kInvalid, "variable records are overwritten whole");
  PIF_TRY_VALUE(const auto rows, parse_variable(body, w.count));
  std::vector<std::uint64_t> ends(w.count + 1);
  PIF_TRY(reader.read_ends(w.first, w.count, ends));
  for (std::uint64_t i = 0; i < w.count; ++i)
    if (ends[i + 1] - ends[i] != rows.lengths[i])
      return fail(Code::kInvalid, fmt::format("row {} has {} bytes, not {}: an overwrite keeps the length", w.first + i,
                                              ends[i + 1] - ends[i], rows.lengths[i]));
  return Target{ends[0], rows.data};
}

Status Overwriting::fill_edge(Image& image, std::uint64_t chunk, const component::Reader& reader,
                              const Overlay& overlay) {
  const auto& c = *image.component;
  PIF_ASSERT(chunk >= image.first_chunk, chunk, image.first_chunk);
  const std::uint64_t begin = (chunk - image.first_chunk) * c.shape.chunk_bytes;
  PIF_ASSERT(begin < image.bytes.size(), begin, image.bytes.size());
  const auto part =
      std::span(image.bytes).subspan(begin, std::min<std::uint64_t>(c.shape.chunk_bytes, image.bytes.size() - begin));
  if (const auto at = overlay.find({c.file.value, chunk}); at != overlay.end()) {
    PIF_ASSERT(at->second.size() == part.size(), at->second.size(), part.size());
    std::memcpy(part.data(), at->second.data(), part.size());
    return {};
  }
  return reader.read_bytes(chunk * c.shape.chunk_bytes, part);
}

// Empty for rows of length 0: there is nothing to do.
Result<Overwriting::Image> Overwriting::image_of(const Waiting& waiting, const component::Reader& reader,
                                                 Overlay& overlay) {
  const Component& c = *waiting.component;
  PIF_TRY_VALUE(const auto target, target_of(waiting, reader));
  if (target.bytes.empty()) return Image{waiting.token, waiting.key, waiting.component, 0, 0, {}};
  const std::uint64_t chunk_bytes = c.shape.chunk_bytes;
  const std::uint64_t end = target.offset + target.bytes.size();
  const std::uint64_t first = target.offset / chunk_bytes;
  const std::uint64_t last = (end - 1) / chunk_bytes;
  const std::uint64_t image_end = std::min((last + 1) * chunk_bytes, reader.tail().bytes);
  PIF_ASSERT(end <= image_end, end, image_end);
  Image image{waiting.token, waiting.key, waiting.component,
              first,         0,           std::vector<std::byte>(image_end - first * chunk_bytes)};
  // Chunks that change in part are read; those that change whole need not even be intact.
  const bool is_part = target.offset % chunk_bytes != 0 || (first == last && end != image_end);
  if (is_part) PIF_TRY(fill_edge(image, first, reader, overlay));
  if (last != first && end != image_end) PIF_TRY(fill_edge(image, last, reader, overlay));
  std::memcpy(image.bytes.data() + (target.offset - first * chunk_bytes), target.bytes.data(), target.bytes.size());
  for (std::uint64_t chunk = first; chunk <= last; ++chunk) {
    const std::uint64_t begin = (chunk - first) * chunk_bytes;
    overlay[{c.file.value, chunk}] =
        std::span(image.bytes).subspan(begin, std::min(chunk_bytes, image.bytes.size() - begin));
  }
  return image;
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

bool Overwriting::is_blocked(const Waiting& w, Blocked& blocked) const {
  if (blocked.contains(w.component->file.value)) return true;
  const bool is_slow = w.heat == Heat::kWarming || (w.heat == Heat::kCold && warming_ >= kWarmingMax);
  if (!is_slow && context_.may(Operation::kOverwrite, *w.component) != Permission::kLater) return false;
  blocked.insert(w.component->file.value);
  return true;
}

bool Overwriting::waiting() const {
  if (checkpoint_asked_ || context_.checkpointing) return may_drain();
  Blocked blocked;
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
    Overlay none;
    (void)image_of(*waiting, reader, none);
  };
  context_.world.executor.submit(std::move(work), [this, waiting] {
    PIF_ASSERT(warming_ > 0 && waiting->heat == Heat::kWarming, warming_, waiting->heat);
    --warming_;
    waiting->heat = Heat::kWarm;
  });
}

// The image, or kBusy if the disk would hold up the loop.
Result<Overwriting::Image> Overwriting::image_at_once(const Waiting& waiting, Overlay& overlay) {
  Component& c = *waiting.component;
  if (c.is_removed()) return fail(Code::kStaleFile, "the file was deleted meanwhile");
  if (c.failure) return fail(*c.failure);
  PIF_TRY(context_.components.open_files(c, component::OpenMode::kWrite));  // they may have been closed meanwhile
  if (waiting.heat == Heat::kWarm) return image_of(waiting, *c.reader, overlay);
  return image_of(waiting, c.reader->cached(), overlay);
}

void Overwriting::gather(std::vector<Image>& images) {
  Overlay overlay;
  Blocked blocked;
  std::deque<WaitingPtr> later;
  std::uint64_t bytes = 0;
  while (!queue_.empty() && bytes < kBatchBytesMax) {
    const WaitingPtr waiting = std::move(queue_.front());
    queue_.pop_front();
    if (is_blocked(*waiting, blocked)) {
      later.push_back(waiting);
      continue;
    }
    if (context_.replies.is_waiting(waiting->token)) {
      auto image = image_at_once(*waiting, overlay);
      if (!image && image.error().code == Code::kBusy) {
        waiting->heat = Heat::kCold;
        if (warming_ < kWarmingMax) warm(waiting);
        blocked.insert(waiting->component->file.value);
        later.push_back(waiting);
        continue;
      }
      if (!image || image->bytes.empty()) {
        context_.replies.answer(waiting->token, image ? Status() : Status(fail(std::move(image.error()))));
      } else {
        bytes += image->bytes.size();
        if (image->component->stage() != Stage::kOverwriting) image->component->enter(Stage::kOverwriting);
        images.push_back(std::move(*image));
      }
    }
    PIF_ASSERT(queued_bytes_ >= waiting->body.size(), queued_bytes_, waiting->body.size());
    queued_bytes_ -= waiting->body.size();
  }
  std::move(later.rbegin(), later.rend(), std::front_inserter(queue_));
}

void Overwriting::start_batch() {
  PIF_ASSERT(!busy() && !context_.checkpointing);
  auto images = std::make_shared<std::vector<Image>>();
  gather(*images);
  if (!images->empty()) write_batch(std::move(images));
}

void Overwriting::write_batch(std::shared_ptr<std::vector<Image>> images) {
  for (auto& image : *images) {
    image.number = context_.numbers.take();
    const Component& c = *image.component;
    PIF_ASSERT(c.stage() == Stage::kOverwriting, c.file.value, c.stage());
    PIF_ASSERT(c.mode && *c.mode != component::OpenMode::kRead, c.file.value);
    PIF_ASSERT(!image.bytes.empty(), c.file.value);
    context_.log.add({c.file, image.first_chunk, c.shape.chunk_bytes, image.bytes, LogEntryType::kChunks},
                     image.number);
  }
  syncing_ = true;
  auto written = std::make_shared<Status>();
  context_.world.executor.submit([log = context_.shared_log, images, written] { *written = log->write_batch(); },
                                 [this, images, written] { finish_batch(*images, *written); });
}

void Overwriting::finish_batch(std::vector<Image>& images, const Status& written) {
  PIF_ASSERT(syncing_ && !checkpointing_ && !images.empty(), images.size());
  context_.log.end_batch(written.has_value());
  syncing_ = false;
  if (!written) spdlog::error("{}", written.error().text);
  if (written) context_.numbers.became_durable(images.back().number);
  for (const auto& image : images) finish_one(image, written);
  for (const auto& image : images)
    if (image.component->stage() == Stage::kOverwriting) image.component->end_change();
}

void Overwriting::finish_one(const Image& image, const Status& written) {
  Component& c = *image.component;
  PIF_ASSERT(c.stage() == Stage::kOverwriting || c.failure || c.is_removed(), c.file.value, c.stage());
  PIF_ASSERT(image.number > c.applied, image.number, c.applied);
  // A failed entry may be in the log all the same. What is made durable of the component from here on says that it has
  // no need of it: its image would put back a chunk that rows were added to since.
  if (!written) c.applied = image.number;
  if (!written || c.is_removed()) {
    const Status gone = fail(Code::kStaleFile, "the file was deleted meanwhile");
    return context_.replies.answer(image.token, written ? gone : written);
  }
  // The log has it: it will be there when the LFS has been started again. Until then nobody may see half of it.
  if (c.failure) return context_.replies.answer(image.token, Status(fail(*c.failure)));
  if (auto applied = apply(image); !applied) {
    context_.components.set_failed(c, applied.error());
    stuck_ = *c.failure;
    return context_.replies.answer(image.token, Status(fail(*c.failure)));
  }
  dedup_.add(image.key);
  context_.replies.answer(image.token, Status());
}

Status Overwriting::apply(const Image& image) {
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
  auto result = std::make_shared<Status>();
  context_.world.executor.submit([log = context_.shared_log, result] { *result = log->restart(0); },
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
