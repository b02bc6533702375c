// Two sorted sub-files become one by a token that travels between their readers: this worker's part in it.
//
// Dibble 1990, figure 5.4, lets the token carry one key, so that a record costs a hop. Here it carries the keys of what
// is unwritten of the other side's block, and a hop merges blocks; block size 1 and FigureMerge give the thesis's
// machine.
//
//   on the token for block b of this side, which carries keys of block j of the other side from record y on:
//     take from both, always the smaller, until one block ends; each taken record gets the next number
//     this block ended:     the token goes to the reader of block b + 1 with what is left of the keys
//     the other one ended:  the token goes to the reader of block j + 1 with the keys of what is left here
//     there is no such block: the other side's rest has the following numbers
//   then, off the critical path: the numbers of the other side's taken records go to their reader; the own ones are
//   shipped
//
// Every block gets the token once. Records are shipped to where their numbers belong in the next sub-file, or in the
// output.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "pif/base/placement.h"
#include "pif/tool/team.h"
#include "sort.pb.h"
#include "token/subfile.h"

namespace pif::sort {

// Where merged records go, with their new numbers; these rise between two flushes. `original` (the number in the input)
// and the record stay where they are until the flush.
class Outlet {
 public:
  virtual ~Outlet() = default;
  virtual void put(std::uint64_t number, const std::uint64_t& original, Bytes record) = 0;
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
  Merge(tool::Team& team, MergeShape shape, unsigned side, std::uint32_t index, Part& part, Outlet& outlet);
  virtual ~Merge() = default;

  // What can be done now; whether that was anything.
  [[nodiscard]] Result<bool> advance();
  // What worker `from` sent about this merge. kCorrupt if it cannot be true.
  [[nodiscard]] virtual Status take(std::uint32_t from, const message::MergeMessage& message,
                                    std::span<const std::byte> body) = 0;
  // All records of this worker's part have been shipped, and nobody will ask it for anything.
  virtual bool is_done() const { return shipped_ == own_records_; }
  const MergeCounts& counts() const { return counts_; }

 protected:
  [[nodiscard]] virtual Status start() = 0;
  [[nodiscard]] virtual Result<bool> go_on() = 0;
  const SideShape& own() const { return shape_.sides[side_]; }
  const SideShape& other() const { return shape_.sides[1 - side_]; }
  // Who reads record `record` of a side, and which of the reader's blocks that is in.
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
  [[nodiscard]] Status send(std::uint32_t rank, message::MergeMessage message, net::Buffer body = {});
  [[nodiscard]] tl::unexpected<Error> does_not_fit(std::uint32_t from, std::string_view what) const;
  // The next block that a token may come for, while there is time. False: nothing was to be done.
  [[nodiscard]] Result<bool> load_ahead();
  // Record i of the block.
  void ship(Block& block, std::size_t i, std::uint64_t number);
  void shipped(std::uint64_t block);  // no more of it for now
  bool has_room() const;

  tool::Team& team_;
  const MergeShape shape_;
  const unsigned side_;
  const std::uint32_t index_;
  Part& part_;
  Outlet& outlet_;
  MergeCounts counts_;

 private:
  std::map<std::uint64_t, Block> loaded_;  // by number in the sub-file
  std::vector<Block> spare_;               // memory for the next ones
  std::uint64_t next_load_;                // the first that was not loaded
  std::uint64_t own_records_ = 0;
  std::uint64_t shipped_ = 0;
  bool started_ = false;
};

class BatchedMerge final : public Merge {
 public:
  using Merge::Merge;
  [[nodiscard]] Status take(std::uint32_t from, const message::MergeMessage& message,
                            std::span<const std::byte> body) override;

 private:
  struct Token {
    std::uint64_t block = 0;   // of this side
    std::uint32_t holder = 0;  // rank of the reader of the other side's block
    std::uint64_t other_block = 0, other_from = 0;
    std::uint64_t number = 0;
    KeyList keys;
  };
  struct Numbered {  // records of a block that have numbers and wait to be shipped
    std::uint64_t block = 0;
    std::size_t from = 0;
    std::uint64_t number = 0;  // and for each its distance from it
    std::vector<std::uint32_t> distances;
  };
  struct Rest {
    std::uint64_t from = 0;  // record of this side
    std::uint64_t number = 0;
    std::uint64_t next_block = 0;
  };
  [[nodiscard]] Status start() override;
  [[nodiscard]] Result<bool> go_on() override;
  [[nodiscard]] Status merge(Token token);
  [[nodiscard]] Status pass_on(const Token& token, const Block& block, std::size_t x, std::size_t z);
  [[nodiscard]] Status send_token(std::uint32_t rank, const Token& token, net::Buffer keys);
  [[nodiscard]] Status send_rest(const SideShape& side, std::uint64_t first, std::uint64_t number);
  [[nodiscard]] Status take_token(std::uint32_t from, const message::MergeMessage::Token& token,
                                  std::span<const std::byte> body);
  [[nodiscard]] Status take_place(std::uint32_t from, const message::MergeMessage::Place& place,
                                  std::span<const std::byte> body);
  [[nodiscard]] Status take_rest(std::uint32_t from, const message::MergeMessage::Rest& rest);
  [[nodiscard]] Status ship_rest();
  [[nodiscard]] Status ship_numbered();

  std::optional<Token> token_;     // waits for its block
  std::deque<Numbered> numbered_;  // off the token's path: shipped when no token waits
  std::optional<Rest> rest_;
};

// Figure 5.4 itself, one record per hop, with what it takes to be right on every input:
// a reader that wrote its last record goes on; the end of a sub-file is noticed when a token arrives at a reader that
// has no more; so does a token that says "write all" end the merge; who begins without a record sends one of these.
class FigureMerge final : public Merge {
 public:
  using Merge::Merge;
  [[nodiscard]] Status take(std::uint32_t from, const message::MergeMessage& message,
                            std::span<const std::byte> body) override;

 private:
  struct Step {
    bool write_all = false;
    std::uint32_t holder = 0;
    std::uint64_t number = 0;
    std::string key;
  };
  [[nodiscard]] Status start() override;
  [[nodiscard]] Result<bool> go_on() override;
  [[nodiscard]] Status handle(const Step& step);
  [[nodiscard]] Status write_own(const Step& step);
  [[nodiscard]] Status send_end();
  [[nodiscard]] Status send_step(std::uint32_t rank, const Step& step);

  // A token may come to a reader without records.
  bool is_done() const override { return over_ && Merge::is_done(); }

  bool over_ = false;
  std::uint64_t next_ = index_;  // block of this reader, counted in the sub-file
  std::optional<Step> step_;
};

}  // namespace pif::sort
