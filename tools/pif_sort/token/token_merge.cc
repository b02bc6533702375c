#include "token/token_merge.h"

#include <cstring>

#include <fmt/format.h>

namespace pif::sort {
namespace {

constexpr std::uint64_t kQueuedBytesMax = 16u << 20;  // of an outlet, beyond which nothing new is merged
constexpr std::size_t kLoadedMax = 3;                 // blocks, beyond which none is loaded ahead
constexpr std::uint64_t kKeyBytesMax = 4ull << 30;    // of a key, whatever others say of theirs

}  // namespace

Merge::Merge(Clock& clock, MergeShape shape, unsigned side, std::uint32_t index, Part& part, Outlet& outlet)
    : clock_(clock), shape_(std::move(shape)), side_(side), index_(index), part_(part), outlet_(outlet) {
  const auto width = static_cast<std::uint32_t>(own().ranks.size());
  own_records_ = Placement(width, shape_.block_records).rows(index_, own().records);
  next_load_ = index_;
  started_ = side_ != 0 || index_ != 0;  // the reader of A's first block starts
}

bool Merge::has_room() const { return outlet_.queued_bytes() < kQueuedBytesMax; }

tl::unexpected<Error> Merge::does_not_fit(std::string_view what) const {
  return fail(Code::kInvalid, fmt::format("{} of merge {}, which does not fit", what, shape_.node));
}

net::Buffer Merge::body_of(std::string_view last, net::Buffer keys) {
  if (last.empty()) return keys;
  net::Buffer body(last.size() + keys.size());
  std::memcpy(body.data(), last.data(), last.size());
  if (keys.size() > 0) std::memcpy(body.data() + last.size(), std::as_const(keys).data(), keys.size());
  return body;
}

// Keys of several records fit into one message: there is one long key at most, and the one of the last record.
Status Merge::take_ahead(std::uint32_t from, std::span<const std::byte> part) {
  const std::uint64_t most = kBodyBytesMax + 2 * std::min(shape_.key_bytes, kKeyBytesMax);
  std::vector<std::byte>& ahead = ahead_[from];
  if (part.empty() || ahead.size() + part.size() > most) return does_not_fit("a part of a token");
  ahead.insert(ahead.end(), part.begin(), part.end());
  return {};
}

std::vector<std::byte> Merge::whole_body(std::uint32_t from, std::span<const std::byte> last_part) {
  std::vector<std::byte> body;
  if (auto ahead = ahead_.extract(from)) body = std::move(ahead.mapped());
  body.insert(body.end(), last_part.begin(), last_part.end());
  return body;
}

Result<Block*> Merge::load(std::uint64_t block) {
  const auto found = loaded_.find(block);
  if (found != loaded_.end()) return &found->second;
  if (block != next_load_)  // others said something of it that is not so
    return fail(Code::kCorrupt, fmt::format("block {} of merge {} is wanted, where block {} is the next", block,
                                            shape_.node, next_load_));
  Block& made = loaded_[block];
  if (!spare_.empty()) {
    made = std::move(spare_.back());
    spare_.pop_back();
  }
  PIF_TRY(part_.load(place(own(), block).row, made));
  next_load_ = block + own().ranks.size();
  return &made;
}

Result<bool> Merge::load_ahead() {
  if (next_load_ >= blocks(own()) || loaded_.size() >= kLoadedMax || !is_full(next_load_)) return false;
  PIF_TRY(load(next_load_));
  return true;
}

void Merge::ship(Block& block, std::size_t i, std::uint64_t number) {
  outlet_.put(number, block.numbers[i], block.records[i]);
  ++block.shipped;
  ++shipped_;
}

void Merge::drop(Block& block) {
  ++block.shipped;
  ++shipped_;
}

void Merge::shipped(std::uint64_t block) {
  outlet_.flush();
  const auto found = loaded_.find(block);
  if (found == loaded_.end() || found->second.shipped < found->second.size()) return;
  found->second.clear();
  spare_.push_back(std::move(found->second));
  loaded_.erase(found);
  part_.drop(place(own(), block).row);
}

Result<bool> Merge::advance() {
  if (!started_) {
    if (own().records > 0 && !is_full(0)) return false;
    started_ = true;
    PIF_TRY(start());
    return true;
  }
  return go_on();
}

}  // namespace pif::sort
