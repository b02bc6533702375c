#include "pif/tool/scatter.h"

#include <utility>

#include "pif/base/assert.h"

namespace pif::tool {
namespace {

constexpr std::uint32_t kChannel = 1;             // 0 is an OrderedOutput's
constexpr std::size_t kBodyBytes = 256u << 10;    // of a message: many items
constexpr std::uint64_t kQueuedBytes = 8u << 20;  // that wait for others to take them, before more are made

}  // namespace

Scatter::Scatter(Team& team, std::uint32_t width, Take take)
    : talk_(team),
      take_(std::move(take)),
      bodies_(width),
      channel_(talk_, kChannel, {}, [this](const Channel<Part>::Item& item) {
        ended_ += item.head.is_last ? 1 : 0;
        return take_(item.from, item.body.span());
      }) {}

Status Scatter::send(std::uint32_t rank, bool is_last) {
  PIF_ASSERT(rank < bodies_.size(), rank, bodies_.size());
  net::Buffer body = net::Buffer::copy_of(std::as_bytes(std::span(bodies_[rank])));
  bodies_[rank].clear();
  return channel_.send(rank, {is_last}, std::move(body));
}

Status Scatter::step(std::uint32_t rank) {
  if (bodies_[rank].size() < kBodyBytes) return {};
  PIF_TRY(send(rank, false));
  return talk_.until([this] { return channel_.queued_bytes() < kQueuedBytes; });
}

Status Scatter::end() {
  for (std::uint32_t rank = 0; rank < bodies_.size(); ++rank) PIF_TRY(send(rank, true));
  PIF_TRY(talk_.until([this] { return ended_ == bodies_.size(); }));
  return talk_.end();
}

}  // namespace pif::tool
