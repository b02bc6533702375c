// The end of a file's making, after its rows and before its commit: every component that has rows is sealed by its LFS,
// and then LFSs that keep parity of rows gather it. This is the one place that knows when a component's rows are
// complete and durable, and when all of a file's are, and their parity too.
//
//   kWriting --start()--> kSealing --all have answered--> kGathering --all have answered--> kSealed
//                         kSealing, kGathering --start(), after an error--> kSealing
//                         kSealing --all have answered, no parity--> kSealed
//
// Thread-safety: none; the thread of the requests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pif/access/requests.h"
#include "pif/access/row_sink.h"

namespace pif::access {

class Sealing {
 public:
  enum class State : std::uint8_t { kWriting, kSealing, kGathering, kSealed };

  // capability: to read a file that has the same rows on the same LFSs, which is not written to; keepers of parity may
  // copy its pages then. Before start().
  void set_copied_from(std::string capability) { copied_from_ = std::move(capability); }
  // Adds a Seal for each of `ends` to requests, which outlive neither this nor their grant. file_length: of the whole
  // file. patience: for a sync, beside what so many bytes take at the speed of a slow disk. LFSs without an end have no
  // component: they have no rows, or are absent in the view, and are asked for nothing. Errors are those of the
  // requests; after one, start() may be called again. kOldView: an LFS goes by a newer view than the file is made in;
  // the file must be written again.
  void start(Requests& requests, const FileLength& file_length, std::span<const ComponentEnd> ends, Duration patience);
  // kSealed when the last Seal and the last Gather have been answered, or there was none to ask for. is_sealed(): one
  // component is; false for LFSs that were not asked.
  State state() const { return state_; }
  bool is_sealed(LfsIndex lfs) const { return lfs < sealed_.size() && sealed_[lfs]; }

 private:
  [[nodiscard]] Status component_sealed(LfsIndex lfs, Requests& requests);
  void all_sealed(Requests& requests);
  [[nodiscard]] Status gathered();

  State state_ = State::kWriting;
  std::vector<bool> sealed_;  // by LFS
  std::size_t missing_ = 0;   // answers, of those asked for in this state
  FileLength file_length_;
  Duration patience_{};      // of one request
  std::string copied_from_;  // capability; empty: nobody knows of such a file
};

}  // namespace pif::access
