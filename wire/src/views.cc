#include "pif/wire/views.h"

#include <iterator>

#include <fmt/format.h>

namespace pif::wire {
namespace {

constexpr char kViewTag = 'V';

}  // namespace

std::string pack_view(const ClusterKey& key, const proto::View& view) {
  return sign(key, kViewTag, view.SerializeAsString());
}

Result<proto::View> open_view(const ClusterKey& key, std::string_view packed) {
  PIF_TRY_VALUE(const std::string_view payload, verify_signed(key, kViewTag, packed));
  proto::View view;
  if (!view.ParseFromArray(payload.data(), static_cast<int>(payload.size())))
    return fail(Code::kInvalid, "a view that is no message");
  std::uint32_t last = 0;
  for (const proto::ViewNode& node : view.nodes()) {
    if (node.node() <= last) return fail(Code::kInvalid, fmt::format("view {} is not in order", view.index()));
    if (node.state() < kViewMember || node.state() > kViewReturning)
      return fail(Code::kInvalid, fmt::format("view {}: node {} is in an unknown state", view.index(), node.node()));
    last = node.node();
  }
  return view;
}

std::string_view view_state_name(std::uint32_t state) {
  constexpr std::string_view kNames[] = {"unknown", "member", "lost", "rebuilding", "returning"};
  return state < std::size(kNames) ? kNames[state] : kNames[0];
}

}  // namespace pif::wire
