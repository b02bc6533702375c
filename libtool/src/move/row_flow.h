// Rows on their way to the components of an output: the channel that they travel on, the window of this worker's own
// component, and those of the others that are on this machine.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "move/rows.h"
#include "pif/tool/channel.h"
#include "pif/tool/team.h"

namespace pif::tool {

class RowFlow {
 public:
  // Called by all workers; steps of the team. file_length: of the whole output. All outlive it. kInternal: an LFS of
  // the output has no worker.
  static Result<std::unique_ptr<RowFlow>> open(Worker& worker, Team& team, Output& output,
                                               const FileLength& file_length, const WindowSize& window,
                                               bool share_memory);
  // file_length is the most that the output may have: end() says what it has.
  void leave_open() {
    if (receiver_) receiver_->leave_open();
  }
  // kInvalid: rows beyond that have come.
  [[nodiscard]] Status end(std::uint64_t records);
  // Opens the channel. senders: ranks of those that have rows for this worker; none: all workers. The talk outlives it.
  void join(Talk& talk, std::vector<std::uint32_t> senders = {});

  // Once it has joined a talk. By LFS of the output: how far rows may go; memory where they may be put, if any.
  const Credit& credit(LfsIndex to) const { return channel_->credit(ranks_[to]); }
  std::span<std::byte> memory(LfsIndex to) const;
  // Gets the pages of all that memory for this process.
  void populate() const;
  // As far as the credit allows. Puts records of fixed length into the memory, if they are not there yet.
  [[nodiscard]] Status send(RowMessage message);

  bool is_settled() const { return channel_->is_settled(); }              // what was sent is written
  bool is_written() const { return !receiver_ || receiver_->is_done(); }  // this worker's component
  std::uint64_t bytes_taken() const { return bytes_taken_; }

 private:
  struct Rows {
    std::uint64_t first = 0, count = 0, stride = 0;
    bool placed = false;
    static auto members(auto& self) { return std::tie(self.first, self.count, self.stride, self.placed); }
  };
  RowFlow(Worker& worker, Output& output, const FileLength& file_length, const WindowSize& window);
  [[nodiscard]] Status share_windows(Team& team);
  [[nodiscard]] Status take(Channel<Rows>::Item item);
  [[nodiscard]] Status place(RowMessage& message) const;

  Worker& worker_;
  Output& output_;
  std::uint64_t records_;  // of the whole output
  WindowSize window_;
  std::vector<std::uint32_t> ranks_;     // of the workers on the output's LFSs, in their order
  std::optional<RowReceiver> receiver_;  // if this LFS is one of these
  std::vector<SharedMemory> windows_;    // by rank; empty: rows go as messages
  std::optional<Channel<Rows>> channel_;
  std::uint64_t bytes_taken_ = 0;
};

}  // namespace pif::tool
