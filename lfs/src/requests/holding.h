// A time without durable changes, so that a snapshot of all disks is of one moment: nothing is committed and nothing
// logged; what asks for it waits. It ends when who asked says so or is gone, and by itself.
#pragma once

#include <vector>

#include "context/lfs_context.h"

namespace pif::lfs {

class Holding {
 public:
  explicit Holding(LfsContext& context);

  void hold(const Request& request, const proto::Hold& asked);
  void drop_peer(net::PeerId peer);
  // Whether no change may begin.
  bool is_asked() const { return by_ != 0; }
  // Changes that were under way have ended: from now on nothing is durable that was not.
  void begin();
  // Ends what has lasted long enough. Once per turn.
  void tick();
  Time next_deadline() const { return by_ == 0 ? kNever : until_; }

 private:
  void end();

  LfsContext& context_;
  net::PeerId by_ = 0;
  Time until_{};
  std::vector<ReplyToken> waiting_;  // for begin()
};

}  // namespace pif::lfs
