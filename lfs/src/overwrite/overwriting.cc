#include "overwrite/overwriting.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "store/in_place.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kQueuedBytesMax = 32u << 20;
constexpr std::size_t kQueuedMax = 16384;
constexpr std::uint64_t kBatchBytesMax = 8u << 20;
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
  const RequestDedup::Key key{request.who.session, request.envelope().id()};
  if (dedup_.knows(key)) return context_.replies.answer(context_.replies.defer(request), Status());
  if (auto free = context_.check_not_held(**component); !free)
    return context_.replies.answer(request, fail(std::move(free.error())));
  Waiting waiting{0,
                  key,
                  std::move(*component),
                  asked.first(),
                  asked.count(),
                  asked.within(),
                  asked.bytes(),
                  net::Buffer::copy_of(request.packet.body.span())};
  auto opened = context_.components.open_files(*waiting.component, component::Access::kWrite);
  if (!opened) return context_.replies.answer(request, fail(std::move(opened.error())));
  const auto target = target_of(waiting);
  if (!target) return context_.replies.answer(request, fail(target.error()));
  waiting.token = context_.replies.defer(request);
  if (target->bytes.empty()) return context_.replies.answer(waiting.token, Status());  // rows of length 0
  queued_bytes_ += waiting.body.size();
  queue_.push_back(std::move(waiting));
}

