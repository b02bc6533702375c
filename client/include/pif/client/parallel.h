// Parallel-open (Dibble 1990, 2.4.2): a controller opens a file for n members, processes or threads anywhere, who move
// one record each in every round. In round r, member i moves record position + r * n + i. A release is one small
// message to each member, through the PIF Server; records travel between members and LFSs alone. n has nothing to do
// with the number of LFSs: more members than LFSs share them.
//
// To read, the controller opens a committed file and every member gets its records. To write, it creates a file, whose
// members all are (File::share()): when it has ended the rounds, members have said done(), and it commits the file.
// Errors of all calls: kTimeout and kUnavailable (a daemon, which is named), kNotFound (the server was started again,
// which ends all rounds), and those they name. Thread-safety: that of the Client they were made with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pif/client/client.h"

namespace pif {

struct ParallelOptions {
  std::uint32_t members = 1;
  RecordNumber position = 0;
  std::uint64_t rounds_in_flight = 64;  // released, and not done by all: the credit of those who are fast
};

class ParallelController {
 public:
  // For `file`, which outlives it: open for reading, or being created with fixed records. kInvalid: neither.
  [[nodiscard]] static Result<ParallelController> open(File& file, const ParallelOptions& options);
  ParallelController(ParallelController&&) noexcept;
  ParallelController& operator=(ParallelController&&) noexcept;
  ~ParallelController();  // no more rounds; waits for nobody

  // The token for ParallelMember::join(), valid for a day, to be sent by any channel.
  const std::string& token() const;
  // Releases `rounds` more rounds, and returns when no more than rounds_in_flight are not done by all. Records that
  // members move in them: fewer than rounds * members at the end of the file. kUnavailable: a member has gone, whom it
  // names; then nothing more is released.
  [[nodiscard]] Result<std::uint64_t> read(std::uint64_t rounds = 1);
  // Releases them, and waits until all members have moved theirs. kInvalid: the file is open for reading.
  [[nodiscard]] Status write(std::uint64_t rounds = 1);
  // Until all that was released is done.
  [[nodiscard]] Status wait();
  // wait(), and no more rounds: members hear of it. Whatever it returns, it is closed.
  [[nodiscard]] Status close();

 private:
  struct State;
  explicit ParallelController(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class ParallelMember {
 public:
  // index: which member; default: the lowest that nobody is. kExists: somebody is; kInvalid: there are not so many;
  // kBadCapability: no token of a controller, or one that has expired; kPermission: another user's.
  [[nodiscard]] static Result<ParallelMember> join(Client& client, std::string_view token,
                                                   std::optional<std::uint32_t> index = {});
  // Moved from, it may only be assigned to and destroyed. Destroyed, it is gone for the controller when its client is.
  ParallelMember(ParallelMember&&) noexcept;
  ParallelMember& operator=(ParallelMember&&) noexcept;
  ~ParallelMember();

  // Which of how many it is, and what the file's records are: asks nobody.
  std::uint32_t index() const;
  std::uint32_t members() const;
  const Format& format() const;
  struct Moved {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
  };
  // Its records of the next rounds: as many as are released and `out` has room for (packed), at least one; waits for
  // the next release. Nothing: there will be none. A round in which its record is past the end of the file has none,
  // and is passed over. kCancelled: the controller, or another member, has gone; kInvalid: it writes, or `out` has no
  // room for a record, or records have no fixed length.
  [[nodiscard]] Result<std::optional<Moved>> read(std::span<std::byte> out);
  // The same of records of variable length, with their lengths: as many as `bytes_max` holds, but at least one, and
  // kBatchRecordsMax at most. Each is a read of its own. kInvalid: records have a fixed length.
  static constexpr std::uint64_t kBatchRecordsMax = 4096;
  [[nodiscard]] Result<std::optional<RecordBatch>> read_batch(std::size_t bytes_max = 4u << 20);
  // Whole records, packed, one for each of the next rounds; waits for their release. kEndOfFile: there will be none.
  [[nodiscard]] Status write(std::span<const std::byte> in);
  // For a file that is written: this member writes no more (File::done()). After the rounds have ended.
  [[nodiscard]] Status done();

 private:
  struct State;
  explicit ParallelMember(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pif
