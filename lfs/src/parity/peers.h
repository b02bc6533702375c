// This LFS as a client of others: its connections to them, and requests under way. It shows a capability of its own
// making, and only to LFSs that the PIF Server has told it of. One thread.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "context/lfs_context.h"
#include "pif/access/grant.h"
#include "pif/access/lfs_links.h"
#include "pif/access/requests.h"
#include "pif/net/calls.h"

namespace pif::lfs {

class Peers {
 public:
  using Add = std::function<void(access::Requests&)>;
  using Done = std::function<void(const Status&)>;  // what it has is kept until it was called

  explicit Peers(LfsContext& context);

  // Takes what answers our requests, and the loss of LFSs. False for what is not ours, or concerns others too.
  bool offer(net::Delivery& delivery);
  // Once per turn.
  void tick();
  Time next_deadline() const;
  // Something was added since the last tick.
  bool is_fresh() const { return is_fresh_; }

  // The right to read a file's components. epoch: of who asks for it. kInvalid: the shape. kRetry: where
  // an LFS of the file is will be known in a moment.
  [[nodiscard]] Result<std::unique_ptr<access::Grant>> grant(const proto::ComponentShape& shape, std::uint64_t epoch);
  // Sends what `add` adds and what its answers add. done: from tick(), when all have been answered, or one has failed.
  // The grant outlives that.
  void run(access::Grant& grant, const Add& add, Done done);

 private:
  bool is_new() const;  // it has just begun
  struct Errand {
    Done done;
    std::unique_ptr<access::Requests> requests;  // goes first: it refers to what `done` keeps
  };
  LfsContext& context_;
  const Time begun_;
  net::Calls calls_;
  access::LfsLinks links_;
  std::list<Errand> errands_;
  bool is_fresh_ = false;
};

}  // namespace pif::lfs
