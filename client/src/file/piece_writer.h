// Writes pieces of a file that is created in pieces, turn by turn, all LFSs of a turn at once. One turn has arrived
// before the next begins: of bytes that both have, the later ones stay.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "pieces/async_operation.h"
#include "pieces/piece_source.h"
#include "pieces/piece_split.h"

namespace pif::client {

class FileState;

class PieceWriter : public AsyncOperation {
 public:
  // The memory of the pieces outlives it. result: what the operation returns; default: the bytes that were written.
  PieceWriter(FileState& file, Fill<component::ConstExtent> fill, bool is_foreground,
              std::optional<std::uint64_t> result = {});
  // Its tasks use what is below.
  ~PieceWriter() override { stop(); }

  std::uint64_t result() const override { return result_.value_or(done_); }

 private:
  enum class Phase : std::uint8_t { kFill, kOpen, kWrite, kTake };  // in turn
  struct Near {
    LfsIndex lfs;
    component::File& data;
    std::uint64_t bytes;
    Status outcome;
  };

  Result<bool> next() override;
  bool fill();
  void write();
  [[nodiscard]] Status take();

  FileState& file_;
  const Fill<component::ConstExtent> fill_;
  const std::optional<std::uint64_t> result_;
  PieceSplit<component::ConstExtent> pieces_;
  std::deque<Near> near_;
  Phase phase_ = Phase::kFill;
  std::uint64_t end_ = 0;  // of this turn's bytes
  std::uint64_t done_ = 0;
};

// For File::write_pieces(). Null: there is nothing to write, or the file is a committed one. Errors: those of the
// request. `wanted` outlives it if is_foreground.
[[nodiscard]] Result<std::unique_ptr<PieceWriter>> make_piece_writer(FileState& file, const File::Pieces& wanted,
                                                                     std::span<const std::byte> in, bool is_foreground);

}  // namespace pif::client
