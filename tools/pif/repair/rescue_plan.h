// Which files a decision about an old disk or directory concerns. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pif/wire/values.h"
#include "repair/examine.h"

namespace pif::cli {

struct MarkedFile {
  std::uint64_t file = 0;
  std::uint32_t node = 0;
  std::uint32_t kind = wire::kMarkMixed;
  std::string path;  // empty: it is being created, and will be given up
};

// As the kind of a mark: the marks of that node go.
inline constexpr std::uint32_t kNoMark = 0;

// A stale LFS is taken as it is. A file whose rows there were never changed since it was committed is as good as ever,
// if they are there; others may mix old rows with new ones. `there`: its components. nodes: all, as the server has
// them.
struct StalePlan {
  std::vector<MarkedFile> marked;
  std::size_t rebuildable = 0;  // of these: had the node an empty root, they would get back all
  std::size_t parity = 0;       // files with parity whose part there may be old, or is missing, and have no mark
};
StalePlan plan_stale(std::uint32_t node, const std::map<std::uint64_t, FileRecord>& files,
                     const std::map<std::uint64_t, proto::ComponentState>& there,
                     const std::vector<proto::NodeInfo>& nodes);
// All rows of the node are gone. A file that has parity of them, or them as parity, on nodes that are all there is to
// be rebuilt, and gets no mark.
struct LostPlan {
  std::vector<MarkedFile> marked;
  std::vector<MarkedFile> rebuilt;
};
// nodes: all, as the server has them.
LostPlan plan_lost(std::uint32_t node, const std::map<std::uint64_t, FileRecord>& files,
                   const std::vector<proto::NodeInfo>& nodes);

// Nodes that are no members, and have a part of what files need of which the node has a part, too: they may have what
// its loss would take.
std::vector<std::uint32_t> needed_of_pair(std::uint32_t node, const std::map<std::uint64_t, FileRecord>& files,
                                          const std::vector<proto::NodeInfo>& nodes);

// The loss of an absent node is accepted.
struct AcceptedPlan {
  // Files with parity that are on it and on a companion that is absent, or lacks its part. Only that node had the bytes
  // that were written to them since the other was lost.
  std::vector<MarkedFile> concerned;
  // Their companions that take part and lack their part. It cannot come back any more.
  std::vector<MarkedFile> marked;
};
AcceptedPlan plan_accepted(std::uint32_t node, const std::map<std::uint64_t, FileRecord>& files,
                           const std::vector<proto::NodeInfo>& nodes);

// An old directory is kept. `everything`: with all overwrites in place. `nodes`: as a server that is behind describes
// them.
struct OldDirectoryPlan {
  std::vector<proto::AdoptFiles::One> adopted;  // what it does not know
  std::vector<MarkedFile> marked;               // what it knows, and LFSs have lost or may have old
};
OldDirectoryPlan plan_old(const std::map<std::uint64_t, FileRecord>& files, const Everything& everything,
                          const std::vector<proto::NodeInfo>& nodes);

}  // namespace pif::cli
