// Messages between the workers of one job: by rank, in order from each to each by one route, strangers' dropped.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "job.pb.h"
#include "pif/base/clock.h"
#include "pif/base/handle.h"
#include "pif/net/messenger.h"
#include "pif/tool/worker.h"

namespace pif::tool {

struct Letter {
  std::uint32_t from = 0;  // rank
  job::Mail mail;
  net::Buffer body;
  std::vector<Handle> handles;
};

class Mail {
 public:
  // worker: outlives it.
  static Result<std::unique_ptr<Mail>> open(Worker& worker);

  // A worker that is not there yet gets it later.
  [[nodiscard]] Status send(std::uint32_t rank, const job::Mail& mail, net::Buffer body = {});
  // To a worker on this machine that has sent something already; kUnavailable, kUnsupported if it is on another.
  [[nodiscard]] Status pass(std::uint32_t rank, const job::Mail& mail, Handle handle);
  // The next letter; nothing at the deadline.
  Result<std::optional<Letter>> receive(Time deadline);

 private:
  Mail(Worker& worker, std::unique_ptr<net::Messenger> messenger) : worker_(worker), messenger_(std::move(messenger)) {}
  net::Packet packet_of(const job::Mail& mail) const;
  Result<net::PeerId> peer(std::uint32_t rank);
  std::optional<Letter> open_letter(net::Packet packet) const;

  Worker& worker_;
  std::unique_ptr<net::Messenger> messenger_;
  std::unordered_map<std::uint32_t, net::PeerId> peers_;
};

}  // namespace pif::tool
