#include "parity/peers.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(20);
constexpr Duration kNewFor = std::chrono::seconds(10);  // who has just begun may not have heard of all others

}  // namespace

Peers::Peers(LfsContext& context)
    : context_(context),
      begun_(context.now()),
      links_(context.world.messenger, context.caller.calls(), {net::Route::kAuto, context.config.name, kPatience}) {
  links_.set_cluster(context.config.cluster);
  context.fibers.start<&Peers::serve>(*this);
}

bool Peers::is_new() const { return context_.now() - begun_ < kNewFor; }

void Peers::serve() {
  for (;;) {
    context_.caller.news().wait(next_try());
    for (Errand& errand : errands_)
      if (!errand.result) step(errand);
    context_.caller.note_started();
  }
}

void Peers::step(Errand& errand) {
  Status status = errand.requests->step();
  if (!status && access::is_lost(status.error().code) && is_new()) {  // it may be elsewhere than it was said to be
    context_.peer_list.want();
    status = fail(Code::kRetry, std::move(status.error().text), std::move(status.error().node));
  }
  if (status && !errand.requests->idle()) return;
  PIF_ASSERT(!errand.result.has_value());
  errand.result = std::move(status);
  context_.fibers.wake(errand.wait);
}

Time Peers::next_try() const {
  Time next = kNever;
  for (const Errand& errand : errands_)
    if (!errand.result) next = std::min(next, errand.requests->next_try());
  return next;
}

Result<std::unique_ptr<access::Grant>> Peers::grant(const proto::ComponentShape& shape, std::uint64_t epoch) {
  access::FileParts parts;
  parts.file = FileId(shape.file());
  parts.path = fmt::format("file {}", shape.file());
  PIF_TRY_VALUE(parts.format, format_of(shape.format()));
  PIF_TRY_VALUE(parts.layout, layout_of(shape.layout()));
  parts.file_layout = shape.layout();
  parts.rights = kMayRead;
  parts.epoch = epoch;
  parts.owner = shape.owner();
  for (const auto node : shape.layout().nodes()) {
    const proto::NodeInfo* const known = context_.peer_list.find(node);
    proto::NodeInfo& info = parts.nodes.emplace_back();
    if (known != nullptr) {
      info = *known;
      continue;
    }
    context_.peer_list.want();
    if (is_new()) return fail(Code::kRetry, fmt::format("the PIF Server has not told yet where node {} is", node));
    info.set_id(node);  // cannot be reached
    info.set_name(fmt::format("of node {}, which the PIF Server has not told of yet", node));
  }
  // Of a daemon, like a heartbeat's, because the transports do not tell the users of daemons alike.
  auto renew = [this, epoch]() -> Result<access::Grant::Capability> {
    const std::int64_t until = context_.world.messenger.clock().wall_seconds() + kCapabilitySeconds;
    return access::Grant::Capability{
        mint(context_.config.key, Capability{FileId(0), context_.config.uid, kMayManage | kMayRead, epoch, until}),
        until};
  };
  auto made = std::make_unique<access::Grant>(std::move(parts), std::move(renew));
  PIF_TRY(made->renew());
  return made;
}

Status Peers::run(access::Grant& grant, const Add& add) {
  PIF_ASSERT(add != nullptr && !grant.is_borrowed());
  const auto errand = errands_.emplace(errands_.end());
  const daemon::AtExit forget([this, errand] { errands_.erase(errand); });
  errand->requests = std::make_unique<access::Requests>(links_, grant);
  add(*errand->requests);
  errand->wait = context_.fibers.begin_wait();
  context_.caller.news().notify();
  context_.fibers.wait(errand->wait);
  PIF_ASSERT(errand->result.has_value());
  return std::move(*errand->result);
}

}  // namespace pif::lfs
