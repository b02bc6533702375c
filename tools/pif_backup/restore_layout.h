// Where a restore finds archives, and where it puts files. The controller's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backup.pb.h"
#include "pif/client/client.h"
#include "restore.h"

namespace pif::backup {

// The reader of each archive: the LFS that wrote it, if it is up and on the archive's host; else, where the archive is
// on this host, any LFS here.
class ArchiveReaders {
 public:
  [[nodiscard]] static Result<ArchiveReaders> find(tool::Controller& controller, std::string folder);
  // A NodeId. kUnavailable: no LFS that is up can.
  [[nodiscard]] Result<std::uint32_t> reader_of(const message::NodeArchive& archive) const;

 private:
  struct Reader {
    std::uint32_t id;
    std::string name;
    bool is_here;  // on this host
  };
  std::string folder_;
  std::vector<Reader> up_;
};

// How restored files are laid out: as the user says, else as they were. Where LFSs are gone, or, for files without
// parity, not up, they lie over as many as there are.
class LayoutChoice {
 public:
  [[nodiscard]] static Result<LayoutChoice> find(tool::Controller& controller, const message::ArchiveHead& head,
                                                 const RestoreOptions& options);
  // Whether a file that had parity keeps it: not if there are too few LFSs, unless the user said so.
  bool choose(const message::NamedEntry& file, CreateOptions& create) const;

 private:
  void keep(const message::NamedEntry& file, CreateOptions& create) const;

  CreateOptions wanted_;      // nodes, width, bevy
  bool says_where_ = false;   // the user gives --width or --nodes,
  bool says_parity_ = false;  // or --bevy
  bool same_system_ = false;  // NodeIds mean what they meant
  std::vector<std::uint32_t> known_, up_;
};

}  // namespace pif::backup
