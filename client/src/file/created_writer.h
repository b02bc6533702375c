// Writing the records of a file that is being created: cut into rows, and each LFS's rows put into its sink. All of it
// goes by the view in which the file was created: kOldView, from an LFS or at the commit, means that the file must be
// written again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pif/access/row_sink.h"
#include "pif/access/sealing.h"

namespace pif::client {

class FileState;

class CreatedWriter {
 public:
  explicit CreatedWriter(FileState& file);

  // Records from `first` on, which is not past the end; fixed ones.
  [[nodiscard]] Status write(RecordNumber first, std::span<const std::byte> in);
  // Records behind the last; variable ones, checked.
  [[nodiscard]] Status append_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data);

  // Finds out how these components are written, and makes those that are reached by descriptors; all at once. True: all
  // are.
  [[nodiscard]] Result<bool> open(std::span<const access::RowRange> rows);
  // The sink of an LFS that is open. Whoever writes to it says so afterwards, on this thread.
  access::RowSink& sink(LfsIndex lfs) { return *sinks_[lfs]; }
  void note_written(const access::RowRange& rows);

  // Makes what was written readable through its descriptors.
  [[nodiscard]] Status make_readable(LfsIndex lfs);
  // Whether something was written that make_readable() has not shown.
  bool has_unshown(LfsIndex lfs) const { return sinks_[lfs] && sinks_[lfs]->has_unshown(); }
  // Packed rows that are still gathered here; empty: they have been sent.
  std::span<const std::byte> gathered(const access::RowRange& rows) const;

  // Rows, and seals, on their way.
  access::Requests& requests() { return behind_; }
  // Ends writing, and seals every LFS that got rows; waits for it.
  [[nodiscard]] Status seal();
  // The same without waiting: requests() says when it is done.
  [[nodiscard]] Status start_sealing();
  // Forgets all that was written here.
  void drop();
  // All that was written is in the components, which others write on from now on.
  [[nodiscard]] Status give_up();

 private:
  [[nodiscard]] Status flush();
  [[nodiscard]] Status write_all(Range records, std::span<const std::byte> in, bool direct);
  [[nodiscard]] Status write_by_message(const access::RowRange& rows, Range records, std::span<const std::byte> in);
  [[nodiscard]] Status bound_behind();
  [[nodiscard]] Status add_seals(access::Requests& requests);

  FileState& file_;
  std::vector<std::unique_ptr<access::RowSink>> sinks_;  // by LFS; empty: not open
  std::vector<access::RowRange> ranges_;                 // scratch of a batch
  bool unterminated_ = false;                            // delimited: the last record lacks its delimiter
  bool has_copies_ = false;                              // rows of absent LFSs
  access::Sealing sealing_;
  access::Requests behind_;  // writes on their way; they use what is above
};

}  // namespace pif::client
