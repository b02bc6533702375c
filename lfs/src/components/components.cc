#include "components/components.h"

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "store/catalogue.h"
#include "store/kept_state.h"
#include "store/root.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kWaitingMax = 1024;  // for the lock of one component

}  // namespace

Status check_there(const Component& component) {
  if (component.is_removed()) return fail(Code::kStaleFile, "the file was deleted meanwhile");
  return component.failure ? Status(fail(*component.failure)) : Status();
}

Result<ComponentLock::Held> lock_component(daemon::Fibers& fibers, Component& component, Mode mode, Time until) {
  if (component.lock.waiting() >= kWaitingMax)
    return fail(Code::kRetry, fmt::format("too many requests wait for file {} here", name_of(component.file)));
  auto held = component.lock.acquire(fibers, mode, until);
  PIF_TRY(check_there(component));
  if (held.is_held()) return held;
  return fail(Code::kRetry, fmt::format("others are busy with file {} here", name_of(component.file)));
}

void Component::set_removed() {
  PIF_ASSERT(!is_removed_, file.value);
  is_removed_ = true;
  changed.notify();
}

void Component::set_failed(Error why) {
  PIF_ASSERT(!is_removed_ && !failure, file.value);
  failure = std::move(why);
  changed.notify();
}

proto::ComponentState Component::shown() const {
  auto out = shown_state(state);
  if (older && reader) set_tail(out, reader->tail());
  return out;
}

Components::Components(std::string root, component::Storage& storage, kv::Store& catalogue, Numbers& numbers,
                       daemon::Fibers& fibers)
    : root_(std::move(root)),
      storage_(storage),
      catalogue_(catalogue),
      numbers_(numbers),
      fibers_(fibers),
      crowded_(fibers) {
  fibers_.start<&Components::keep_few>(*this);
}

Status Components::load(Time now) {
  PIF_TRY(catalogue::each_quarantined(catalogue_, FileId(0), [&](FileId file, const proto::StoredQuarantine&) {
    quarantined_.insert(file.value);
    return true;
  }));
  return catalogue::each(catalogue_, FileId(0), [&](FileId file, Result<proto::ComponentState> state) {
    ++totals_.components;
    if (!state) return true;  // said when somebody asks for it, and by check_root
    totals_.bytes += state->bytes();
    // What an append made may be of a file that was removed before: asked once more.
    const bool appended = state->generation() > 0 || state->grants() > 0;
    if (state->state() == kSealed || appended) unsettled_[file.value] = now;
    return true;
  });
}

Status Components::ask_about_all(Time now) {
  return catalogue::each(catalogue_, FileId(0), [&](FileId file, const Result<proto::ComponentState>& state) {
    if (state) unsettled_[file.value] = now;
    return true;
  });
}

ComponentPtr Components::find_in_memory(FileId file) const {
  const auto at = all_.find(file.value);
  return at == all_.end() ? nullptr : at->second;
}

Result<ComponentPtr> Components::add(proto::ComponentState state) {
  PIF_TRY_VALUE(const auto shape, shape_of(state.shape()));
  PIF_TRY_VALUE(auto layout, layout_of(state.shape().layout()));
  if (keeps_parity(state.shape())) PIF_TRY(check_kept(Keeper::of(shape, layout, state.shape().index()), state));
  auto made = std::make_shared<Component>(fibers_, shape, std::move(layout), std::move(state));
  PIF_ASSERT(!all_.contains(shape.file.value), shape.file.value);
  all_[shape.file.value] = made;
  if (all_.size() > kKnownMax) crowded_.notify();
  return made;
}

Result<ComponentPtr> Components::find(FileId file) {
  if (auto found = find_in_memory(file)) {
    PIF_ASSERT(found->file == file && !found->is_removed(), file.value);
    if (found->failure) return fail(*found->failure);
    if (found->mode) with_files_.splice(with_files_.end(), with_files_, found->place);
    return found;
  }
  if (tombstones_.contains(file))
    return fail(Code::kStaleFile, fmt::format("file {} was deleted or replaced", name_of(file)));
  PIF_TRY_VALUE(auto state, catalogue::get(catalogue_, file));
  if (!state) return fail(Code::kNotFound, fmt::format("this LFS has no component of file {}", name_of(file)));
  PIF_TRY_VALUE(auto found, add(std::move(*state)));
  found->catalogued = true;
  return found;
}

std::string Components::folder(FileId file) const {
  const auto path = stem(file);
  return path.substr(0, path.rfind('/'));
}

Status Components::check_form(const proto::ComponentShape& shape) {
  if (shape.layout().bevies_size() == 0) return {};
  PIF_TRY(layout_of(shape.layout()));
  return is_older(shape.layout()) ? Status(fail(unprotected(FileId(shape.file())))) : Status();
}

