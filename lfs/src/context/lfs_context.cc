#include "context/lfs_context.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/print.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kReserveBytesMax = 64u << 20;
constexpr std::uint64_t kReserveBytesMin = 1u << 20;
constexpr std::size_t kUnixHeaderBytes = 4096;  // of a packet, for envelope and framing

// Of an append, which is sent again.
bool adds_rows(const proto::Envelope& request) {
  return request.has_append_rows() || request.has_cover() || request.has_copy_rows() || request.has_note_length();
}

}  // namespace

Status LfsContext::take_view(const std::string& packed) {
  PIF_TRY_VALUE(const auto offered, view.offer(packed));
  if (!offered) return {};
  const Status kept = batch.commit_view(packed);
  if (!kept) {
    view.give_up();
    return kept;
  }
  if (offered->index() <= view.index()) return {};  // a newer one was adopted meanwhile
  view.adopt(*offered, packed);
  numbers.begin_era(view.era_of(config.node));
  spdlog::info("{} adopts view {}", config.name, offered->index());
  for (ViewWatcher* const watcher : view_watchers) watcher->view_adopted();
  return {};
}

Status LfsContext::check_view(std::uint64_t index) {
  if (index == 0 || index == view.index()) return {};
  if (index < view.index())
    return fail(Code::kOldView,
                fmt::format("the request goes by view {}, and {} is the newest: look who takes part, and ask again",
                            index, view.index()));
  peer_list.want();
  return fail(Code::kRetry, fmt::format("{} does not have view {} yet", config.name, index));
}

Status LfsContext::check_present(const proto::ComponentShape& shape) const {
  if (!keeps_parity(shape) || !view.is_absent(config.node)) return {};
  return fail(Code::kUnavailable, fmt::format("{} is {}: other LFSs answer for it", config.name,
                                              wire::view_state_name(view.state_of(config.node))));
}

Status LfsContext::check_takes(const proto::ComponentShape& shape) const {
  PIF_TRY(check_present(shape));
  const FileId file(shape.file());
  if (keeps_parity(shape) && lost_files.lacks(file)) return check_not_lost(file);
  const bool is_returning = keeps_parity(shape) && view.state_of(config.node) == wire::kViewReturning;
  if (!is_returning || check_not_lost(file)) return {};
  return fail(Code::kRetry,
              fmt::format("{} returns, and has not caught up with file {} yet", config.name, shape.file()));
}

Status LfsContext::check_epoch(Component& component, const Capability& capability) {
  const auto known = component.state.epoch();
  if (capability.epoch < known)
    return fail(Code::kBadCapability, fmt::format("the capability has epoch {}, file {} has {}: open the file again",
                                                  capability.epoch, name_of(component.file), known));
  if (capability.epoch > known) component.state.set_epoch(capability.epoch);  // durable with its next change
  return {};
}

Status LfsContext::note_committed(const ComponentPtr& component) {
  if (component->state.state() != kSealed) return {};
  const auto noting = component->lock.try_acquire(Mode::kNoteCommitted);
  if (!noting.is_held()) return {};
  return batch.commit(component, [](proto::ComponentState& state) { state.set_state(kCommitted); });
}

Status LfsContext::check_not_older(const Component& component) {
  return component.older ? Status(fail(unprotected(component.file))) : Status();
}

Status LfsContext::check_not_held(const Component& component) {
  if (!component.lock.is_wanted(Mode::kInput)) return {};
  return fail(Code::kBusy,
              fmt::format("file {} is held against writing by a tool that reads it", name_of(component.file)));
}

Status LfsContext::check_not_lost(FileId file, bool adds) const {
  const auto own = view.state_of(config.node);
  const bool is_incomplete = own == wire::kViewRebuilding || own == wire::kViewReturning;
  const bool lacks = lost_files.is_mended(file) || lost_files.lacks(file);
  if (!lacks && (!is_incomplete || !lost_files.has(file))) return {};
  return fail(
      adds && own == wire::kViewReturning ? Code::kRetry : Code::kUnavailable,
      fmt::format("{} is being rebuilt, and does not have its part of file {} yet", config.name, name_of(file)));
}

void LfsContext::remove_files(FileId file) {
  components.set_removing(file, true);
  fibers.start<&LfsContext::remove_files_now>(*this, file);
}

void LfsContext::remove_files_now(FileId file) {
  const Status removed = disk([&] { return component::remove_files(world.storage, components.stem(file)); });
  components.set_removing(file, false);
  // Files that stay behind are orphans, which the next start puts aside.
  if (!removed) spdlog::warn("file {}: {}", name_of(file), removed.error().text);
}

