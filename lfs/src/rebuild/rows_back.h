// The rows of one LFS of a file, which is absent, come back from those who keep their parity, into a component's files:
// those of an LFS that is rebuilt, or ones without names (stand_in_rows.h). Requests go ahead of what is written,
// within bounds (row_streams.h). One thread, but for what `works` does.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "parity/keeping.h"
#include "rebuild/rate_limit.h"
#include "rebuild/row_streams.h"

namespace pif::lfs {

struct AbsentRows {
  proto::ComponentShape shape;  // of the absent LFS's component; made and layout are what it says
  component::Shape made;
  parity::Layout layout;
  std::unique_ptr<access::Grant> grant;  // for the LFSs that keep their parity

  LfsIndex index() const { return shape.index(); }
};
using AbsentRowsPtr = std::shared_ptr<const AbsentRows>;

// Whether a component of these rows is as long as the file's length says. kCorrupt.
[[nodiscard]] Status check_tail(const AbsentRows& rows, const FileLength& file_length, const component::Tail& tail);

class RowsBack {
 public:
  // Where they are written.
  struct Place {
    std::shared_ptr<component::Files> files;
    component::Tail begin;  // of what is in the files
    Row first = 0;          // what is in front of it is there
  };

  // keeping and rate, which may be null, outlive it. file_length: of the whole file.
  RowsBack(Keeping& keeping, AbsentRowsPtr rows, const FileLength& file_length, Place place, RateLimit* rate = nullptr);
  // Fetches and writes all rows, and returns the tail of the files. Called by a fiber, once.
  [[nodiscard]] Result<component::Tail> run();
  // The same after a run that failed, as far as it came.
  const component::Tail& tail() const { return tail_; }
  // It ends with this error when what is under way has come to its end.
  void give_up(Error error);
  // About how many bytes all rows take on the disk.
  static std::uint64_t bytes_of(const AbsentRows& rows, const FileLength& file_length);

 private:
  [[nodiscard]] Status fetch_and_write();
  // Returns when it is to be called again, as the rate allows no more now.
  Time fetch_more();
  // On a fiber of its own. rows: lost_, which that fiber needs, too.
  void run_errand(const std::shared_ptr<RowStreams::Piece>& piece, const AbsentRowsPtr& rows);
  [[nodiscard]] Status fetch(RowStreams::Piece& piece);
  [[nodiscard]] Status take(RowStreams::Piece& piece, net::Packet& reply);
  // Away from the loop.
  [[nodiscard]] Status write(const RowStreams::Batch& batch, bool is_last);
  [[nodiscard]] Status finish();

  Keeping& keeping_;
  const AbsentRowsPtr lost_;
  const FileLength file_length_;
  const std::vector<LfsIndex> keepers_;
  const std::shared_ptr<component::Files> files_;
  RateLimit* const rate_;
  RowStreams streams_;
  component::Writer writer_;  // over files_
  component::Tail tail_;
  unsigned errands_ = 0;  // fetches under way, each on a fiber of its own
  daemon::Event news_;    // one has ended
  std::optional<Error> failure_;
};

}  // namespace pif::lfs
