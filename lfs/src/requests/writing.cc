#include "requests/writing.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/print.h"
#include "pif/base/timers.h"
#include "pif/component/extents.h"

namespace pif::lfs {
namespace {

constexpr Duration kWritersLook = std::chrono::milliseconds(5);  // whether a component has still writers
constexpr std::uint64_t kSkippedBytesMax = 64ull << 30;
constexpr std::uint64_t kSkippedPerByteMax = 64;  // requests that overtake each other leave something out for a moment
constexpr std::size_t kSkippersMax = 2 * Components::kWritersMax;

component::Tail tail_to_seal(const Component& component, const proto::Seal& asked) {
  if (!asked.by_descriptor()) return tail_of(component.state);
  return {asked.rows(), asked.bytes(), asked.data_tail_sum(), asked.index_tail_sum()};
}

// Sealed already: as it is asked for now. A file that several write may be longer by now than when it was sealed first.
Status check_sealed(const Component& component, const proto::Seal& asked) {
  const proto::ComponentState& state = component.state;
  const FileLength published = file_length_of(state.published()), wanted = file_length_of(asked.file());
  const bool is_same_file = state.state() != kSealed || published == wanted;
  if (state.rows() == asked.rows() && state.bytes() == asked.bytes() && is_same_file) return {};
  return fail(Code::kExists,
              fmt::format("file {} is sealed with {} rows and {} bytes here, of {} bytes in all: as one "
                          "of {} bytes, write it again",
                          name_of(component.file), state.rows(), state.bytes(), published.bytes, wanted.bytes));
}

// While it was being sealed it was removed, or a sync of its files has failed.
Status check_sealing(const Component& component) {
  PIF_TRY(check_there(component));
  PIF_ASSERT(component.lock.is_held(Mode::kSeal), component.file.value);
  return {};
}

Status expect_size(component::File& file, std::uint64_t size, bool exact, FileId id, std::string_view what) {
  PIF_TRY_VALUE(const auto found, file.size());
  if (exact ? found == size : found >= size) return {};
  return fail(Code::kInvalid,
              fmt::format("the {} of file {} has {} bytes here, {} are to be sealed", what, name_of(id), found, size));
}

}  // namespace

Writing::Writing(LfsContext& context) : context_(context) {
  context.operations.bind<&Writing::write>(*this);
  context.operations.bind<&Writing::seal>(*this);
}

Status Writing::check_incarnation(const proto::ComponentShape& shape) const {
  const std::uint64_t now = context_.numbers.incarnation();
  if (shape.incarnation() == 0 || now == 0 || shape.incarnation() == now) return {};
  return fail(Code::kOldView, fmt::format("{} was started again since file {} was begun, and has lost what was written "
                                          "to it here: write the file again",
                                          context_.config.name, shape.file()));
}

Result<ComponentPtr> Writing::open_component(const Request& request, const proto::ComponentShape& shape) {
  PIF_TRY(check_incarnation(shape));
  PIF_TRY(context_.check_takes(shape));
  const FileId file(shape.file());
  const Capability& capability = request.capability;
  auto found = context_.components.find(file);
  if (!found && found.error().code == Code::kNotFound) {
    PIF_TRY(context_.check_shape(shape, file));
    if (context_.components.was_committed_without(file))
      return fail(Code::kStaleFile,
                  fmt::format("file {} was committed without rows here: what comes now does not count", name_of(file)));
    auto owned = shape;
    owned.set_owner(capability.uid);
    return context_.components.create(owned, capability.epoch, context_.now());
  }
  if (!found) return found;
  Component& component = **found;
  PIF_TRY(context_.check_epoch(component, capability));
  PIF_TRY(LfsContext::check_not_older(component));
  if (!component.is_open() || component.by_append)
    return fail(Code::kExists, fmt::format("file {} is complete here: it cannot be written any more", name_of(file)));
  if (!component.lock.may_acquire(Mode::kFill))
    return fail(Code::kBusy, fmt::format("file {} is being sealed", name_of(file)));
  if (!is_same_shape(component.state.shape(), shape))
    return fail(Code::kInvalid, fmt::format("file {} was begun with another format or layout", name_of(file)));
  context_.components.touch(component, context_.now());
  return found;
}

Status Writing::check_room(FileId file, std::uint64_t end, std::uint64_t bytes) {
  const ComponentPtr known = context_.components.find_in_memory(file);
  return known && end <= known->reserved ? Status() : context_.check_space(bytes);
}

Result<net::Packet> Writing::attach(const Request& request) {
  const proto::ComponentShape& shape = request.envelope().attach().create();
  PIF_TRY(check_room(FileId(shape.file()), 1, 0));
  PIF_TRY_VALUE(const auto component, open_component(request, shape));
  if (component->writer)
    PIF_TRY(finish_writer(*component));  // what it holds back must not come after what others write
  PIF_TRY(context_.components.open_files(*component, component::OpenMode::kWrite));
  component->given_out = true;
  PIF_ASSERT(!component->writer && component->is_open(), component->file.value);
  net::Packet reply = Replies::reply(request);
  *reply.envelope.mutable_attach_reply()->mutable_state() = component->state;
  PIF_TRY_VALUE(reply.handles, component::share(*component->files));
  return reply;
}

Result<net::Packet> Writing::write(const Request& request, const proto::Write& asked) {
  const auto body = request.packet.body.span();
  if (asked.count() == 0) return fail(Code::kInvalid, "a write of no rows");
  PIF_TRY(context_.check_space(body.size()));
  PIF_TRY_VALUE(const auto component, open_component(request, asked.shape()));
  if (component->scattered)
    return fail(Code::kInvalid, fmt::format("file {} is written in pieces here", name_of(component->file)));
  PIF_TRY(context_.components.open_writer(*component));
  PIF_TRY(component->shape.format.is_fixed() ? write_fixed(*component, asked, body)
                                             : write_variable(*component, asked, body));
  net::Packet reply = Replies::reply(request);
  reply.envelope.mutable_done();
  return reply;
}

Status Writing::check_skipped(const Component& component, std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t have = component.writer->bytes();
  PIF_ASSERT(begin + bytes >= begin, begin, bytes);
  const auto known = skippers_.find(component.file.value);
  if (begin <= have && known == skippers_.end()) return {};
  Skipper skipper = known == skippers_.end() ? Skipper{have, 0} : known->second;
  if (begin > have) skipper.skipped += begin - have;
  if (skipper.skipped > kSkippedBytesMax + kSkippedPerByteMax * skipper.taken)
    return fail(Code::kTooLarge,
                fmt::format("file {}: byte {} is too far past the {} bytes that are here: write the file from "
                            "its front",
                            name_of(component.file), begin, have));
  skipper.taken += bytes;
  if (skippers_.size() >= kSkippersMax) forget_skippers();
  skippers_[component.file.value] = skipper;
  return {};
}

// Those of components that are not written any more.
void Writing::forget_skippers() {
  for (auto at = skippers_.begin(); at != skippers_.end();) {
    const auto component = context_.components.find_in_memory(FileId(at->first));
    at = component && component->is_open() ? std::next(at) : skippers_.erase(at);
  }
}

Status Writing::write_fixed(Component& component, const proto::Write& asked, std::span<const std::byte> body) {
  const auto length = component.shape.format.record_length;
  PIF_TRY_VALUE(const auto last, last_row_bytes(body.size(), asked.count(), length));
  if (asked.first() > (INT64_MAX - body.size()) / length)
    return fail(Code::kTooLarge, fmt::format("row {} is past what a file can hold", asked.first()));
  PIF_TRY(check_skipped(component, asked.first() * length, body.size()));
  return component.writer->write_rows(asked.first(), asked.count(), {body.data(), length}, last == length ? 0 : last);
}

Status Writing::write_variable(Component& component, const proto::Write& asked, std::span<const std::byte> body) {
  PIF_TRY_VALUE(const auto rows, parse_variable(body, asked.count()));
  const std::uint64_t have = component.writer->rows();
  if (asked.first() > have)
    return fail(Code::kRetry,
                fmt::format("row {} comes before row {}: variable rows are written in order", asked.first(), have));
  if (asked.first() < have && asked.count() <= have - asked.first()) return {};  // a repeated request
  PIF_ASSERT(component.is_open(), component.file.value);
  if (asked.first() < have) PIF_TRY(component.writer->truncate(asked.first()));
  return component.writer->append_rows(rows.lengths, rows.data);
}

Status Writing::finish_writer(Component& component) {
  PIF_ASSERT(component.writer && component.is_open(), component.file.value);
  PIF_TRY_VALUE(const auto tail, component.writer->finish());
  set_tail(component.state, tail);
  context_.components.drop_writer(component);
  return {};
}

Result<net::Packet> Writing::seal(const Request& request, const proto::Seal& asked) {
  PIF_TRY_VALUE(const ComponentPtr component, prepare_seal(request));
  if (component->is_open()) {
    const auto sealing = component->lock.try_acquire(Mode::kSeal);  // from now on nobody gets it for writing
    PIF_ASSERT(sealing.is_held(), component->file.value);
    PIF_TRY(seal_component(component, asked));
  }
  net::Packet reply = Replies::reply(request);
  *reply.envelope.mutable_seal_reply()->mutable_state() = component->state;
  return reply;
}

Status Writing::seal_component(const ComponentPtr& component, const proto::Seal& asked) {
  PIF_ASSERT(component->lock.is_held(Mode::kSeal) && !component->writer, component->file.value);
  PIF_TRY(wait_for_writers(*component));
  PIF_TRY(asked.scattered() ? make_sums(*component, asked) : take_lengths(*component, asked));

  const Status synced = sync_.sync(component);
  // Nobody gets descriptors to write what is complete.
  if (component->mode == component::OpenMode::kWrite) context_.components.close_files(*component);
  PIF_TRY(check_sealing(*component));
  if (!synced) {
    context_.components.set_failed(*component, synced.error());
    spdlog::error("file {}: {}", name_of(component->file), synced.error().text);
    return synced;
  }

  PIF_ASSERT(component->mode != component::OpenMode::kWrite && component->is_open(), component->file.value);
  PIF_TRY(context_.batch.commit(component, [&asked](proto::ComponentState& state) {
    state.set_state(kSealed);
    *state.mutable_published() = asked.file();
  }));
  PIF_TRY(check_there(*component));
  context_.components.touch(*component, context_.now());
  return {};
}

Status Writing::wait_for_writers(Component& component) const {
  for (const Time patience = context_.now() + kWritersPatience;;) {
    PIF_TRY(check_sealing(component));
    PIF_TRY_VALUE(const bool is_written, has_writers(component));
    if (!is_written) return {};
    if (context_.now() >= patience)
      return fail(Code::kBusy, fmt::format("file {} is still open for writing in some process: it must close it first",
                                           name_of(component.file)));
    context_.fibers.sleep_until(context_.now() + kWritersLook);
  }
}

Result<ComponentPtr> Writing::find_to_seal(const Request& request, const proto::Seal& asked) {
  PIF_TRY(check_incarnation(asked.shape()));
  PIF_TRY(context_.check_takes(asked.shape()));
  const FileId file(asked.shape().file());
  auto found = context_.components.find(file);
  if (found || found.error().code != Code::kNotFound) return found;
  // Of one filled in pieces perhaps nobody wrote here: this LFS is known to have lost nothing.
  if (asked.rows() > 0 && !(asked.scattered() && asked.shape().incarnation() != 0))
    return fail(Code::kNotFound, fmt::format("file {} has no rows here: they were never written, or this LFS was "
                                             "started again since; write the file again",
                                             name_of(file)));
  return open_component(request, asked.shape());
}

// That what is to be sealed is what is here, and what the layout gives this LFS of such a file.
Status Writing::check_lengths(Component& component, const proto::Seal& asked) {
  const FileId file = component.file;
  const auto& format = component.shape.format;
  if (asked.scattered() && !format.is_fixed())
    return fail(Code::kInvalid, fmt::format("file {}: records of variable length are not in pieces", name_of(file)));
  if (component.scattered && !asked.scattered())
    return fail(Code::kInvalid, fmt::format("file {} was written in pieces here: it has no sums yet", name_of(file)));
  const component::Tail tail =
      asked.scattered() ? component::Tail{asked.rows(), asked.bytes(), 0, 0} : tail_to_seal(component, asked);
  if (tail.rows != asked.rows() || tail.bytes != asked.bytes())
    return fail(Code::kInvalid, fmt::format("file {} has {} rows and {} bytes here, {} and {} are to be sealed",
                                            name_of(file), tail.rows, tail.bytes, asked.rows(), asked.bytes()));
  const FileLength file_length = file_length_of(asked.file());
  const auto rows = component.layout.rows(asked.shape().index(), file_length.records);
  if (format.is_fixed() && !is_fixed_file_length(format.record_length, file_length))
    return fail(Code::kInvalid, fmt::format("a file of {} records of {} bytes cannot have {} bytes",
                                            file_length.records, format.record_length, file_length.bytes));
  const auto bytes = format.is_fixed() ? fixed_component_bytes(component.layout, asked.shape().index(),
                                                               format.record_length, rows, file_length)
                                       : tail.bytes;
  if (rows == tail.rows && bytes == tail.bytes) return {};
  return fail(Code::kInvalid,
              fmt::format("of a file of {} records and {} bytes, {} rows and {} bytes belong here, not {} and {}",
                          file_length.records, file_length.bytes, rows, bytes, tail.rows, tail.bytes));
}

Result<ComponentPtr> Writing::prepare_seal(const Request& request) {
  const auto& asked = request.envelope().seal();
  PIF_TRY_VALUE(ComponentPtr found, find_to_seal(request, asked));
  Component& component = *found;
  const std::string file = name_of(component.file);
  PIF_TRY(context_.check_epoch(component, request.capability));
  PIF_TRY(LfsContext::check_not_older(component));
  const bool is_filled = component.is_open() && !component.by_append;
  if (is_filled && !component.lock.may_acquire(Mode::kSeal))
    return fail(Code::kRetry, fmt::format("file {} is being sealed", file));
  if (!is_same_shape(component.state.shape(), asked.shape()))
    return fail(Code::kInvalid, fmt::format("file {} was begun with another format or layout", file));
  if (!component.is_open()) {
    PIF_TRY(check_sealed(component, asked));
    return found;
  }
  if (!is_filled) return fail(Code::kExists, fmt::format("file {} is complete: rows are being appended to it", file));
  if (component.writer) PIF_TRY(finish_writer(component));
  PIF_TRY(check_lengths(component, asked));
  if (!component.given_out) {
    PIF_TRY(context_.components.open_files(component, component::OpenMode::kWrite));
    return found;
  }
  // Our own descriptors must not count as somebody's who writes.
  context_.components.close_files(component);
  PIF_TRY(context_.components.open_files(component, component::OpenMode::kRead));
  return found;
}

Status Writing::make_sums(Component& component, const proto::Seal& asked) {
  PIF_ASSERT(component.lock.is_held(Mode::kSeal) && !component.writer, component.file.value);
  const std::uint64_t sum_bytes = asked.bytes() / component.shape.chunk_bytes * component.shape.sum_bytes();
  if (const Status room = check_room(component.file, asked.bytes(), sum_bytes); !room)
    return fail(room.error().code, fmt::format("file {}: its sums here take {}, gaps included: {}",
                                               name_of(component.file), human_bytes(sum_bytes), room.error().text));
  if (component.mode != component::OpenMode::kWrite) {  // nobody else can write it any more
    context_.components.close_files(component);
    PIF_TRY(context_.components.open_files(component, component::OpenMode::kWrite));
  }
  const auto made = context_.disk([&asked, files = component.files, shape = component.shape] {
    return component::sum_scattered(shape, *files, asked.rows(), asked.bytes());
  });
  PIF_TRY(check_sealing(component));
  PIF_TRY_VALUE(const component::Tail tail, made);
  PIF_ASSERT(component.files && component.reader, component.file.value);
  set_tail(component.state, tail);
  component.reader->set_tail(tail);
  return {};
}

Status Writing::take_lengths(Component& component, const proto::Seal& asked) {
  PIF_ASSERT(component.files && component.reader && !component.writer, component.file.value);
  const component::Tail tail = tail_to_seal(component, asked);
  PIF_TRY(check_sizes(component, tail));
  set_tail(component.state, tail);
  component.reader->set_tail(tail);
  return {};
}

Status Writing::check_sizes(Component& component, const component::Tail& tail) {
  auto& files = *component.files;
  PIF_TRY(expect_size(*files.data, tail.bytes, true, component.file, "data"));
  const std::uint64_t sums = tail.bytes / component.shape.chunk_bytes * component.shape.sum_bytes();
  PIF_TRY(expect_size(*files.sums, sums, false, component.file, "sum file"));
  if (component.shape.format.is_fixed()) return {};
  PIF_TRY(expect_size(*files.index, tail.rows * 8, true, component.file, "index"));
  return expect_size(*files.index_sums, tail.rows * 8 / component::kIndexChunkBytes * 8, false, component.file,
                     "index's sum file");
}

Result<bool> Writing::has_writers(Component& component) {
  PIF_ASSERT(component.files, component.file.value);
  if (!component.given_out) return false;
  for (auto* file :
       {&component.files->data, &component.files->sums, &component.files->index, &component.files->index_sums}) {
    if (*file == nullptr) continue;
    PIF_TRY_VALUE(const bool writers, (*file)->has_writers());
    if (writers) return true;
  }
  return false;
}

}  // namespace pif::lfs