Status LfsContext::check_has_no_part(const proto::ComponentShape& shape, const parity::Layout& layout,
                                     std::uint64_t records) const {
  const auto index = static_cast<LfsIndex>(shape.index());
  PIF_ASSERT(index < layout.width(), shape.file(), index, layout.width());
  const bool has_part =
      layout.rows(index, records) > 0 || (keeps_parity(shape) && layout.parity_rows(index, records) > 0);
  if (!has_part) return {};
  return fail(
      Code::kNotFound,
      fmt::format("{} has no component of file {}, and has a part of its first {} records: the file was removed, or "
                  "its part here was lost; look whether it is still there (pif ls), and have it checked (pif fsck)",
                  config.name, name_of(FileId(shape.file())), records));
}

Result<ComponentPtr> LfsContext::published(const Request& request, FileId file) {
  auto found = components.find(file);
  const bool is_here = found && (*found)->catalogued;
  const bool may_be_lost =
      is_here ? keeps_parity((*found)->state.shape()) : found || found.error().code == Code::kNotFound;
  if (may_be_lost) PIF_TRY(check_not_lost(file, adds_rows(request.envelope())));
  PIF_TRY_VALUE(auto component, std::move(found));
  PIF_TRY(check_epoch(*component, request.capability));
  if (component->is_open() && component->lock.is_held(Mode::kSeal))
    return fail(Code::kRetry, fmt::format("file {} is being sealed", name_of(file)));
  if (!component->is_whole())
    return fail(Code::kInvalid, fmt::format("file {} is still being written: seal and commit it first", name_of(file)));
  PIF_TRY(component::check_tail(component->shape, tail_of(component->state)));
  components.touch(*component, now());
  return component;
}

Status LfsContext::check_shape(const proto::ComponentShape& shape, FileId file) const {
  if (shape.file() != file.value)
    return fail(Code::kInvalid, fmt::format("the shape is of file {}, the request of {}", shape.file(), file.value));
  PIF_TRY(shape_of(shape));
  PIF_TRY(layout_of(shape.layout()));
  const auto node = shape.layout().nodes(static_cast<int>(shape.index()));
  if (node != config.node)
    return fail(Code::kInvalid, fmt::format("LFS {} of the file is node {}, this is node {} ({})", shape.index(), node,
                                            config.node, config.name));
  return {};
}

bool LfsContext::make_space() {
  bool any = components.close_spare_copies();
  for (SpaceMaker* const maker : space_makers) any = maker->make_space() || any;
  return any;
}

Status LfsContext::check_space(std::uint64_t bytes) {
  PIF_TRY_VALUE(auto space, world.storage.space(config.root));
  const auto reserve = std::max(kReserveBytesMin, std::min(space.total / 50, kReserveBytesMax));
  if (space.free < reserve + bytes && make_space()) {
    PIF_TRY_VALUE(space, world.storage.space(config.root));
  }
  if (space.free >= reserve + bytes) return {};
  return fail(Code::kNoSpace,
              fmt::format("its disk is full: {} has {} free, and keeps the last {} of it for log and catalogue; "
                          "remove files, or give this LFS a larger disk (pif df shows all)",
                          config.root, human_bytes(space.free), human_bytes(reserve)));
}

std::size_t LfsContext::body_bytes_max(const Request& request) {
  using Via = net::Identity::Via;
  static_assert(kUnixHeaderBytes < kUnixPacketBytesMax && kUnixPacketBytesMax <= kBulkBytes);
  const bool small_packets = request.who.via == Via::kUnix || request.who.via == Via::kSimulated;
  return small_packets ? kUnixPacketBytesMax - kUnixHeaderBytes : kBulkBytes;
}

Result<VariableBody> parse_variable(std::span<const std::byte> body, std::uint64_t count) {
  if (count > body.size() / sizeof(std::uint32_t))
    return fail(Code::kInvalid,
                fmt::format("a body of {} bytes cannot hold the lengths of {} rows", body.size(), count));
  VariableBody out;
  out.lengths.resize(count);
  const std::size_t head = count * sizeof(std::uint32_t);
  if (head > 0) std::memcpy(out.lengths.data(), body.data(), head);
  out.data = body.subspan(head);
  std::uint64_t total = 0;
  for (const auto length : out.lengths) {
    if (length > kRecordLengthMax)
      return fail(Code::kTooLarge, fmt::format("a record of {} bytes; the limit is {}", length, kRecordLengthMax));
    total += length;
  }
  if (total != out.data.size())
    return fail(Code::kInvalid,
                fmt::format("the rows' lengths add up to {} bytes, the body has {}", total, out.data.size()));
  return out;
}

Result<std::uint32_t> last_row_bytes(std::uint64_t bytes, std::uint64_t count, std::uint32_t record_length) {
  const std::uint64_t length = record_length;
  if (count == 0 || count > kBodyBytesMax || bytes > count * length || bytes <= (count - 1) * length)
    return fail(Code::kInvalid, fmt::format("a body of {} bytes is not {} records of {} bytes", bytes, count, length));
  return static_cast<std::uint32_t>(bytes - (count - 1) * length);
}

}  // namespace pif::lfs
