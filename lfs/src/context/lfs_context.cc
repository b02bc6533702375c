#include "context/lfs_context.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/limits.h"
#include "pif/base/print.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kReserveBytesMax = 64u << 20;
constexpr std::uint64_t kReserveBytesMin = 1u << 20;
constexpr std::size_t kUnixHeaderBytes = 4096;  // of a packet, for envelope and framing

}  // namespace

Status LfsContext::take_view(const std::string& packed, CatalogueBatch::Done done) {
  PIF_TRY_VALUE(const auto offered, view.offer(packed));
  if (!offered) return {};
  batch.keep_view(packed, [this, packed, newer = *offered, done = std::move(done)](const Status& kept) {
    if (kept) {
      view.adopt(newer, packed);
      numbers.begin_era(view.era_of(config.node));
      spdlog::info("{} adopts view {}", config.name, newer.index());
    } else {
      view.give_up();
    }
    if (done) done(kept);
  });
  return {};
}

Status LfsContext::check_epoch(Component& component, const Capability& capability) {
  const auto known = component.state.epoch();
  if (capability.epoch < known)
    return fail(Code::kBadCapability, fmt::format("the capability has epoch {}, file {} has {}: open the file again",
                                                  capability.epoch, name_of(component.file), known));
  if (capability.epoch > known) component.state.set_epoch(capability.epoch);  // durable with its next change
  return {};
}

void LfsContext::note_committed(const ComponentPtr& component) {
  if (component->state.state() != kSealed || component->committing) return;
  component->committing = true;
  batch.update(
      component, [](proto::ComponentState& state) { state.set_state(kCommitted); },
      [component](const Status&) { component->committing = false; });
}

Status LfsContext::check_not_older(const Component& component) {
  return component.older ? Status(fail(unprotected(component.file))) : Status();
}

Status LfsContext::check_not_held(const Component& component) {
  if (!input_locks.is_held(component.file)) return {};
  return fail(Code::kBusy,
              fmt::format("file {} is held against writing by a tool that reads it", name_of(component.file)));
}

Status LfsContext::check_not_lost(FileId file) const {
  const auto own = view.state_of(config.node);
  const bool is_incomplete = own == wire::kViewRebuilding || own == wire::kViewReturning;
  if (!is_incomplete || !lost_files.has(file)) return {};
  return fail(Code::kUnavailable, fmt::format("{} is being rebuilt, and does not have its part of file {} yet",
                                              config.name, name_of(file)));
}

Result<ComponentPtr> LfsContext::published(const Request& request, FileId file) {
  auto found = components.find(file);
  const bool is_here = found && (*found)->catalogued;
  if (!is_here && (found || found.error().code == Code::kNotFound)) PIF_TRY(check_not_lost(file));
  PIF_TRY_VALUE(auto component, std::move(found));
  PIF_TRY(check_epoch(*component, request.capability));
  const Permission may_read = may(Operation::kRead, *component);
  if (may_read == Permission::kNever)
    return fail(Code::kInvalid, fmt::format("file {} is still being written: seal and commit it first", name_of(file)));
  if (may_read == Permission::kLater) return fail(Code::kRetry, fmt::format("file {} is being sealed", name_of(file)));
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

Status LfsContext::check_space(std::uint64_t bytes) {
  PIF_TRY_VALUE(auto space, world.storage.space(config.root));
  const auto reserve = std::max(kReserveBytesMin, std::min(space.total / 50, kReserveBytesMax));
  if (space.free < reserve + bytes && components.close_spare_copies()) {
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
