#include "pif/access/grant.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::access {

namespace {

constexpr std::int64_t kRenewBeforeSeconds = 60;  // of a capability's life left
constexpr std::int64_t kRenewAgainSeconds = 10;   // after somebody who did not answer

}  // namespace

Grant::Grant(FileParts parts, Renew renew)
    : parts_(std::move(parts)), renew_(std::move(renew)), renew_at_(parts_.capability_until - kRenewBeforeSeconds) {
  look_who_is_absent();
}

void Grant::look_who_is_absent() {
  has_absent_ = false;
  for (LfsIndex lfs = 0; lfs < parts_.nodes.size(); ++lfs) has_absent_ = has_absent_ || parts_.is_absent(lfs);
}

void Grant::set_view(std::uint64_t view, std::span<const proto::NodeInfo> nodes) {
  PIF_ASSERT(!parts_.creating, view);
  parts_.view = view;
  for (proto::NodeInfo& known : parts_.nodes) {
    const auto now =
        std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.id() == known.id(); });
    if (now == nodes.end()) continue;
    known.set_state(now->state());
    known.set_view_state(now->view_state());
    *known.mutable_endpoints() = now->endpoints();
  }
  look_who_is_absent();
}

Status Grant::renew() {
  if (is_borrowed()) {
    return fail(Code::kBadCapability, fmt::format("{}: the right to this file has expired", parts_.path));
  }
  PIF_TRY_VALUE(Capability fresh, renew_());
  PIF_ASSERT(!fresh.packed.empty(), fresh.until);
  parts_.capability = std::move(fresh.packed);
  parts_.capability_until = fresh.until;
  renew_at_ = fresh.until - kRenewBeforeSeconds;
  return {};
}

Status Grant::renew_soon(std::int64_t now) {
  if (is_borrowed()) {
    renew_at_ = parts_.capability_until;
    return {};
  }
  auto renewed = renew();
  if (renewed || renewed.error().code == Code::kStaleFile || now >= parts_.capability_until) return renewed;
  renew_at_ = std::min(now + kRenewAgainSeconds, parts_.capability_until);
  PIF_ASSERT(renew_at_ > now, renew_at_, now);
  return {};
}

}  // namespace pif::access
