#include "context/request_dedup.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::lfs {

RequestDedup::Known RequestDedup::look(const RequestKey& key) const {
  if (key.session == 0) return Known::kNew;
  if (done_.contains(key)) return Known::kDone;
  const auto found = forgotten_.find(sender_of(key));
  return found != forgotten_.end() && key.request <= found->second.request ? Known::kForgotten : Known::kNew;
}

void RequestDedup::add(const RequestKey& key, Time now) {
  expire(now);
  if (key.session == 0 || !done_.insert(key).second) return;
  order_.push_back({key, now});
  if (order_.size() > kRequestsMax) forget_first(now);
  PIF_ASSERT(done_.size() == order_.size() && order_.size() <= kRequestsMax, done_.size(), order_.size());
}

void RequestDedup::expire(Time now) {
  while (!order_.empty() && now - order_.front().at > kKeptFor) forget_first(now);
}

void RequestDedup::forget_first(Time now) {
  PIF_ASSERT(!order_.empty());
  const RequestKey key = order_.front().key;
  order_.pop_front();
  PIF_ASSERT(key.session != 0 && done_.contains(key), key.session, key.request);
  done_.erase(key);
  raise(key, now);
}

void RequestDedup::raise(const RequestKey& key, Time now) {
  if (forgotten_.size() >= kSendersMax && !forgotten_.contains(sender_of(key))) drop_senders();
  Forgotten& forgotten = forgotten_[sender_of(key)];
  forgotten = {std::max(forgotten.request, key.request), now};
  PIF_ASSERT(forgotten_.size() <= kSendersMax, forgotten_.size());
}

void RequestDedup::drop_senders() {
  PIF_ASSERT(!forgotten_.empty());
  std::vector<Time> times;
  for (const auto& [sender, forgotten] : forgotten_) times.push_back(forgotten.at);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::erase_if(forgotten_, [last = *middle](const auto& one) { return one.second.at <= last; });
}

LoggedRequests RequestDedup::snapshot() const {
  LoggedRequests out;
  for (const auto& [sender, forgotten] : forgotten_) out.forgotten.push_back({sender.session, forgotten.request});
  for (const Done& done : order_) out.done.push_back(done.key);
  PIF_ASSERT(out.done.size() == done_.size() && out.done.size() <= kRequestsMax, out.done.size(), done_.size());
  return out;
}

void RequestDedup::load(const LoggedRequests& requests, Time now) {
  for (const RequestKey& key : requests.forgotten) raise(key, now);
  for (const RequestKey& key : requests.done) add(key, now);
}

}  // namespace pif::lfs
