// The split merge between workers that share no memory: the part of a worker's runs that belongs to another's share is
// a piece, which travels in batches, in order; the share's owner merges the pieces of all.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "output/output.h"
#include "pif/net/buffer.h"
#include "runs/merge.h"

namespace pif::sort {

// Records of one piece on their way: their rows in the input's component; of variable records their lengths, both as
// NarrowNumbers (Room::kAlways); then their bytes. Without records it is empty.
struct PieceBatch {
  std::uint32_t count = 0;
  bool is_last = false;
  net::Buffer body;
};

// The source of a piece: [begin, end) of every one of its runs, merged.
class PieceSender {
 public:
  // runs and order outlive it.
  PieceSender(std::span<const RunView> runs, std::vector<std::size_t> begin, std::vector<std::size_t> end, Order& order,
              const Format& format);
  bool is_done() const { return is_done_; }
  // The next batch, of about `bytes` bytes, one record at least if there is any. The last one may be empty.
  PieceBatch next(std::size_t bytes);

 private:
  std::span<const RunView> runs_;
  Merger merger_;
  OutputRecord record_;
  bool is_fixed_;
  bool is_done_ = false;
  std::vector<Pick> picks_;  // of a batch, with their rows and lengths
  std::vector<std::uint32_t> rows_, lengths_;
};

// The pieces of one share, where they are merged.
class PieceMerger {
 public:
  // sources: a piece comes from each. maker, numbers and order outlive it.
  PieceMerger(std::size_t sources, const KeyMaker& maker, const RecordNumbers& numbers, Order& order,
              const Format& format);

  // kInvalid if the batch is not what it says, or comes after the last.
  [[nodiscard]] Status take(std::size_t piece, PieceBatch batch);
  // Every piece has a batch, or is over.
  bool is_ready() const;
  bool is_done() const;
  // f(record) for all records that come before what has not come yet, in order. Only if is_ready().
  template <typename F>
  [[nodiscard]] Status merge(const F& f) {
    std::vector<RunView> views;
    Merger merger = begin_merge(views);
    for (; !merger.is_done(); merger.advance()) {
      const Pick pick = merger.peek();
      PIF_TRY(f(views[pick.run].record(pick.index)));
    }
    end_merge();
    return {};
  }
  // Batches of the piece that were merged since the last call.
  std::uint32_t take_merged(std::size_t piece) { return std::exchange(pieces_[piece].merged, 0); }

 private:
  struct Batch {
    net::Buffer body;
    std::vector<Element> elements;
    std::vector<std::uint64_t> ends;  // variable records
    const std::byte* records = nullptr;
  };
  struct Piece {
    std::uint32_t source = 0;
    std::deque<Batch> batches;
    std::size_t at = 0, end = 0;  // of the first batch: merged so far, and up to where now
    bool is_over = false;         // the last batch has come
    std::uint32_t merged = 0;
  };
  [[nodiscard]] Status open(const PieceBatch& from, std::uint64_t rows_there, Batch& batch);
  RunView view(const Piece& piece) const;
  // Whether all that is there may be merged: nothing of the piece comes after it.
  static bool is_bound(const Piece& piece) {
    return !piece.batches.empty() && (!piece.is_over || piece.batches.size() > 1);
  }
  Merger begin_merge(std::vector<RunView>& views);
  void end_merge();

  std::vector<Piece> pieces_;
  const KeyMaker& maker_;
  const RecordNumbers& numbers_;
  Order& order_;
  Format format_;
  std::string key_;
};

}  // namespace pif::sort