Result<ComponentPtr> Components::create(const proto::ComponentShape& in, std::uint64_t epoch, Time now) {
  PIF_TRY_VALUE(const auto shape, shape_of(in));
  if (removing_.contains(shape.file.value))
    return fail(Code::kRetry,
                fmt::format("an earlier component of file {} is still being removed", name_of(shape.file)));
  proto::ComponentState state;
  *state.mutable_shape() = in;
  state.mutable_shape()->set_chunk_bytes(shape.chunk_bytes);
  state.mutable_shape()->clear_incarnation();
  if (is_quarantined(shape.file))
    return fail(Code::kStaleFile,
                fmt::format("file {} is in quarantine here: the server did not know it", name_of(shape.file)));
  PIF_TRY(check_form(in));
  state.set_state(kOpen);
  state.set_epoch(epoch);
  state.set_run(numbers_.run());
  PIF_TRY_VALUE(auto made, add(std::move(state)));
  PIF_ASSERT(made->is_open() && made->lock.is_free() && !made->catalogued, shape.file.value);
  if (auto opened = open_files(*made, component::OpenMode::kCreate); !opened) {
    all_.erase(shape.file.value);
    (void)component::remove_files(storage_, stem(shape.file));  // half made; the first error is the one to tell
    return fail(std::move(opened.error()));
  }
  unsettled_[shape.file.value] = now + kAskAfter;
  return made;
}

Status Components::open_files(Component& component, component::OpenMode mode) {
  using component::OpenMode;
  PIF_ASSERT(!component.is_removed(), component.file.value);
  PIF_ASSERT(component.mode.has_value() == (component.files != nullptr), component.file.value);
  if (component.older && mode != OpenMode::kRead) return fail(unprotected(component.file));
  if (component.lacks_copy())
    return fail(Code::kRetry, fmt::format("file {} is being made ready to be read", name_of(component.file)));
  if (component.mode && (mode == OpenMode::kRead || *component.mode != OpenMode::kRead)) return {};
  close_files(component);
  PIF_TRY_VALUE(auto files, component::open_files(storage_, stem(component.file), component.shape.format, mode));
  component.files = std::make_shared<component::Files>(std::move(files));
  component.mode = mode;
  component.reader.emplace(component.shape, tail_of(component.state), *component.files);
  add_to_open(component);
  PIF_ASSERT(component.files->data && component.files->sums, component.file.value);
  return {};
}

void Components::add_to_open(Component& component) {
  PIF_ASSERT(component.mode.has_value() && component.files != nullptr, component.file.value);
  component.place = with_files_.insert(with_files_.end(), &component);
  if (with_files_.size() > kOpenFilesMax) crowded_.notify();
}

Status Components::open_writer(Component& component) {
  if (component.writer) return {};
  if (writers_ >= kWritersMax && !close_spare_writer())
    return fail(Code::kBusy, fmt::format("{} components are being written here by message: try again", kWritersMax));
  PIF_TRY(open_files(component, component::OpenMode::kWrite));
  component.writer.emplace(component.shape, tail_of(component.state), *component.files);
  ++writers_;
  PIF_ASSERT(writers_ <= kWritersMax, writers_);
  return {};
}

Status Components::open_parity(Component& component, component::OpenMode mode) {
  using component::OpenMode;
  PIF_ASSERT(!component.is_removed(), component.file.value);
  PIF_TRY(open_files(component, OpenMode::kRead));
  if (component.parity && (mode != OpenMode::kCreate || component.parity->frames)) return {};
  PIF_TRY_VALUE(auto files, component::open_parity(storage_, stem(component.file), mode));
  component.parity = std::make_shared<component::ParityFiles>(std::move(files));
  return {};
}

bool Components::close_spare_writer() {
  for (Component* const component : with_files_) {
    if (!component->writer || !is_spare(*component)) continue;
    close_files(*component);
    return true;
  }
  return false;
}

// Images are synced through the files that they were written by. Of what is filled the writer knows what is nowhere
// else.
bool Components::is_spare(const Component& component) {
  const bool is_needed = component.dirty || (component.is_open() && component.writer && !component.failure);
  return !is_needed && component.lock.may_acquire(Mode::kClose);
}

void Components::drop_writer(Component& component) {
  PIF_ASSERT(!component.writer || writers_ > 0, component.file.value);
  if (component.writer) --writers_;
  component.writer.reset();
}

void Components::close_files(Component& component) {
  PIF_ASSERT(component.mode.has_value() == component.reader.has_value(), component.file.value);
  drop_writer(component);
  component.reader.reset();
  if (component.mode) with_files_.erase(component.place);
  PIF_ASSERT(!component.older || !component.mode || copies_ > 0, component.file.value);
  if (component.older && component.mode) --copies_;
  component.mode.reset();
  component.files.reset();
  component.parity.reset();
  if (!component.lock.keeps_parity()) component.frames.reset();
}

void Components::adopt_copy(Component& component, DenseCopy copy) {
  PIF_ASSERT(component.lacks_copy() && !component.is_removed() && copy.files, component.file.value);
  component.files = std::move(copy.files);
  component.mode = component::OpenMode::kRead;
  component.reader.emplace(component.shape, copy.tail, *component.files);
  add_to_open(component);
  ++copies_;
}

