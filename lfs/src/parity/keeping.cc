#include "parity/keeping.h"

#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kWaitingMax = 1024;  // for one component

bool is_kept(const ComponentLock& lock) {
  return lock.is_held(Use::kKeepParity) || lock.is_held(Use::kAddParity) || lock.is_held(Use::kSyncParity);
}

}  // namespace

Result<Keeper> keeper_of(const LfsContext& context, const proto::ComponentShape& shape) {
  PIF_TRY(context.check_shape(shape, FileId(shape.file())));
  if (!keeps_parity(shape))
    return fail(Code::kInvalid, fmt::format("file {} is one whose LFSs keep no parity", shape.file()));
  PIF_TRY_VALUE(const auto made, shape_of(shape));
  PIF_TRY_VALUE(const auto layout, layout_of(shape.layout()));
  return Keeper::of(made, layout, shape.index());
}

std::vector<bool> absent_members(const LfsContext& context, const Keeper& keeper, const proto::ComponentShape& shape) {
  std::vector<bool> out;
  for (const LfsIndex lfs : keeper.members.lfs)
    out.push_back(context.view.is_absent(shape.layout().nodes(static_cast<int>(lfs))));
  return out;
}

Status check_file_length(const Format& format, const FileLength& file_length) {
  if (file_length.records > kFileBytesMax || file_length.bytes > kFileBytesMax)
    return fail(Code::kTooLarge, fmt::format("a file of {} records, {} bytes", file_length.records, file_length.bytes));
  if (!format.is_fixed() || is_fixed_file_length(format.record_length, file_length)) return {};
  return fail(Code::kInvalid, fmt::format("a file of {} records of {} bytes cannot have {} bytes", file_length.records,
                                          format.record_length, file_length.bytes));
}

Result<ParityLock> ParityLock::acquire(daemon::Fibers& fibers, const ComponentPtr& component, Use use) {
  if (component->lock.waiting() >= kWaitingMax)
    return fail(Code::kRetry, fmt::format("too many requests wait for file {} here", name_of(component->file)));
  ParityLock lock(component, component->lock.acquire(fibers, use));
  PIF_TRY(check_there(*component));
  return lock;
}

ParityLock::ParityLock(ComponentPtr component, ComponentLock::Held held)
    : component_(std::move(component)), held_(std::move(held)) {
  PIF_ASSERT(held_.is_held() && is_kept(component_->lock), component_->file.value);
  component_->is_keeping = true;
}

ParityLock::~ParityLock() {
  if (!component_) return;  // it was moved from
  held_.release();
  component_->is_keeping = is_kept(component_->lock);
}

Status check_there(const Component& component) {
  if (component.is_removed()) return fail(Code::kStaleFile, "the file was removed meanwhile");
  return component.failure ? Status(fail(*component.failure)) : Status();
}

}  // namespace pif::lfs
