// Which LFS does what an absent one would, in one job (docs/ARCHITECTURE.md "Workers' places"). The worker of an absent
// LFS X runs beside that of S, which stands in for X: S restores X's rows of inputs, and takes X's rows of outputs,
// whose parity they become. There is one S for each X, whatever file of the job it is: a worker has one LFS. Pure;
// values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pif/base/result.h"
#include "pif/client/session.h"

namespace pif::tool {

class StandIns {
 public:
  // Nobody is absent.
  StandIns() = default;
  struct File {
    const client::FileParts* parts = nullptr;
    FileLength file_length;  // of an input
  };
  // The stand-ins for all files of a job; `parts` only during the call. kUnavailable: a file without parity has an LFS
  // that another file needs to be stood in for, or nobody can stand in.
  [[nodiscard]] static Result<StandIns> choose(const std::vector<File>& files);

  // Where the worker for that LFS runs, and requests for it go: elsewhere if it is absent.
  const proto::NodeInfo& place_of(const proto::NodeInfo& node) const;
  bool is_empty() const { return by_absent_.empty(); }
  // With all nodes where requests for them go; the layout stays.
  client::FileParts with_places(client::FileParts parts) const;

 private:
  std::map<std::uint32_t, proto::NodeInfo> by_absent_;  // who stands in, by NodeId
};

}  // namespace pif::tool
