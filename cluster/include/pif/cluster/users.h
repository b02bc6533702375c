// Keys of users who connect over tcp.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "pif/base/result.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {

struct User {
  std::string name;  // of keys/clients/NAME.pub: letters, digits and - _ . @
  uid_t uid = 0;
  std::vector<gid_t> groups;  // the first one is that of new files; at least one
};

// This machine's user of that name. kNotFound: there is none.
[[nodiscard]] Result<User> look_up_user(const std::string& name);

// A new pair, whose public half lets in whoever has the secret one, as that user; a pair that he had before is good no
// longer. kInvalid: no such name, or no group.
[[nodiscard]] Result<net::CurveKeys> add_user(const Cluster& cluster, const User& user);

}  // namespace pif::cluster
