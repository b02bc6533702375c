// The event loop: turns of many requests and one transaction.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "context/server_context.h"
#include "requests/pair_census.h"

namespace pif::server {

class Loop {
 public:
  explicit Loop(ServerContext& context);
  [[nodiscard]] Status serve(const std::atomic<bool>& stop);

 private:
  struct Reply {
    net::PeerId peer;
    net::Packet packet;
    const wire::Operation* operation;
    Time arrived;
    bool depends;  // on rows written in this turn
  };

  [[nodiscard]] Status turn(std::optional<net::Turns::Arrival> first);
  void take(net::Turns::Arrival& arrival);
  void handle(net::Delivery& delivery, Time arrived);
  // Whether the operation must wait, or (with an answer) cannot be done now.
  bool holds_up(net::Delivery& delivery, const wire::Operation& operation, unsigned when);
  bool is_held() const { return context_.held.by != 0; }
  // Whether the server may change anything by itself.
  bool may_change() const { return goes_along(context_.standing) && !is_held(); }
  void end_waiting();
  // The session that asks; an error, or nothing if no reply is due (the request is being answered, or was just
  // repeated).
  bool find_session(net::PeerId peer, const proto::Envelope& request, const wire::Operation& operation,
                    Session*& session);
  // Whether the requester has the right that the table asks for.
  [[nodiscard]] Status check_right(wire::Right right, const proto::Envelope& request, const Session* session) const;
  void reply_error(net::PeerId peer, const proto::Envelope& request, const Error& error,
                   const wire::Operation* operation);
  // `operation` is answered by this, a request that came at `arrived`; null: not counted.
  void push(net::PeerId peer, net::Packet packet, const wire::Operation* operation, Time arrived);
  void run_timers();
  void sweep_sessions();
  void prune_answers();
  void run_job();
  void answer_waiters();
  void answer_groups();
  // Requests that are answered later.
  std::size_t waiting() const;
  void store_heard();
  void finish_turn();
  void send_replies(const std::optional<Error>& failed);
  void fail_jobs(const Error& error);
  Time next_deadline() const;

  ServerContext& context_;
  Operations operations_;
  PairCensus pair_census_;
  std::vector<Reply> replies_;
  Time arrived_{};  // the request being handled
  Time tick_{};     // next
  Time prune_{};    // next
  bool job_stepped_ = false;
};

}  // namespace pif::server
