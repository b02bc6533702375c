// The token carries the keys of what is unwritten of the other side's block, so that a hop merges two blocks; figure
// 5.4 of Dibble 1990 lets it carry one key, so that a record costs a hop (figure_merge.h).
//
//   on the token for block b of this side, which carries keys of block j of the other side from record y on:
//     take from both, always the smaller, until one block ends; each taken record gets the next number
//     this block ended:     the token goes to the reader of block b + 1 with what is left of the keys
//     the other one ended:  the token goes to the reader of block j + 1 with the keys of what is left here
//     there is no such block: the other side's rest has the following numbers
//   then, off the critical path: the numbers of the other side's taken records go to their reader; the own ones are
//   shipped
//
// With unique, the token also carries the key of the last record of the result, and goes on where one side is over: a
// block of the rest is merged with nothing.
//
// Every block gets the token once.
#pragma once

#include <deque>
#include <optional>
#include <variant>

#include "pif/tool/channel.h"
#include "token/token_merge.h"

namespace pif::sort {

class BatchedMerge final : public Merge {
 public:
  // channel: of the merge's own.
  BatchedMerge(tool::Talk& talk, std::uint32_t channel, Clock& clock, MergeShape shape, unsigned side,
               std::uint32_t index, Part& part, Outlet& outlet);

  // For a block of the receiver. The keys of what is unwritten of the other side's block are in the body.
  struct Token {
    std::uint64_t block = 0;
    std::uint32_t holder = 0;       // rank of the reader of the other side's block
    std::uint64_t other_block = 0;  // as many as there are: that side is over
    std::uint64_t other_from = 0;   // its first record whose key is in the body
    std::uint64_t taken = 0;        // records, from both sides
    std::uint64_t dropped = 0;      // of these
    std::uint64_t last_bytes = 0;   // of the body, in front: the key of the last record of the result
    std::uint64_t number() const { return taken - dropped; }  // of the next record of the result
    static auto members(auto& self) {
      return std::tie(self.block, self.holder, self.other_block, self.other_from, self.taken, self.dropped,
                      self.last_bytes);
    }
  };
  // Numbers of records of the receiver: their distances from `number` are in the body, 32 bits each; kDropped stands
  // for a record that has none.
  struct Place {
    std::uint64_t first = 0;  // record of the receiver's side
    std::uint64_t count = 0;
    std::uint64_t number = 0;
    static auto members(auto& self) { return std::tie(self.first, self.count, self.number); }
  };
  // From the receiver's side's record `first` on, numbers follow one another.
  struct Rest {
    std::uint64_t first = 0;
    std::uint64_t number = 0;
    static auto members(auto& self) { return std::tie(self.first, self.number); }
  };
  using Word = std::variant<Token, Place, Rest, MoreOfToken>;
  static constexpr std::uint32_t kDropped = UINT32_MAX;

 private:
  struct Arrived {
    Token token;
    std::string last;
    KeyList keys;
  };
  class Hop;
  struct Numbered {  // records of a block that have numbers and wait to be shipped
    std::uint64_t block = 0;
    std::size_t from = 0;
    std::uint64_t number = 0;  // and for each its distance from it
    std::vector<std::uint32_t> distances;
    std::size_t shipped = 0;
  };
  struct Following {         // the rest
    std::uint64_t from = 0;  // record of this side
    std::uint64_t number = 0;
    std::uint64_t next_block = 0;
  };
  [[nodiscard]] Status start() override;
  [[nodiscard]] Result<bool> go_on() override;
  [[nodiscard]] Status merge(const Arrived& arrived);
  [[nodiscard]] Status pass_on(const Arrived& arrived, const Block& block, const Hop& hop);
  [[nodiscard]] Status pass_on_unique(const Arrived& arrived, const Block& block, Hop& hop);
  [[nodiscard]] Status send_token(std::uint32_t rank, Token token, std::string_view last, net::Buffer keys);
  [[nodiscard]] Status start_unique();
  [[nodiscard]] Status send_rest(const SideShape& side, std::uint64_t first, std::uint64_t number);
  [[nodiscard]] Status take(const tool::Channel<Word>::Item& item);
  [[nodiscard]] Status take(const Token& token, std::vector<std::byte> body);
  [[nodiscard]] Status take(const Place& place, std::span<const std::byte> distances);
  [[nodiscard]] Status take(const Rest& rest, std::span<const std::byte> nothing);
  [[nodiscard]] Status ship_rest();
  [[nodiscard]] Status ship_numbered();

  // With unique a token comes to every block but the one whose keys the first token carries.
  bool may_be_over() const override { return next_token_ >= blocks(own()); }

  tool::Channel<Word> words_;
  std::optional<Arrived> arrived_;     // waits for its block
  std::uint64_t next_token_ = index_;  // the first of the own blocks for which none has come
  std::deque<Numbered> numbered_;      // off the token's path: shipped when no token waits
  std::optional<Following> rest_;
};

}  // namespace pif::sort
