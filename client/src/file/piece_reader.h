// Reads pieces of fixed records, of a committed file or of one that is created in pieces: turn by turn, all LFSs of a
// turn at once. Pieces that cannot be read through descriptors are asked for by message; others rebuild pieces of an
// LFS that is away.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pieces/async_operation.h"
#include "pieces/piece_source.h"
#include "pieces/piece_split.h"
#include "pif/component/component.h"

namespace pif::client {

class FileState;

class PieceReader : public AsyncOperation {
 public:
  // The memory of the pieces outlives it. result: what the operation returns; default: the bytes that were read.
  PieceReader(FileState& file, Fill<component::ExtentRun> fill, bool is_foreground,
              std::optional<std::uint64_t> result = {});
  // Its tasks use what is below.
  ~PieceReader() override { stop(); }

  std::uint64_t result() const override { return result_.value_or(done_); }

 private:
  // Each goes on to the next; kRebuild as often as it takes, then to kFill.
  enum class Phase : std::uint8_t { kFill, kOpen, kOpenParity, kRead, kRecover, kRebuild };
  // Pieces that are read through descriptors.
  struct Near {
    LfsIndex lfs;
    std::uint64_t bytes;
    std::optional<component::Reader> reader;  // its own: that of the component may be given a new tail meanwhile
    Status outcome;
  };
  // A piece to be rebuilt, and rows that follow one another and are rebuilt.
  struct Rest {
    LfsIndex lfs;
    component::Extent piece;
    std::shared_ptr<const Error> why;
  };
  struct Rebuilt {
    LfsIndex lfs;
    Row first, last;
    RecordNumber record;                    // in the first row
    std::vector<std::byte> bytes;           // of the records from that one to that in the last row
    std::vector<component::Extent> pieces;  // in them
    std::shared_ptr<const Error> why;
  };

  Result<bool> next() override;
  bool may_go_on(const Error& why) override;
  bool fill();
  void open();
  void read();
  void read_near(Near& near);
  void ask(LfsIndex lfs);
  [[nodiscard]] Status recover();
  void add_rest(LfsIndex lfs, std::span<const component::Extent> pieces, Error why);
  bool rebuild();
  void take(const Rebuilt& rebuilt) const;
  bool goes_on(const Rebuilt& rebuilt, const Rest& next) const;
  void ask_rebuilt(Rebuilt& rebuilt);

  FileState& file_;
  const Fill<component::ExtentRun> fill_;
  const std::optional<std::uint64_t> result_;
  PieceSplit<component::ExtentRun> pieces_;
  std::vector<LfsIndex> lfss_;                        // that have any of them
  std::deque<std::vector<component::Extent>> asked_;  // of LFSs that are asked by message
  std::deque<Near> near_;
  std::deque<Rest> rest_;
  std::deque<Rebuilt> rebuilt_;
  Phase phase_ = Phase::kFill;
  bool has_looked_anew_ = false;   // in this turn
  std::uint64_t passed_over_ = 0;  // LfsLinks::passed_over() when it began
  std::uint64_t done_ = 0;
};

// For File::read_pieces(). Null: of this file pieces are not read so. Errors: those of the request. `wanted` outlives
// it if is_foreground.
[[nodiscard]] Result<std::unique_ptr<PieceReader>> make_piece_reader(FileState& file, const File::Pieces& wanted,
                                                                     std::span<std::byte> out, bool is_foreground);

}  // namespace pif::client
