// The split merge between workers that share no memory (Dibble 1990 has none like it; for workers on one machine see
// near_split.h): every worker sends each other the piece of its runs that is of the other's share, merges the pieces of
// its own, and sends the rows of the result to the workers on the output's LFSs. Every record travels twice at most.
// Each of a worker's threads has a share of its own; what is said, the worker's own thread says.
//
// Records of fixed length are written as they come, by all shares at once. For others the number of a share's first
// record, or its place, is not known before all lower shares are merged: shares are kept in scratch files, and put out
// in their order.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "pif/tool/channel.h"
#include "pif/tool/ordered_output.h"
#include "runs/row_blocks.h"
#include "split/pieces.h"
#include "split/split_options.h"
#include "split/splitters.h"

namespace pif::sort {

class FarSplit {
 public:
  // All outlive it.
  FarSplit(tool::Worker& worker, tool::Team& team, Inputs& inputs, tool::Output& output, const KeyMaker& maker,
           const SplitOptions& options);
  ~FarSplit();
  // own: this worker's runs, which get their windows here. Called by all workers.
  [[nodiscard]] Status run(std::span<RunView> own);
  const FileLength& put_out() const { return put_out_; }  // by this worker

 private:
  struct Outgoing {  // a piece for a share
    Outgoing(std::uint32_t to, std::size_t which, const KeyMaker& maker, const Inputs& inputs,
             std::span<const RunView> runs, std::vector<std::size_t> begin, std::vector<std::size_t> end)
        : rank(to),
          share(which),
          order(maker, inputs.numbers()),
          sender(runs, std::move(begin), std::move(end), order, inputs.format()) {}
    std::uint32_t rank;
    std::size_t share;  // of that worker's
    Order order;
    PieceSender sender;
    std::optional<PieceBatch> batch;  // to be sent
  };
  // One of this worker's.
  class Share;
  // Records of the receiver's share, in order; they are in the body.
  struct Piece {
    std::uint32_t count = 0;
    bool is_last = false;
    static auto members(auto& self) { return std::tie(self.count, self.is_last); }
  };
  // Rows of the output's component at the receiver; they are in the body.
  struct Block {
    std::uint64_t first = 0, count = 0;
    static auto members(auto& self) { return std::tie(self.first, self.count); }
  };
  [[nodiscard]] Status open(std::span<RunView> own);
  [[nodiscard]] Status exchange();
  [[nodiscard]] Status open_shares(const std::vector<std::uint64_t>& records);
  void join(tool::Talk& talk);
  [[nodiscard]] Result<bool> send_pieces();
  [[nodiscard]] Result<bool> merge_pieces();
  [[nodiscard]] Result<bool> send_row_blocks();
  [[nodiscard]] Status take_piece(std::size_t share, tool::Channel<Piece>::Item item);
  [[nodiscard]] Status write_block(const tool::Channel<Block>::Item& item);
  [[nodiscard]] Status put_out_kept();
  bool is_done() const;

  tool::Worker& worker_;
  tool::Team& team_;
  Inputs& inputs_;
  tool::Output& output_;
  const KeyMaker& maker_;
  SplitOptions options_;
  bool is_direct_;  // rows are written as they come
  std::size_t batch_bytes_;
  std::vector<std::uint32_t> sources_;       // ranks of the workers that have records of the inputs
  std::vector<std::uint32_t> targets_;       // of those on the output's
  std::vector<std::uint32_t> first_shares_;  // by rank, and how many there are: in the order of the result
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  std::vector<std::unique_ptr<Share>> shares_;
  std::vector<std::unique_ptr<tool::Channel<Piece>>> piece_channels_;  // by share of a worker
  std::optional<tool::Channel<Block>> block_channel_;
  std::uint64_t rows_ = 0;          // of this worker's component,
  std::uint64_t rows_missing_ = 0;  // and those that have not come
  FileLength put_out_;
};

}  // namespace pif::sort
