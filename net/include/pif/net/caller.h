// Calls for programs that wait: clients, controllers and workers. One thread.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "pif/net/calls.h"

namespace pif::net {

class Caller {
 public:
  // messenger outlives the caller. `unasked` gets requests from peers (a worker's batches) and wakes; may be empty.
  explicit Caller(Messenger& messenger, std::uint64_t first_id, std::function<void(Delivery&)> unasked = {});
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // Sends a request, as Calls::start() does. Each call is ended by one wait() or forget(): its reply is kept until
  // then.
  CallId start(PeerId peer, Packet request, Duration timeout, std::string peer_name);
  // Waits for this call's reply, at most until the call's own deadline. Errors: as Calls::start(); those of
  // Messenger::receive(), and the call is forgotten; kInternal if it was never started, was waited for already, or was
  // forgotten.
  Result<Packet> wait(CallId id);
  // start + wait.
  Result<Packet> call(PeerId peer, Packet request, Duration timeout, std::string peer_name);
  // The same, by type: a request of wire::kOperations, and what answers it.
  template <wire::Request R>
  Result<wire::ReplyTo<R>> call(PeerId peer, R request, Duration timeout, std::string peer_name) {
    return reply_in<R>(call(peer, packet_of(std::move(request)), timeout, std::move(peer_name)));
  }
  // Whether wait(id) would return at once.
  bool is_done(CallId id) const;
  // Waits until any call is done (those of calls() too), something unasked came, or the deadline. Errors: those of
  // Messenger::receive().
  Status pump(Time deadline);
  // Waits ask whether they are to end, at once and then each kAskEvery: where it says true they end with kCancelled.
  // Empty: they do not ask.
  void on_wait(std::function<bool()> wants_to_stop) { wants_to_stop_ = std::move(wants_to_stop); }
  // Nobody waits for this call any more: its reply is dropped. An id that is not known changes nothing.
  void forget(CallId id);

  void measure(Stats* stats) { calls_.measure(stats); }  // as Calls has it

  // The constructor's messenger: for its clock, and for connecting. Only the caller receives from it.
  Messenger& messenger() { return messenger_; }
  // For what is driven by steps and does not wait itself: pump() gives it its replies.
  Calls& calls() { return calls_; }

 private:
  static constexpr Duration kAskEvery = std::chrono::milliseconds(100);
  [[nodiscard]] Status check_stop();

  Messenger& messenger_;
  Calls calls_;
  std::function<void(Delivery&)> unasked_;
  std::unordered_map<CallId, Result<Packet>> done_;
  std::function<bool()> wants_to_stop_;
  Time ask_at_{};
};

}  // namespace pif::net
