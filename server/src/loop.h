// The event loop: turns of many requests and one transaction.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "background.h"
#include "context/server_context.h"
#include "pif/daemon/loop.h"

namespace pif::server {

class Loop final : private daemon::TurnHandler {
 public:
  explicit Loop(ServerContext& context);
  // Whatever waits is given up, and answered by nothing.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  [[nodiscard]] Status serve(const std::atomic<bool>& stop);

 private:
  // It leaves when the turn is over.
  struct Kept {
    std::shared_ptr<const daemon::Request> request;
    Result<net::Packet> result;
    bool depends;  // on rows written in this turn
  };

  void begin_turn() override;
  void take(net::Turns::Arrival& arrival) override;
  bool has_room() const override { return context_.weight < kWeightPerTurn; }
  [[nodiscard]] Result<bool> end_turn() override;
  void start(net::Delivery& delivery, Time arrived);
  void keep(std::shared_ptr<const daemon::Request> request, Result<net::Packet> result);

  // ---- on fibers; nothing: there is no answer ----
  void answer(const std::shared_ptr<daemon::Request>& request);
  [[nodiscard]] Result<std::optional<net::Packet>> serve(const daemon::Request& request);
  // Waits until the server does what may be done `when`. kStaleServer, kBusy.
  [[nodiscard]] Result<bool> admit(const daemon::Request& request, unsigned when);
  [[nodiscard]] Result<Session*> session_of(const daemon::Request& request, bool is_recorded);
  [[nodiscard]] static Result<std::optional<net::Packet>> given_before(const Answer& answer,
                                                                       const wire::Operation& operation);
  // Whether the requester has the right that the table asks for.
  [[nodiscard]] Status check_right(wire::Right right, const proto::Envelope& request, const Session* session) const;
  [[nodiscard]] Result<std::optional<net::Packet>> run(const Handler& handler, const daemon::Request& request,
                                                       Session* session, bool is_recorded);

  // ---- the end of a turn ----
  void store_heard();
  [[nodiscard]] Status write_last();
  void finish_turn();
  void send_answers(const std::optional<Error>& failed);
  void add_durable(proto::Envelope& reply) const;

  ServerContext& context_;
  Operations operations_;
  Background background_;
  daemon::Loop loop_;
  std::vector<Kept> answers_;
  std::size_t not_deferred_ = 0;  // of answers_
  bool has_begun_ = false;
};

}  // namespace pif::server
