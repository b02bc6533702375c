// The records of an input by what is in them: each goes to the worker that a function names, say by a hash of its key.
// So all records of one key are with one worker. Records that come are kept in scratch files, one for each sender. A
// record travels once, in large messages. Not thread-safe.
//
//   const auto owner = [&](auto, auto record) { return hash(key_of(record)) % p; };
//   PIF_TRY_VALUE(auto mine, Partition::make(worker, team, *input, owner));
//   while (true) {
//     PIF_TRY_VALUE(const bool more, mine.next(batch));
//     if (!more) break;
//     ...
//   }
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "pif/base/ids.h"
#include "pif/base/result.h"
#include "pif/tool/component.h"
#include "pif/tool/team.h"
#include "pif/tool/worker.h"

namespace pif::tool {

class Partition {
 public:
  // Names the worker, by rank, that the record of this number goes to.
  using Owner = std::function<std::uint32_t(RecordNumber number, std::span<const std::byte> record)>;
  // Called by all workers: a talk of the team. Returns when all that is this worker's has come. kIo, kNoSpace: scratch
  // cannot be written; else as Input::next() and a talk.
  [[nodiscard]] static Result<Partition> make(Worker& worker, Team& team, Input& input, const Owner& owner);
  Partition(Partition&&) noexcept;
  Partition& operator=(Partition&&) noexcept;
  ~Partition();

  std::uint64_t bytes() const;  // of this worker's records
  // The next of them, in the order of their numbers, up to kBatchBytes; false at the end. The batch is replaced: of
  // variable records, whose `first` says nothing. kCorrupt names a worker that sent what cannot be.
  [[nodiscard]] Result<bool> next(RowBatch& batch);
  // The rows of the last batch's records, rising. Valid until the next one.
  std::span<const RecordNumber> numbers() const;

 private:
  struct Impl;
  explicit Partition(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pif::tool
