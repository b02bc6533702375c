// The server does these things by itself, on fibers that sleep until their time. One that changes something does so
// only while the server may change anything by itself. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "context/server_context.h"
#include "nodes/pair_census.h"

namespace pif::server {

class Background {
 public:
  explicit Background(ServerContext& context) : context_(context) {}
  // Once, at the begin of the first turn: some write at once. context outlives the fibers.
  void start();

 private:
  // ---- on a fiber each ----
  void begin_serving();
  void end_hold();
  void do_each_second();
  void prune_answers();

  void sweep_sessions();
  void end_and_abort(Session& session);
  // An error fails the turn, with all that was written in it.
  void must(const Status& done);

  ServerContext& context_;
  PairCensus pair_census_;
};

}  // namespace pif::server
