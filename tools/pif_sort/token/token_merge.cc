#include "token/token_merge.h"

#include <cstring>

#include <fmt/format.h>

namespace pif::sort {
namespace {

constexpr std::uint64_t kQueuedBytesMax = 16u << 20;  // of an outlet, beyond which nothing new is merged
constexpr std::size_t kLoadedMax = 3;                 // blocks, beyond which none is loaded ahead
constexpr std::size_t kNumberedMax = 8;  // row blocks of records that wait to be shipped while tokens are taken

tl::unexpected<Error> nonsense(const Head& head) {
  return fail(Code::kInvalid, fmt::format("another worker said '{}' of merge {}, which does not fit",
                                          static_cast<char>(head.say), head.node));
}

}  // namespace

// ---- what both machines have ----------------------------------------------------------------------------------------

Merge::Merge(tool::Team& team, MergeShape shape, unsigned side, std::uint32_t index, Part& part, Outlet& outlet)
    : team_(team), shape_(std::move(shape)), side_(side), index_(index), part_(part), outlet_(outlet) {
  const auto width = static_cast<std::uint32_t>(own().ranks.size());
  own_records_ = Placement(width, shape_.block_records).rows(index_, own().records);
  next_load_ = index_;
  started_ = side_ != 0 || index_ != 0;  // the reader of A's first block starts
}

bool Merge::has_room() const { return outlet_.queued_bytes() < kQueuedBytesMax; }

Status Merge::print_error(std::uint32_t rank, MessageKind what, const Values& values, net::Buffer body) {
  if (body.size() > kBodyBytesMax)  // a single key: blocks have so few records that the keys of more fit
    return fail(Code::kTooLarge,
                fmt::format("a record's sort key takes {} bytes on its way, and a token carries {}: use --merge split",
                            body.size(), kBodyBytesMax));
  return team_.send(rank, Head{what, shape_.node, values}.pack(), std::move(body));
}

Result<Block*> Merge::load(std::uint64_t block) {
  const auto found = loaded_.find(block);
  if (found != loaded_.end()) return &found->second;
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

// ---- blocks ---------------------------------------------------------------------------------------------------------

Status BatchedMerge::start() {
  if (own().records == 0) return say_rest(other(), 0, 0);
  if (other().records == 0) return say_rest(own(), 0, 0);
  PIF_TRY_VALUE(const Block* const block, load(0));
  return print_error(reader(other(), 0), MessageKind::kToken, {0, own().ranks[0], 0, 0, 0}, block->keys.pack(0));
}

Status BatchedMerge::say_rest(const SideShape& side, std::uint64_t from, std::uint64_t number) {
  for (const std::uint32_t rank : side.ranks) PIF_TRY(print_error(rank, MessageKind::kRest, {from, number}));
  return {};
}

Status BatchedMerge::take(const Head& head, std::span<const std::byte> body) {
  const Values& v = head.values;
  switch (head.say) {
    case MessageKind::kToken: {
      auto keys = KeyList::unpack(body);
      const bool fits = keys && is_own(v[0]) && !token_;
      if (!fits) return nonsense(head);
      ++counts_.hops;
      token_ = Token{v[0], static_cast<std::uint32_t>(v[1]), v[2], v[3], v[4], std::move(*keys)};
      return {};
    }
    case MessageKind::kPlace: return take_place(head, body);
    case MessageKind::kRest: {
      const Placement placement(static_cast<std::uint32_t>(own().ranks.size()));
      const Row before = placement.rows(index_, v[0] / shape_.block_records);  // own blocks
      rest_ = Rest{v[0], v[1], placement.record_at({index_, before})};
      return {};
    }
    default: return nonsense(head);
  }
}

Result<bool> BatchedMerge::go_on() {
  if (!has_room()) return false;
  if (token_ && is_full(token_->block) && numbered_.size() < kNumberedMax) {
    Token token = std::move(*token_);
    token_.reset();
    PIF_TRY(merge(std::move(token)));
    return true;
  }
  if (!numbered_.empty()) {
    PIF_TRY(ship_numbered());
    return true;
  }
  if (!rest_) return load_ahead();
  if (rest_->next_block >= blocks(own()) || !is_full(rest_->next_block)) return false;
  PIF_TRY(ship_rest());
  return true;
}

Status BatchedMerge::ship_numbered() {
  const Numbered next = std::move(numbered_.front());
  numbered_.pop_front();
  PIF_TRY_VALUE(Block* const block, load(next.block));
  for (std::size_t i = 0; i < next.distances.size(); ++i) ship(*block, next.from + i, next.number + next.distances[i]);
  shipped(next.block);
  return {};
}

Status BatchedMerge::merge(Token token) {
  const Time begin = team_.clock().now();
  PIF_TRY_VALUE(const Block* const block, load(token.block));
  const KeyList& mine = block->keys;
  const KeyList& theirs = token.keys;
  std::size_t x = 0, z = 0;
  std::vector<std::uint32_t> own_at, other_at;  // distances of the numbers
  own_at.reserve(mine.size());
  other_at.reserve(theirs.size());
  while (x < mine.size() && z < theirs.size()) {
    const auto distance = static_cast<std::uint32_t>(x + z);
    if (before(mine[x], theirs[z])) {
      own_at.push_back(distance);
      ++x;
    } else {
      other_at.push_back(distance);
      ++z;
    }
  }
  PIF_TRY(pass_on(token, *block, x, z));
  counts_.acted += team_.clock().now() - begin;
  if (z > 0) {
    net::Buffer numbers = net::Buffer::copy_of(std::as_bytes(std::span(other_at)));
    const std::uint64_t first = token.other_block * shape_.block_records + token.other_from;
    PIF_TRY(print_error(token.holder, MessageKind::kPlace, {first, z, token.number}, std::move(numbers)));
  }
  if (x > 0) numbered_.push_back({token.block, 0, token.number, std::move(own_at)});
  return {};
}

Status BatchedMerge::pass_on(const Token& token, const Block& block, std::size_t x, std::size_t z) {
  const std::uint64_t number = token.number + x + z, m = shape_.block_records;
  if (x == block.size()) {
    if (token.block + 1 == blocks(own()))
      return say_rest(other(), token.other_block * m + token.other_from + z, number);
    return print_error(reader(own(), token.block + 1), MessageKind::kToken,
                       {token.block + 1, token.holder, token.other_block, token.other_from + z, number},
                       token.keys.pack(z));
  }
  if (token.other_block + 1 == blocks(other())) return say_rest(own(), token.block * m + x, number);
  ++counts_.crossings;
  return print_error(reader(other(), token.other_block + 1), MessageKind::kToken,
                     {token.other_block + 1, own().ranks[index_], token.block, x, number}, block.keys.pack(x));
}

Status BatchedMerge::take_place(const Head& head, std::span<const std::byte> body) {
  const auto [first, count, number, unused, unused_too] = head.values;
  const std::uint64_t block = first / shape_.block_records, from = first % shape_.block_records;
  if (!is_own(block) || body.size() != count * sizeof(std::uint32_t)) return nonsense(head);
  PIF_TRY_VALUE(const Block* const loaded, load(block));
  if (from + count > loaded->size()) return nonsense(head);
  std::vector<std::uint32_t> distances(count);
  if (count > 0) std::memcpy(distances.data(), body.data(), body.size());
  numbered_.push_back({block, from, number, std::move(distances)});
  return {};
}

// One block of it.
Status BatchedMerge::ship_rest() {
  const std::uint64_t block = rest_->next_block, first = block * shape_.block_records;
  PIF_TRY_VALUE(Block* const loaded, load(block));
  const std::uint64_t from = std::max(first, rest_->from);
  for (std::uint64_t record = from; record < first + loaded->size(); ++record) {
    ship(*loaded, record - first, rest_->number + (record - rest_->from));
  }
  shipped(block);
  rest_->next_block += own().ranks.size();
  return {};
}

// ---- figure 5.4 -----------------------------------------------------------------------------------------------------

Status FigureMerge::start() {
  Step step;
  step.holder = own().ranks[index_];
  step.write_all = own().records == 0;
  if (!step.write_all) {
    PIF_TRY_VALUE(const Block* const block, load(0));
    step.key = block->keys[0];
  }
  if (!other().ranks.empty()) return say_step(other().ranks[0], step);
  step.write_all = true;  // a merge with nothing
  return say_step(own().ranks[0], step);
}

Status FigureMerge::say_step(std::uint32_t rank, const Step& step) {
  net::Buffer key = net::Buffer::copy_of(std::as_bytes(std::span(step.key)));
  return print_error(rank, MessageKind::kStep, {step.write_all ? 1U : 0U, step.holder, step.number}, std::move(key));
}

Status FigureMerge::take(const Head& head, std::span<const std::byte> body) {
  if (head.say == MessageKind::kEnd) {
    over_ = true;
    return {};
  }
  if (head.say != MessageKind::kStep || step_) return nonsense(head);
  ++counts_.hops;
  step_ = Step{head.values[0] != 0, static_cast<std::uint32_t>(head.values[1]), head.values[2],
               std::string(reinterpret_cast<const char*>(body.data()), body.size())};
  return {};
}

Result<bool> FigureMerge::go_on() {
  if (!step_ || !has_room() || (next_ < own().records && !is_full(next_))) return false;
  const Step step = std::move(*step_);
  step_.reset();
  const Time begin = team_.clock().now();
  PIF_TRY(handle(step));
  counts_.acted += team_.clock().now() - begin;
  return true;
}

Status FigureMerge::handle(const Step& step) {
  if (next_ >= own().records) {
    if (step.write_all) return say_end();
    return say_step(step.holder, {true, own().ranks[index_], step.number, {}});
  }
  if (step.write_all) return write_own(step);
  PIF_TRY_VALUE(const Block* const block, load(next_));
  if (block->keys[0] < std::string_view(step.key)) return write_own(step);
  ++counts_.crossings;
  return say_step(step.holder, {false, own().ranks[index_], step.number, std::string(block->keys[0])});
}

Status FigureMerge::say_end() {
  for (const SideShape& side : shape_.sides) {
    for (const std::uint32_t rank : side.ranks) PIF_TRY(print_error(rank, MessageKind::kEnd, {}));
  }
  return {};
}

Status FigureMerge::write_own(const Step& step) {
  PIF_TRY_VALUE(Block* const block, load(next_));
  Step onward = step;
  ++onward.number;
  PIF_TRY(say_step(reader(own(), next_ + 1), onward));
  ship(*block, 0, step.number);
  shipped(next_);
  next_ += own().ranks.size();
  return {};
}

}  // namespace pif::sort
