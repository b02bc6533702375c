// Records with numbers, on their way to where their numbers belong: gathered into messages, one destination and rising
// rows each, which go as far as there is credit. Pure: what is sent, the caller sends.
//
// It cannot deadlock where destinations make room in the order of their rows: of what waits, the lowest rows go first.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "pif/base/placement.h"
#include "pif/base/result.h"
#include "pif/net/buffer.h"
#include "pif/tool/credit.h"
#include "pif/tool/narrow.h"

namespace pif::tool {

// Where a record goes: a destination, and the row there.
struct NumberedPlace {
  std::uint32_t to = 0;
  Row row = 0;
};

// Rows on their way to one destination, rising from `first` to `last`: `count` of them, one every `stride`. stride 0:
// the body starts with their RowGaps. Then, unless all records have one length, their lengths (NarrowNumbers,
// Room::kAlways); then the records, packed.
struct RowMessage {
  std::uint32_t to = 0;
  Row first = 0, last = 0;
  std::uint64_t count = 0;
  std::uint64_t stride = 0;
  std::uint64_t record_bytes = 0;
  bool placed = false;  // the records are in the destination's memory, and not in the body
  net::Buffer body;

  // From the first to behind the last.
  Range rows() const { return {first, last + 1}; }
  // As a channel counts it.
  std::uint64_t counted_bytes(const Credit& credit) const {
    return credit.unit() == Credit::Unit::kRows ? record_bytes : body.size();
  }
};

class NumberedSender {
 public:
  using Place = std::function<NumberedPlace(std::uint64_t number)>;
  using Emit = std::function<Status(RowMessage)>;

  // place: where the record of a number goes, to < destinations, with rows that rise with the numbers of one
  // destination. A message does not cross a multiple of piece_rows, which is at most half a window.
  NumberedSender(std::uint32_t destinations, bool fixed_length, std::uint64_t piece_rows, Place place);
  // Before anything is put: how far it may go there. memory: for records of one length, the destination's window, row r
  // at r mod its rows. A row that there is room for when it is put goes there at once; its message only mentions it
  // (RowMessage::placed). Both outlive the sender.
  void open(std::uint32_t to, const Credit& credit, std::span<std::byte> memory);

  // Numbers rise between two flushes. `head` and `record` together are the record; both stay where they are until the
  // flush.
  void put(std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> record);
  // Lets all that was put go; its memory is the caller's again.
  void flush();
  // Sends what the credit allows, by emit(), which uses it; whether that was anything. An error is emit's, and that
  // message is lost.
  [[nodiscard]] Result<bool> step(const Emit& emit);

  // Bodies of messages that were flushed and not sent yet, in bytes; what is put and not flushed does not count.
  std::uint64_t queued_bytes() const { return queued_bytes_; }
  bool is_empty() const { return queued_bytes_ == 0; }

 private:
  struct Open {  // the message that is being filled
    Row first = 0, last = 0;
    std::vector<std::uint32_t> gaps, lengths;
    std::uint32_t longest = 0;
    std::vector<std::span<const std::byte>> pieces;  // two of each record
    std::size_t bytes = 0;                           // of the records
    std::byte* placed = nullptr;                     // where the first of them is in the destination's memory
  };
  struct Destination {
    Open open;
    std::span<std::byte> memory;
    const Credit* credit = nullptr;
    std::map<Row, RowMessage> waiting;  // by first row
  };
  void close(std::uint32_t to);
  static void place(Destination& destination, Row row, std::span<const std::byte> head,
                    std::span<const std::byte> record);
  net::Buffer pack(const Open& open) const;

  bool fixed_length_;
  std::uint64_t piece_rows_;
  Place place_;
  std::vector<Destination> destinations_;
  std::uint64_t queued_bytes_ = 0;
};

// f(row, bytes) for every record of a message, a Status, up to its first error; kInvalid if the body is not what
// `count` says, perhaps after some records. record_length 0: lengths differ. Rows are not checked.
template <typename F>
[[nodiscard]] Status for_each_record(Row first, std::uint64_t count, std::uint32_t record_length,
                                     std::span<const std::byte> body, const F& f) {
  std::span<const std::byte> rest = body;
  const auto gaps = RowGaps::take(rest, count, Room::kAsNeeded);
  auto lengths = std::optional<NarrowNumbers>(NarrowNumbers());
  if (gaps && record_length == 0) lengths = NarrowNumbers::take(rest, count, Room::kAlways);
  if (!gaps || !lengths) return fail(Code::kInvalid, "a message of records is shorter than it says");
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t length = record_length > 0 ? record_length : (*lengths)[i];
    if (rest.size() < length) return fail(Code::kInvalid, "a message of records is shorter than it says");
    PIF_TRY(f(first + i + (*gaps)[i], rest.first(length)));
    rest = rest.subspan(length);
  }
  if (rest.empty()) return {};
  return fail(Code::kInvalid, "a message of records has another length than it says");
}

// A message of records of one length to their places, if it is not placed yet: row r is at r mod the rows that the
// memory has, which is at least one. kInvalid: as for_each_record().
[[nodiscard]] Status place_records(const RowMessage& message, std::uint32_t record_length, std::span<std::byte> memory);

}  // namespace pif::tool
