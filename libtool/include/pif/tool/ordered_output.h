// An output in the order of its records' numbers, from whichever workers have them: each puts the records that it knows
// the numbers of, and they go to the workers on the output's LFSs, which put rows together in windows and write these
// one after another. Fixed and variable records, bevies too.
//
//   PIF_TRY_VALUE(auto out, OrderedOutput::open(worker, team, output, length, {}));
//   team.begin_talk();
//   while (has_more || !out.is_done()) {
//     if (has_more && out.has_room()) { ... out.put(number, record) ...; out.flush(); }
//     PIF_TRY(out.go_on(has_more));
//   }
//   PIF_TRY(team.barrier());
//
// examples/reverse.cc is a whole tool. A tool that talks itself calls step() and take() instead of go_on().
// Not thread-safe. Every record below the lowest one that no worker has put yet must be on its way without waiting for
// others: then it cannot deadlock.
#pragma once

#include <memory>
#include <span>

#include "pif/tool/numbered.h"
#include "pif/tool/team.h"

namespace pif::tool {

class OrderedOutput {
 public:
  static constexpr char kSign = 'O';  // first byte of its words

  struct Options {
    std::size_t window_bytes = 8u << 20;  // that this worker holds of its component's rows
    bool share_memory = true;  // rows of fixed length go straight into windows, if all workers are on one machine
  };
  // Called by all workers; a step of the team. file_length: of the whole output. The three outlive it. kInternal: an
  // LFS of the output has no worker; else as Team::share().
  static Result<OrderedOutput> open(Worker& worker, Team& team, Output& output, const FileLength& file_length,
                                    const Options& options);
  OrderedOutput(OrderedOutput&&) noexcept;  // moved from, it may only be destroyed
  ~OrderedOutput();                         // what is not is_done() yet is lost

  // number: below the output's records, put by one worker only. Numbers rise between two flushes; the record stays
  // where it is until the flush. Neither sends anything: step() and go_on() do.
  void put(RecordNumber number, std::span<const std::byte> record);
  void flush();
  std::uint64_t queued_bytes() const;  // of records that wait for room at their destinations

  // Whether little enough waits that it is time to put more.
  bool has_room() const;
  // Sends what there is room for and takes what others sent; waits for them only if there is no room for more.
  // has_more: this worker will put more. kTimeout: all others were silent; kCorrupt names a worker that sent what
  // cannot be; kIo, kNoSpace: rows cannot be written.
  [[nodiscard]] Status go_on(bool has_more);

  // Sends what there is room for, and tells others of room here; whether anything was sent. take(): a word for which
  // is_own() holds; errors as go_on().
  [[nodiscard]] Result<bool> step();
  static bool is_own(const Message& word) { return !word.head.empty() && word.head[0] == kSign; }
  [[nodiscard]] Status take(Message word);
  // This worker's component is written, and nothing that it has put still waits.
  bool is_done() const;

 private:
  struct Impl;
  explicit OrderedOutput(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pif::tool
