// Asks the server from time to time, without waiting, which LFSs take part: for clients that go on without an LFS, and
// use it again once it is back. Thread-safety: none; the Client's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "pif/client/server_session.h"
#include "pif/net/caller.h"
#include "pif/proto/messages.pb.h"

namespace pif::client {

class MemberWatch {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(5);

  // Both outlive it.
  MemberWatch(net::Caller& caller, ServerSession& server) : caller_(caller), server_(server) {}
  ~MemberWatch();
  MemberWatch(const MemberWatch&) = delete;
  MemberWatch& operator=(const MemberWatch&) = delete;

  // Takes in what has come, and asks if the last time was kEvery ago. Returns how many answers have come.
  std::uint64_t look();
  // The same number, without a look.
  std::uint64_t answers() const { return answers_; }
  // The newest answer; empty if none has come. Valid until the next look().
  const proto::NodesReply& newest() const { return newest_; }

 private:
  void take(Result<net::Packet> reply);

  net::Caller& caller_;
  ServerSession& server_;
  proto::NodesReply newest_;
  std::uint64_t answers_ = 0;
  Time not_before_{};
  std::optional<net::CallId> call_;  // under way
};

}  // namespace pif::client
