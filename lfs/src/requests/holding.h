// A time without durable changes, so that a snapshot of all disks is of one moment: nothing is committed and nothing
// logged; what asks for it waits. It ends when who asked says so or is gone, and by itself.
#pragma once

#include "context/lfs_context.h"

namespace pif::lfs {

class Holding {
 public:
  explicit Holding(LfsContext& context);

  // Returns when nothing is durable any more that was not, or the hold is over.
  [[nodiscard]] Status hold(const Request& request, const proto::Hold& asked);
  void drop_peer(net::PeerId peer);
  // Whether no change may begin.
  bool is_asked() const { return by_ != 0; }
  // Until a hold is asked for, begins or ends; is_asked() says which. Called by a fiber.
  void wait_for_news() { changed_.wait(); }
  // Changes that were under way have ended: from now on nothing is durable that was not.
  void begin();
  bool has_begun() const { return has_begun_; }

 private:
  // On a fiber of its own: ends what has lasted long enough.
  void serve();
  void end();

  LfsContext& context_;
  net::PeerId by_ = 0;
  Time until_{};
  bool has_begun_ = false;
  std::uint64_t holds_ = 0;  // that have ended
  daemon::Event changed_;
};

}  // namespace pif::lfs
