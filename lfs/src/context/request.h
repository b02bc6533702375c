// One request while it is being handled, and who asks.
#pragma once

#include "context/authorizer.h"
#include "pif/daemon/replies.h"

namespace pif::lfs {

using daemon::Replies;

struct Request : daemon::Request {
  Requester who;
  Capability capability;  // as far as the operation needs one: verified
};

}  // namespace pif::lfs
