// Byte ranges of one component as they travel to its LFS: regular runs of pieces, rising and disjoint.
//
//   runs   = { run }
//   run    = varint(gap * 2 + strided), varint(length), [ strided: varint(stride - length), varint(count - 2) ]
//   varint = unsigned LEB128, in as few bytes as the number takes
//
// gap: bytes from the end of the last piece of the run before; for the first run, from byte 0. A run without `strided`
// is one piece. So pieces cannot overlap or fall. A piece of less than 16 KiB at any distance below 2^34 takes 7 bytes
// at most.
// Pure. Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "pif/base/result.h"

namespace pif::patterns {

inline constexpr std::size_t kRunsBytesMax = 64u << 10;  // encoded runs of one message
inline constexpr std::size_t kRunBytesMax = 40;          // of one encoded run, whatever it is
// Pieces of one message that writes them: each may take a call, and a block of the disk.
inline constexpr std::uint64_t kWrittenPiecesMax = 64u << 10;

// `count` pieces of `length` bytes; each begins `stride` bytes behind the beginning of the one before. count and length
// are at least 1. For one piece stride is its length.
struct ComponentRun {
  std::uint64_t offset = 0;  // in the component
  std::uint64_t length = 0;
  std::uint64_t stride = 0;
  std::uint64_t count = 0;

  // Where its last piece begins, and its end.
  std::uint64_t last() const { return offset + (count - 1) * stride; }
  std::uint64_t end() const { return last() + length; }

  bool operator==(const ComponentRun&) const = default;
};

// Joins pieces that touch, and makes runs of pieces of one length at one distance. A piece takes O(1).
class RunEncoder {
 public:
  // The next piece, of at least 1 byte, at or behind the end of those before; it ends below 2^63.
  void add(std::uint64_t offset, std::uint64_t length);
  // The same as add() for each piece, at once. stride: at least length, if count is over 1; the last piece ends below
  // 2^63.
  void add_run(const ComponentRun& run);

  // Bytes of all pieces together, and whether there are none.
  bool empty() const { return payload_ == 0; }
  std::uint64_t payload() const { return payload_; }
  // Behind the last piece; 0 if there is none.
  std::uint64_t end() const { return open_.length == 0 ? 0 : open_.end(); }
  // finish() gives at most so many bytes. A call of add() raises this by at most kRunBytesMax, one of add_run() by
  // three times that.
  std::size_t bytes() const { return out_.size() + 2 * kRunBytesMax; }
  // The encoded runs. The encoder is as new then.
  std::string finish();

 private:
  void close(const ComponentRun& closed);
  void fold(std::uint64_t distance, const ComponentRun& closed);
  void write(const ComponentRun& run);

  std::string out_;
  std::uint64_t payload_ = 0;
  std::uint64_t written_ = 0;  // end of the last run in out_
  ComponentRun run_;           // not written yet; count 0: none
  ComponentRun open_;          // the last piece: it may grow; length 0: none
};

struct RunLimits {
  std::uint64_t end_max = std::uint64_t{1} << 62;  // no byte at or behind it; at most 2^63
  std::uint64_t payload_max = std::uint64_t{1} << 62;
  std::uint64_t pieces_max = std::numeric_limits<std::uint64_t>::max();
};

// Reads encoded runs of another process: all of them are checked before any is given out. Allocates nothing.
class RunDecoder {
 public:
  // kInvalid, with the run's index and what is wrong: a number that is cut off, has over 64 bits or more bytes than it
  // takes, a piece without bytes, something over the limits; or over kRunsBytesMax bytes. No bytes: no runs. The bytes
  // must outlive the decoder.
  [[nodiscard]] static Result<RunDecoder> make(std::span<const std::byte> bytes, const RunLimits& limits);

  // Sums of all runs.
  std::uint64_t runs() const { return runs_; }
  std::uint64_t pieces() const { return pieces_; }
  std::uint64_t payload() const { return payload_; }
  // Behind the last byte of the last run; 0 without runs.
  std::uint64_t end() const { return end_; }

  // The next run; nothing at the end.
  std::optional<ComponentRun> next();

 private:
  explicit RunDecoder(std::span<const std::byte> bytes) : rest_(bytes) {}
  Status check(const RunLimits& limits);
  Status count(const ComponentRun& run, const RunLimits& limits);

  std::span<const std::byte> rest_;  // next() reads on here
  std::uint64_t at_ = 0;             // end of the run before
  std::uint64_t runs_ = 0;
  std::uint64_t pieces_ = 0;
  std::uint64_t payload_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace pif::patterns