Result<Overwriting::Target> Overwriting::target_of(const Waiting& w) {
  const auto& reader = *w.component->reader;
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

Status Overwriting::fill_edge(Image& image, std::uint64_t chunk, const Overlay& overlay) {
  const auto& c = *image.component;
  const std::uint64_t begin = (chunk - image.first_chunk) * c.shape.chunk_bytes;
  const auto part =
      std::span(image.bytes).subspan(begin, std::min<std::uint64_t>(c.shape.chunk_bytes, image.bytes.size() - begin));
  if (const auto at = overlay.find({c.file.value, chunk}); at != overlay.end()) {
    std::memcpy(part.data(), at->second.data(), part.size());
    return {};
  }
  return c.reader->read_bytes(chunk * c.shape.chunk_bytes, part);
}

Result<Overwriting::Image> Overwriting::image_of(const Waiting& waiting, Overlay& overlay) {
  Component& c = *waiting.component;
  PIF_TRY(context_.components.open_files(c, component::Access::kWrite));  // they may have been closed meanwhile
  PIF_TRY_VALUE(const auto target, target_of(waiting));
  const std::uint64_t chunk_bytes = c.shape.chunk_bytes;
  const std::uint64_t end = target.offset + target.bytes.size();
  const std::uint64_t first = target.offset / chunk_bytes;
  const std::uint64_t last = (end - 1) / chunk_bytes;
  const std::uint64_t image_end = std::min((last + 1) * chunk_bytes, c.reader->tail().bytes);
  Image image{waiting.token, waiting.key, waiting.component,
              first,         0,           std::vector<std::byte>(image_end - first * chunk_bytes)};
  // Chunks that change in part are read; those that change whole need not even be intact.
  if (target.offset % chunk_bytes != 0 || (first == last && end != image_end))
    PIF_TRY(fill_edge(image, first, overlay));
  if (last != first && end != image_end) PIF_TRY(fill_edge(image, last, overlay));
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
  if (context_.checkpointing && !appends_to_dirty()) return checkpoint();
  if (!context_.checkpointing && !queue_.empty()) start_batch();
}

void Overwriting::refuse_all() {
  context_.checkpointing = false;
  for (const auto& waiting : std::exchange(queue_, {})) context_.replies.answer(waiting.token, Status(fail(*stuck_)));
  queued_bytes_ = 0;
  if (checkpoint_asked_) end_checkpoint(fail(*stuck_));
  checkpoint_asked_ = false;
}

bool Overwriting::concerns(const Component& component) const {
  return component.overwriting > 0 ||
         std::any_of(queue_.begin(), queue_.end(), [&](const Waiting& w) { return w.component.get() == &component; });
}

bool Overwriting::waiting() const {
  if (checkpoint_asked_ || context_.checkpointing) return !appends_to_dirty();
  return std::any_of(queue_.begin(), queue_.end(), [](const Waiting& w) { return !w.component->appending; });
}

bool Overwriting::appends_to_dirty() const {
  return std::any_of(dirty_.begin(), dirty_.end(), [](const auto& entry) { return entry.second->appending; });
}

void Overwriting::start_batch() {
  auto images = std::make_shared<std::vector<Image>>();
  Overlay overlay;
  std::deque<Waiting> held;
  std::uint64_t bytes = 0;
  while (!queue_.empty() && bytes < kBatchBytesMax) {
    Waiting waiting = std::move(queue_.front());
    queue_.pop_front();
    if (waiting.component->appending && !waiting.component->removed) {
      held.push_back(std::move(waiting));
      continue;
    }
    queued_bytes_ -= waiting.body.size();
    if (!context_.replies.is_waiting(waiting.token)) continue;
    if (waiting.component->removed) {
      context_.replies.answer(waiting.token, fail(Code::kStaleFile, "the file was deleted meanwhile"));
      continue;
    }
    auto image = image_of(waiting, overlay);
    if (!image) {
      context_.replies.answer(waiting.token, fail(std::move(image.error())));
      continue;
    }
    bytes += image->bytes.size();
    images->push_back(std::move(*image));
  }
  std::move(held.rbegin(), held.rend(), std::front_inserter(queue_));
  if (images->empty()) return;
  for (auto& image : *images) {
    image.number = context_.numbers.take();
    context_.log.add({image.component->file, image.first_chunk, image.component->shape.chunk_bytes, image.bytes},
                     image.number);
    ++image.component->overwriting;
  }
  syncing_ = true;
  auto written = std::make_shared<Status>();
  context_.world.executor.submit([log = context_.shared_log, images, written] { *written = log->write_batch(); },
                                 [this, images, written] { finish_batch(*images, *written); });
}

void Overwriting::finish_batch(std::vector<Image>& images, const Status& written) {
  context_.log.end_batch(written.has_value());
  syncing_ = false;
  if (!written) spdlog::error("{}", written.error().text);
  if (written) context_.numbers.became_durable(images.back().number);
  for (auto& image : images) {
    Component& c = *image.component;
    --c.overwriting;
    // A failed entry may be in the log all the same. What is made durable of the component from here on says that it
    // has no need of it: its image would put back a chunk that rows were added to since.
    if (!written) c.applied = std::max(c.applied, image.number);
    if (!written || c.removed) {
      context_.replies.answer(image.token,
                              written ? Status(fail(Code::kStaleFile, "the file was deleted meanwhile")) : written);
      continue;
    }
    if (auto applied = apply(image); !applied) {
      // The log has it: it will be there when the LFS has been started again. Until then nobody may see half of it.
      context_.components.set_failed(c, applied.error());
      stuck_ = *c.failure;
      context_.replies.answer(image.token, Status(fail(*c.failure)));
      continue;
    }
    dedup_.add(image.key);
    context_.replies.answer(image.token, Status());
  }
}

Status Overwriting::apply(const Image& image) {
  Component& c = *image.component;
  PIF_TRY(context_.components.open_files(c, component::Access::kWrite));
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
  checkpointing_ = true;
  checkpoint_asked_ = false;
  std::erase_if(dirty_, [](const auto& entry) { return entry.second->removed; });
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
  for (const auto& [id, component] : dirty_) {
    components->push_back(component);
    context_.components.pin(*component);
  }
  auto results = std::make_shared<std::vector<Status>>(components->size());
  auto work = [components, results] {
    for (std::size_t i = 0; i < components->size(); ++i) (*results)[i] = sync_home(*(*components)[i]->files);
  };
  context_.world.executor.submit(std::move(work), [this, components, results] {
    for (const auto& component : *components) context_.components.unpin(*component);
    in_place_synced(*components, *results);
  });
}

void Overwriting::in_place_synced(const std::vector<ComponentPtr>& components, const std::vector<Status>& results) {
  for (std::size_t i = 0; i < components.size(); ++i) {
    Component& c = *components[i];
    if (results[i] || c.removed) continue;
    context_.components.set_failed(c, results[i].error());
    spdlog::error("{}", c.failure->text);
    stuck_ = cannot_empty(results[i].error());
  }
  if (stuck_) return end_checkpoint(fail(*stuck_));
  // Sums of tails are durable in the catalogue before the log forgets them.
  auto left = std::make_shared<std::size_t>(1);
  auto failed = std::make_shared<Status>();
  const auto one_done = [this, left, failed](const Status& status) {
    if (!status && status.error().code != Code::kStaleFile) *failed = status;
    if (--*left > 0) return;
    if (*failed) return restart_log();
    end_checkpoint(*failed);
  };
  for (const auto& c : components) {
    if (c->removed) continue;
    ++*left;
    context_.batch.update(
        c, [number = c->applied](proto::ComponentState& state) { state.set_log_applied(number); }, one_done);
  }
  one_done({});
}

void Overwriting::restart_log() {
  auto result = std::make_shared<Status>();
  context_.world.executor.submit([log = context_.shared_log, result] { *result = log->restart(0); },
                                 [this, result] { end_checkpoint(*result); });
}

void Overwriting::end_checkpoint(const Status& status) {
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
