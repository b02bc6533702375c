// The invariants between the directory and the components, file by file. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "command/node_states.h"
#include "pif/base/format.h"
#include "pif/parity/layout.h"
#include "pif/proto/messages.pb.h"

namespace pif::cli {

using FileRecord = proto::ListFilesReply::One;
using Held = std::map<std::uint32_t, proto::ComponentState>;  // by NodeId

// All that LFSs have.
struct Everything {
  std::map<std::uint64_t, Held> components;                   // by file; quarantined ones, too
  std::set<std::pair<std::uint64_t, std::uint32_t>> aside{};  // {file, NodeId}: rows that no catalogue knows
};

inline constexpr std::uint32_t kFilePending = 1, kFileCommitted = 2, kFileDoomed = 3;
inline constexpr std::uint32_t kComponentOpen = 1, kComponentSealed = 2, kComponentCommitted = 3;

struct Finding {
  enum class Kind : std::uint8_t {
    kLeftover,     // of a create that was never committed: its LFS removes it by itself
    kOrphan,       // committed, but no file owns it
    kMissing,      // the file has rows there, the LFS has no component
    kShape,        // another format, layout or index than the directory says
    kLength,       // rows or bytes that do not add up
    kState,        // committed file, component still being written
    kSums,         // bytes that fail their check
    kQuarantined,  // of a file that the server did not know: its LFS keeps it for a while
  };
  Kind kind = Kind::kOrphan;
  std::uint64_t file = 0;
  std::uint32_t node = 0;  // 0: the file as a whole
  std::string path;        // empty: no name
  std::string text;
};

std::string kind_name(Finding::Kind kind);
// Whether it is more than something the system still has to tidy up.
inline bool is_damage(const Finding& finding) {
  return finding.kind != Finding::Kind::kLeftover && finding.kind != Finding::Kind::kQuarantined;
}

// How many bytes of a file of fixed records are in the component of one LFS.
std::uint64_t bytes_of_rows(const parity::Layout& layout, LfsIndex index, std::uint32_t record_length,
                            const FileLength& file_length);

// `file`: as the directory has it, or null. `held`: every component of that file id on any LFS.
std::vector<Finding> examine(std::uint64_t id, const FileRecord* file, const Held& held);

}  // namespace pif::cli
