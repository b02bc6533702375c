// An output in the order of its records' numbers, from whichever workers have them: each puts the records that it knows
// the numbers of, and they go to the workers on the output's LFSs, which put rows together in windows and write these
// one after another. Fixed and variable records, bevies too.
//
//   PIF_TRY_VALUE(auto out, OrderedOutput::open(worker, team, output, length, {}));
//   return out.fill([&]() -> Result<bool> {
//     ... out.put(number, record) some records ...
//     return there are more;
//   });
//
// examples/reverse.cc is a whole tool. A tool that says more to other workers has a talk of its own (channel.h), joins
// it and calls step(). Not thread-safe. Every record below the lowest one that no worker has put yet must be on its way
// without waiting for others: then it cannot deadlock.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "pif/tool/channel.h"
#include "pif/tool/numbered.h"
#include "pif/tool/team.h"

namespace pif::tool {

class OrderedOutput {
 public:
  struct Options {
    std::size_t window_bytes = 8u << 20;  // that this worker holds of its component's rows
    bool share_memory = true;   // rows of fixed length go straight into windows of workers on the same machine
    bool has_open_end = false;  // file_length is the most that the output may have; end() says what it has
  };
  // Called by all workers; steps of the team. file_length: of the whole output; its bytes count only where all records
  // have one length. The three outlive it. kInternal: an LFS
  // of the output has no worker; else as Team::share().
  static Result<OrderedOutput> open(Worker& worker, Team& team, Output& output, const FileLength& file_length,
                                    const Options& options);
  OrderedOutput(OrderedOutput&&) noexcept;  // moved from, it may only be destroyed
  ~OrderedOutput();                         // what is not is_done() yet is lost

  // Everything, in a talk of its own: put_some() puts some records, and says whether there are more. It is not called
  // again before enough of them are sent. Returns when all workers' components are written. Errors: put_some's; of the
  // talk; kIo, kNoSpace: rows cannot be written.
  [[nodiscard]] Status fill(const std::function<Result<bool>()>& put_some);

  // number: below the output's records, put by one worker only. Numbers rise between two flushes; the record stays
  // where it is until the flush. The last one of a file of fixed records may be shorter; what is beyond the file's end
  // goes nowhere. Neither sends anything: step() and go_on() do.
  void put(RecordNumber number, std::span<const std::byte> record);
  void flush();
  std::uint64_t queued_bytes() const;  // of records that wait for room at their destinations

  // With an open end, by every worker, once the output's records are known, and while the talk goes on: step() and
  // is_done() then know of it. (So not with fill(), which is the only thing that goes on.) kInvalid: they are more than
  // open() said, or the output has no open end, or has it already, or rows beyond it have come; kIo, kNoSpace: the last
  // rows cannot be written.
  [[nodiscard]] Status end(std::uint64_t records);

  // In a talk of the tool's: join it before anything is put; the talk's end is the output's. Its channel is 0.
  void join(Talk& talk);
  // Sends what there is room for; whether that was anything.
  [[nodiscard]] Result<bool> step();
  // Whether little enough waits that it is time to put more.
  bool has_room() const;
  // This worker's component is written up to its end, and nothing that it has put still waits.
  bool is_done() const;

 private:
  struct Impl;
  explicit OrderedOutput(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pif::tool
