// The event loop: turns of many requests and one transaction.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "context/server_context.h"

namespace pif::server {

class Loop {
 public:
  explicit Loop(ServerContext& context);
  [[nodiscard]] Status serve(const std::atomic<bool>& stop);

 private:
  struct Operation {
    proto::Envelope::OpCase op;
    Handler handler;
    bool needs_session;
    bool recorded;      // changes something: a repeated request gets the first answer
    unsigned when = 0;  // it need not wait until the server serves: a sum of When
  };
  enum When : unsigned { kGathering = 1, kBehind = 2, kHeld = 4, kAlways = 7 };
  struct Reply {
    net::PeerId peer;
    net::Packet packet;
    const Operation* operation;
    Time arrived;
    bool depends;  // on rows written in this turn
  };
  static const std::array<Operation, 25> kOperations;

  [[nodiscard]] Status turn(net::Delivery first);
  void take(net::Delivery& delivery);
  void handle(net::Delivery& delivery);
  // Whether the operation must wait, or (with an answer) cannot be done now.
  bool holds_up(net::Delivery& delivery, const Operation& operation);
  bool is_held() const { return context_.held.by != 0; }
  // Whether the server may change anything by itself.
  bool may_change() const { return context_.standing == Standing::kServing && !is_held(); }
  void end_waiting();
  // The session that asks; an error, or nothing if no reply is due (the request is being answered, or was just
  // repeated).
  bool find_session(net::PeerId peer, const proto::Envelope& request, const Operation& operation, Session*& session);
  void reply_error(net::PeerId peer, const proto::Envelope& request, const Error& error, const Operation* operation);
  // `operation` is answered by this, a request that came at `arrived`; null: not counted.
  void push(net::PeerId peer, net::Packet packet, const Operation* operation, Time arrived);
  void run_timers();
  void sweep_sessions();
  void prune_answers();
  void run_job();
  void answer_waiters();
  void finish_turn();
  void send_replies(const std::optional<Error>& failed);
  void fail_jobs(const Error& error);
  Time next_deadline() const;

  ServerContext& context_;
  std::array<const Operation*, net::Stats::kOperationsMax> by_case_{};
  std::vector<Reply> replies_;
  Time arrived_{};  // the request being handled
  Time tick_{};     // next
  Time prune_{};    // next
  bool job_stepped_ = false;
};

}  // namespace pif::server