bool Components::close_spare_copies() {
  const std::size_t before = copies_;
  for (auto at = with_files_.begin(); at != with_files_.end() && copies_ > 0;) {
    Component& component = **at++;
    if (component.older && is_spare(component)) close_files(component);
  }
  return copies_ < before;
}

// One that is complete is asked about, however often it is read: others may know that its file was removed.
void Components::touch(Component& component, Time now) {
  if (component.state.state() == kCommitted) return;
  const auto at = unsettled_.find(component.file.value);
  if (at != unsettled_.end()) at->second = now + kAskAfter;
}

void Components::keep_few() {
  for (;;) {
    crowded_.wait();
    fibers_.settle();  // when those that use them have gone on
    evict();
  }
}

void Components::evict_files(bool copies) {
  auto at = with_files_.begin();
  while (with_files_.size() > kOpenFilesMax && at != with_files_.end()) {
    Component& component = **at++;
    if (component.older == copies && is_spare(component)) close_files(component);
  }
}

void Components::evict() {
  evict_files(false);
  evict_files(true);  // more than all others, so many that the first of them must be made anew some day
  if (all_.size() <= kKnownMax) return;
  // One that a request, a sequencer or the redo log holds stays: found again, it would be another object with a state
  // of its own.
  for (auto known = all_.begin(); known != all_.end();) {
    const bool unused = known->second.use_count() == 1 && !known->second->mode && known->second->is_idle();
    known = unused ? all_.erase(known) : std::next(known);
  }
}

void Components::set_state(Component& component, const proto::ComponentState& state) {
  PIF_ASSERT(state.shape().file() == component.file.value && !component.is_removed(), component.file.value);
  PIF_ASSERT(component.is_open() || state.state() != kOpen, component.file.value);  // what is complete stays so
  if (!component.catalogued) {
    ++totals_.components;
    totals_.bytes += state.bytes();
  } else {
    totals_.bytes += state.bytes() - component.state.bytes();
  }
  component.catalogued = true;
  // Only its creator's commit is proof; a file that an append goes to may have been removed meanwhile.
  if (component.state.state() == kSealed && state.state() == kCommitted) unsettled_.erase(component.file.value);
  component.state = state;
  if (component.reader && !component.older) component.reader->set_tail(tail_of(state));
}

void Components::forget(Component& component, bool for_good) {
  component.set_removed();
  if (component.catalogued) {
    PIF_ASSERT(totals_.components > 0 && totals_.bytes >= component.state.bytes(), totals_.components, totals_.bytes);
    --totals_.components;
    totals_.bytes -= component.state.bytes();
    component.catalogued = false;
  }
  const auto id = component.file.value;
  const auto self = find_in_memory(component.file);  // keeps it while we are here
  PIF_ASSERT(self.get() == &component, id);
  unsettled_.erase(id);
  if (for_good) tombstones_.add(component.file);
  close_files(component);
  all_.erase(id);
}

void Components::forget_tombstones() {
  former_ = std::exchange(tombstones_, {});
  without_.clear();
}

void Components::came_back(const proto::ComponentState& state) {
  const auto id = state.shape().file();
  quarantined_.erase(id);
  former_.erase(FileId(id));
  tombstones_.erase(FileId(id));
  ++totals_.components;
  totals_.bytes += state.bytes();
}

void Components::set_removing(FileId file, bool is_removing) {
  if (is_removing) {
    removing_.insert(file.value);
  } else {
    removing_.erase(file.value);
  }
}

void Components::set_failed(Component& component, const Error& why) {
  if (component.failure || component.is_removed()) return;  // by a sync that was under way, too
  component.set_failed({Code::kIo,
                        fmt::format("file {} is out of service here until the LFS is started again: {}",
                                    name_of(component.file), why.text),
                        {}});
}

Result<component::Tail> tail_at(const component::Shape& shape, const component::Reader& reader, std::uint64_t rows,
                                std::uint64_t bytes) {
  component::Tail tail{rows, bytes, 0, 0};
  PIF_ASSERT(rows <= reader.tail().rows && bytes <= reader.tail().bytes, rows, bytes);
  const std::uint64_t begin = bytes - bytes % shape.chunk_bytes;
  if (begin < bytes) {
    std::vector<std::byte> chunk(bytes - begin);
    PIF_TRY(reader.read_bytes(begin, chunk));
    tail.data_sum = shape.data_sum(begin / shape.chunk_bytes, chunk);
  }
  if (shape.format.is_fixed()) return tail;
  constexpr std::uint64_t kPerChunk = component::kIndexChunkBytes / sizeof(std::uint64_t);
  const std::uint64_t first = rows - rows % kPerChunk;
  if (first < rows) {
    std::vector<std::uint64_t> ends(rows - first + 1);
    PIF_TRY(reader.read_ends(first, rows - first, ends));
    tail.index_sum =
        chunk_sum(shape.file, component::kIndexStream, first / kPerChunk, std::as_bytes(std::span(ends).subspan(1)));
  }
  return tail;
}

}  // namespace pif::lfs
