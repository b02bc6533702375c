// Bytes of each worker for each other, gathered into large messages, with back-pressure. The order of what goes
// from one worker to another stays; where a message ends says nothing but that an item is whole. Not
// thread-safe.
//
//   Scatter scatter(team, worker.width(), [&](std::uint32_t from, auto bytes) { return take(from, bytes); });
//   for (...) {
//     scatter.to(rank) += an_item;
//     PIF_TRY(scatter.step(rank));
//   }
//   return scatter.end();
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "pif/tool/channel.h"
#include "pif/tool/team.h"

namespace pif::tool {

class Scatter {
 public:
  // Takes what has come from a worker; kInvalid as of Channel::Take.
  using Take = std::function<Status(std::uint32_t from, std::span<const std::byte> bytes)>;
  // Made by all workers: a talk of the team, which outlives it.
  Scatter(Team& team, std::uint32_t width, Take take);

  // The bytes still to be sent to that worker: whole items are added.
  std::string& to(std::uint32_t rank) { return bodies_[rank]; }
  // Sends that if it is large enough, and waits while much is under way. Cheap: for every item. Errors of it and of
  // end(): take's, and the talk's.
  [[nodiscard]] Status step(std::uint32_t rank);
  // Sends the rest; returns when all that is for this worker has come.
  [[nodiscard]] Status end();

 private:
  struct Part {
    bool is_last = false;  // of its sender's
    static auto members(auto& self) { return std::tie(self.is_last); }
  };
  [[nodiscard]] Status send(std::uint32_t rank, bool is_last);

  Talk talk_;
  Take take_;
  std::uint32_t ended_ = 0;
  std::vector<std::string> bodies_;  // by rank
  Channel<Part> channel_;
};

}  // namespace pif::tool
