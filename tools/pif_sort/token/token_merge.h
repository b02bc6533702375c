// Two sorted sub-files become one by a token that travels between their readers (Dibble 1990, 5.3.2): what every such
// merge has. A reader has every k-th block of its side; records that have a number in the result are shipped to where
// that belongs in the next sub-file, or in the output.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "pif/base/clock.h"
#include "pif/base/limits.h"
#include "pif/base/placement.h"
#include "token/subfile.h"

namespace pif::sort {

// Where merged records go, with their new numbers; these rise between two flushes. `original` (the number in the input)
// and the record stay where they are until the flush.
class Outlet {
 public:
  virtual ~Outlet() = default;
  virtual void put(std::uint64_t number, const std::uint64_t& original, Bytes record) = 0;
  virtual void expect(std::uint64_t /*original*/) const {}  // it will be put soon
  virtual void flush() = 0;
  virtual std::uint64_t queued_bytes() const = 0;
};

struct SideShape {
  std::vector<std::uint32_t> ranks;  // its readers
  std::uint64_t records = 0;
};

struct MergeShape {
  std::uint32_t node = 0;          // of the merge tree, in what is said
  std::array<SideShape, 2> sides;  // A, B
  std::uint64_t block_records = 1;
  std::uint64_t key_bytes = 0;  // of the longest key
  bool unique = false;          // of records with equal keys only the first gets into the result
};

// Before a token: the first bytes of its body, which is longer than a message's.
struct MoreOfToken {
  static auto members(auto&) { return std::tie(); }
};

struct MergeCounts {
  std::uint64_t hops = 0;       // of tokens to here
  std::uint64_t crossings = 0;  // of them, from the other side
  Duration acted{};             // from when a token could go on until it had gone, all of them together

  void add(const MergeCounts& other) {
    hops += other.hops;
    crossings += other.crossings;
    acted += other.acted;
  }
};

class Merge {
 public:
  // side, index: which reader this worker is. part: its part of that side. All outlive it.
  Merge(Clock& clock, MergeShape shape, unsigned side, std::uint32_t index, Part& part, Outlet& outlet);
  virtual ~Merge() = default;

  // Does what can be done now; whether that was anything.
  [[nodiscard]] Result<bool> advance();
  // All records of this worker's part have been shipped, and nobody will ask it for anything.
  virtual bool is_done() const { return shipped_ == own_records_; }
  // Whether all tokens have come that come to this worker before the merge is over: who calls it over before errs.
  virtual bool may_be_over() const = 0;
  const MergeCounts& counts() const { return counts_; }
  // Records of the result, where records are dropped: at the worker that had the token last.
  std::optional<std::uint64_t> result() const { return result_; }

 protected:
  [[nodiscard]] virtual Status start() = 0;
  [[nodiscard]] virtual Result<bool> go_on() = 0;
  const SideShape& own() const { return shape_.sides[side_]; }
  const SideShape& other() const { return shape_.sides[1 - side_]; }
  // The reader of record `record` of a side, and which of the reader's blocks that is in.
  Cell place(const SideShape& side, std::uint64_t block) const {
    return Placement(static_cast<std::uint32_t>(side.ranks.size())).locate(block);
  }
  std::uint32_t reader(const SideShape& side, std::uint64_t block) const { return side.ranks[place(side, block).lfs]; }
  bool is_own(std::uint64_t block) const { return block < blocks(own()) && place(own(), block).lfs == index_; }
  std::uint64_t blocks(const SideShape& side) const {
    return (side.records + shape_.block_records - 1) / shape_.block_records;
  }
  bool is_full(std::uint64_t block) const { return part_.is_full(place(own(), block).row); }
  std::uint64_t all_records() const { return own().records + other().records; }
  // Records of block `block` of a side.
  std::uint64_t block_size(const SideShape& side, std::uint64_t block) const {
    return std::min(shape_.block_records, side.records - block * shape_.block_records);
  }
  static bool reads(const SideShape& side, std::uint32_t rank) {
    return std::find(side.ranks.begin(), side.ranks.end(), rank) != side.ranks.end();
  }
  // Whether the block is in memory, or the next one that is to come there.
  bool can_load(std::uint64_t block) const { return loaded_.contains(block) || block == next_load_; }
  // The block, if it is in memory.
  const Block* loaded(std::uint64_t block) const {
    const auto found = loaded_.find(block);
    return found == loaded_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] Result<Block*> load(std::uint64_t block);
  // A token's body: the key of the last record of the result so far, if that counts, and what else the token carries.
  static net::Buffer body_of(std::string_view last, net::Buffer keys);
  // If a body is longer than a message's, all but the last part goes ahead, by more(part); that one comes back. Blocks
  // have so few records that this is rare.
  template <typename F>
  [[nodiscard]] static Result<net::Buffer> send_ahead(net::Buffer body, const F& more) {
    std::span<const std::byte> rest = std::as_const(body).span();
    if (rest.size() <= kBodyBytesMax) return body;
    for (; rest.size() > kBodyBytesMax; rest = rest.subspan(kBodyBytesMax))
      PIF_TRY(more(net::Buffer::copy_of(rest.first(kBodyBytesMax))));
    return net::Buffer::copy_of(rest);
  }
  // The other end of it, for each sender: what one sends ahead is not taken for another one's. kInvalid: longer than a
  // token's keys can be.
  [[nodiscard]] Status take_ahead(std::uint32_t from, std::span<const std::byte> part);
  std::vector<std::byte> whole_body(std::uint32_t from, std::span<const std::byte> last_part);
  // Its token is to follow; no other word of that sender does.
  bool has_sent_ahead(std::uint32_t from) const { return ahead_.contains(from); }
  // Whether keys with their numbers are of equal records; of none of them, if there was none before.
  static bool is_same(std::string_view last, std::string_view key) {
    return !last.empty() && last.substr(0, last.size() - kNumberBytes) == key.substr(0, key.size() - kNumberBytes);
  }
  // kInvalid: what another worker said of this merge.
  [[nodiscard]] tl::unexpected<Error> does_not_fit(std::string_view what) const;
  // The next block that a token may come for, while there is time. False: nothing was to be done.
  [[nodiscard]] Result<bool> load_ahead();
  // Record i of the block. expect: some time before.
  void expect(const Block& block, std::size_t i) const {
    if (i < block.size()) outlet_.expect(block.numbers[i]);
  }
  void ship(Block& block, std::size_t i, std::uint64_t number);
  void drop(Block& block);            // a record of it
  void shipped(std::uint64_t block);  // no more of it for now
  bool has_room() const;

  Clock& clock_;
  const MergeShape shape_;
  const unsigned side_;
  const std::uint32_t index_;
  Part& part_;
  Outlet& outlet_;
  MergeCounts counts_;
  std::optional<std::uint64_t> result_;

 private:
  std::map<std::uint64_t, Block> loaded_;  // by number in the sub-file
  std::vector<Block> spare_;               // memory for the next ones
  std::uint64_t next_load_;                // the first that was not loaded
  std::uint64_t own_records_ = 0;
  std::uint64_t shipped_ = 0;  // or dropped
  bool started_ = false;
  std::map<std::uint32_t, std::vector<std::byte>> ahead_;  // what came before a token, by the sender's rank
};

}  // namespace pif::sort
