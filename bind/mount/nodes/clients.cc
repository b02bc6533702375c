#include "nodes/clients.h"

#include <utility>

#include "pif/base/assert.h"

namespace pif::mount {

Clients::Clients(ConnectOptions options, unsigned count) : options_(std::move(options)) {
  PIF_ASSERT(count > 0, count);
  for (unsigned i = 0; i < count; ++i) all_.push_back(std::make_unique<One>());
}

Status Clients::connect(One& one) {
  if (one.client) return {};
  PIF_TRY_VALUE(Client client, Client::connect(options_));
  one.client.emplace(std::move(client));
  one.client->on_wait([&one] { return one.wants_to_stop && one.wants_to_stop(); });
  return {};
}

Status Clients::connect_first() {
  PIF_ASSERT(!all_.empty());
  One& first = *all_.front();
  const std::lock_guard lock(first.mutex);
  return connect(first);
}

Result<Clients::Use> Clients::use(unsigned number, std::function<bool()> wants_to_stop) {
  One& one = *all_[number % all_.size()];
  std::unique_lock lock(one.mutex);
  PIF_TRY(connect(one));
  PIF_ASSERT(one.client.has_value(), number);
  one.wants_to_stop = std::move(wants_to_stop);
  return Use(std::move(lock), *one.client, one.wants_to_stop);
}

}  // namespace pif::mount
