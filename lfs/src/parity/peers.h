// This LFS as a client of others: its connections to them, and requests under way. It shows a capability of its own
// making, and only to LFSs that it knows from the PIF Server. One thread.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "context/lfs_context.h"
#include "pif/access/grant.h"
#include "pif/access/lfs_links.h"
#include "pif/access/requests.h"

namespace pif::lfs {

class Peers {
 public:
  using Add = std::function<void(access::Requests&)>;

  explicit Peers(LfsContext& context);

  // The connection is gone; context.caller hears of it, too.
  void closed(net::PeerId peer) { links_.closed(peer); }

  // The right to read a file's components. epoch: of who asks for it. kInvalid: the shape. kRetry: where
  // an LFS of the file is will be known in a moment.
  [[nodiscard]] Result<std::unique_ptr<access::Grant>> grant(const proto::ComponentShape& shape, std::uint64_t epoch);
  // Sends what `add` adds and what its answers add, until all have been answered, or one has failed. Called by a fiber.
  // The grant outlives it.
  [[nodiscard]] Status run(access::Grant& grant, const Add& add);
  // The same; a member function adds them.
  template <auto kMethod, typename Object, typename... Args>
  [[nodiscard]] Status run(access::Grant& grant, Object& object, const Args&... args) {
    return run(grant, [&](access::Requests& requests) { (object.*kMethod)(requests, args...); });
  }

 private:
  bool is_new() const;  // it has just begun
  struct Errand {
    std::unique_ptr<access::Requests> requests;
    daemon::Fibers::WaitId wait{};
    std::optional<Status> result;
  };
  // On a fiber of its own, as long as this object lives.
  void serve();
  void step(Errand& errand);
  Time next_try() const;

  LfsContext& context_;
  const Time begun_;
  access::LfsLinks links_;
  std::list<Errand> errands_;
};

}  // namespace pif::lfs
