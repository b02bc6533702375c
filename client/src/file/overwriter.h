// Changing records of a committed file. It goes by message: the LFS has a redo log for it. Those of a file with parity
// cannot be changed: FileState::check_may_overwrite().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pieces/piece_split.h"
#include "pif/access/requests.h"
#include "pif/access/row_range.h"
#include "pif/component/extents.h"
#include "pif/pattern/zip.h"

namespace pif::client {

class FileState;

class Overwriter {
 public:
  explicit Overwriter(FileState& file) : file_(file) {}

  // Fixed records that are all inside the file; `in` has their lengths (kInvalid otherwise). The requests are added and
  // started.
  [[nodiscard]] Status start(RecordNumber first, std::span<const std::byte> in, access::Requests& requests);
  // The same to its end. kRetry: the last record was filled up meanwhile.
  [[nodiscard]] Status overwrite(RecordNumber first, std::span<const std::byte> in);
  // Bytes inside one record.
  [[nodiscard]] Status overwrite_within(RecordNumber record, std::uint32_t within, std::span<const std::byte> in);
  // Variable records, which keep their lengths.
  [[nodiscard]] Status overwrite_batch(RecordNumber first, std::span<const std::uint32_t> lengths,
                                       std::span<const std::byte> data);

 private:
  FileState& file_;
  std::vector<access::RowRange> ranges_;  // scratch of a batch
};

// Pieces of fixed records, by few messages to each LFS. A turn is answered after a sync of each LFS's log, so
// several are under way: but none that writes between what those before it write, for of bytes that both have the later
// ones stay.
class PieceOverwriter {
 public:
  // The file may be overwritten, and outlives it.
  explicit PieceOverwriter(FileState& file);

  // All that is left of `zip`, from `in`; durable when it returns. After an error any of it may have been written.
  [[nodiscard]] Status write(patterns::Zip& zip, std::span<const std::byte> in);

 private:
  using Turn = PieceSplit<component::ConstExtent>;

  [[nodiscard]] Status write_turn(patterns::Zip& zip, std::span<const std::byte> in);
  // For bytes [begin, end): few enough turns are under way, and none of them writes there.
  [[nodiscard]] Status make_way(std::uint64_t begin, std::uint64_t end);
  void send(const std::shared_ptr<Turn>& turn);
  std::size_t count_turns();

  FileState& file_;
  std::vector<std::weak_ptr<const Turn>> under_way_;  // their requests have them
  std::uint64_t begin_ = UINT64_MAX, end_ = 0;        // of what they write, or have written
  access::Requests requests_;
};

}  // namespace pif::client
