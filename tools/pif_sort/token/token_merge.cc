#include "token/token_merge.h"

#include <fmt/format.h>

#include "pif/base/packed.h"
#include "pif/tool/message.h"

namespace pif::sort {
namespace {

constexpr std::uint64_t kQueuedBytesMax = 16u << 20;  // of an outlet, beyond which nothing new is merged
constexpr std::size_t kLoadedMax = 3;                 // blocks, beyond which none is loaded ahead
constexpr std::size_t kNumberedMax = 8;  // row blocks of records that wait to be shipped while tokens are taken

using message::MergeMessage;

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

tl::unexpected<Error> Merge::does_not_fit(std::uint32_t from, std::string_view what) const {
  return tool::sent_nonsense(from, fmt::format("{} of merge {}, which does not fit", what, shape_.node));
}

Status Merge::send(std::uint32_t rank, MergeMessage message, net::Buffer body) {
  if (body.size() > kBodyBytesMax)  // a single key: blocks have so few records that the keys of more fit
    return fail(Code::kTooLarge,
                fmt::format("a record's sort key takes {} bytes on its way, and a token carries {}: use --merge split",
                            body.size(), kBodyBytesMax));
  message.set_node(shape_.node);
  return team_.send(rank, message.SerializeAsString(), std::move(body));
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
  if (own().records == 0) return send_rest(other(), 0, 0);
  if (other().records == 0) return send_rest(own(), 0, 0);
  PIF_TRY_VALUE(const Block* const block, load(0));
  return send_token(reader(other(), 0), {0, own().ranks[0], 0, 0, 0, {}}, block->keys.pack(0));
}

Status BatchedMerge::send_token(std::uint32_t rank, const Token& token, net::Buffer keys) {
  MergeMessage message;
  MergeMessage::Token& out = *message.mutable_token();
  out.set_block(token.block);
  out.set_holder(token.holder);
  out.set_other_block(token.other_block);
  out.set_other_from(token.other_from);
  out.set_number(token.number);
  return send(rank, std::move(message), std::move(keys));
}

Status BatchedMerge::send_rest(const SideShape& side, std::uint64_t first, std::uint64_t number) {
  MergeMessage message;
  message.mutable_rest()->set_first(first);
  message.mutable_rest()->set_number(number);
  for (const std::uint32_t rank : side.ranks) PIF_TRY(send(rank, message));
  return {};
}

Status BatchedMerge::take(std::uint32_t from, const MergeMessage& message, std::span<const std::byte> body) {
  switch (message.what_case()) {
    case MergeMessage::kToken: return take_token(from, message.token(), body);
    case MergeMessage::kPlace: return take_place(from, message.place(), body);
    case MergeMessage::kRest: return take_rest(from, message.rest());
    default: return does_not_fit(from, "a message");
  }
}

// Every block gets the token once, in their order.
Status BatchedMerge::take_token(std::uint32_t from, const MergeMessage::Token& token, std::span<const std::byte> body) {
  const std::uint64_t block = token.block(), other_block = token.other_block();
  const bool blocks_fit = is_own(block) && can_load(block) && other_block < blocks(other()) && !token_ && !rest_;
  if (!blocks_fit || token.holder() != reader(other(), other_block)) return does_not_fit(from, "a token");
  auto keys = KeyList::unpack(body);
  const bool keys_fit = keys && token.other_from() < block_size(other(), other_block) &&
                        keys->size() == block_size(other(), other_block) - token.other_from();
  const std::uint64_t before = block * shape_.block_records + other_block * shape_.block_records + token.other_from();
  if (!keys_fit || token.number() != before) return does_not_fit(from, "a token's keys");
  ++counts_.hops;
  token_ = Token{block, token.holder(), other_block, token.other_from(), token.number(), std::move(*keys)};
  return {};
}

Status BatchedMerge::take_rest(std::uint32_t from, const MergeMessage::Rest& rest) {
  const bool fits = !rest_ && rest.first() <= own().records && rest.number() == rest.first() + other().records;
  if (!fits) return does_not_fit(from, "the rest");
  const Placement placement(static_cast<std::uint32_t>(own().ranks.size()));
  const Row before = placement.rows(index_, rest.first() / shape_.block_records);  // own blocks
  rest_ = Rest{rest.first(), rest.number(), placement.record_at({index_, before})};
  return {};
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
    net::Buffer numbers(other_at.size() * sizeof(std::uint32_t));
    pack_numbers(std::span(std::as_const(other_at)), numbers.data());
    MergeMessage message;
    message.mutable_place()->set_first(token.other_block * shape_.block_records + token.other_from);
    message.mutable_place()->set_count(z);
    message.mutable_place()->set_number(token.number);
    PIF_TRY(send(token.holder, std::move(message), std::move(numbers)));
  }
  if (x > 0) numbered_.push_back({token.block, 0, token.number, std::move(own_at)});
  return {};
}

Status BatchedMerge::pass_on(const Token& token, const Block& block, std::size_t x, std::size_t z) {
  const std::uint64_t number = token.number + x + z, m = shape_.block_records;
  if (x == block.size()) {
    if (token.block + 1 == blocks(own()))
      return send_rest(other(), token.other_block * m + token.other_from + z, number);
    return send_token(reader(own(), token.block + 1),
                      {token.block + 1, token.holder, token.other_block, token.other_from + z, number, {}},
                      token.keys.pack(z));
  }
  if (token.other_block + 1 == blocks(other())) return send_rest(own(), token.block * m + x, number);
  ++counts_.crossings;
  return send_token(reader(other(), token.other_block + 1),
                    {token.other_block + 1, own().ranks[index_], token.block, x, number, {}}, block.keys.pack(x));
}

// They are of a block that is here, because its keys went out with a token. Numbers rise: each record has its own.
Status BatchedMerge::take_place(std::uint32_t from, const MergeMessage::Place& place, std::span<const std::byte> body) {
  const std::uint64_t block = place.first() / shape_.block_records, at = place.first() % shape_.block_records;
  const auto numbers = PackedNumbers<std::uint32_t>::all_of(body, place.count());
  const Block* const numbered = loaded(block);
  const bool fits = numbers && place.count() > 0 && numbered != nullptr && at <= numbered->size() &&
                    place.count() <= numbered->size() - at && place.number() <= all_records();
  if (!fits) return does_not_fit(from, "numbers of records");
  std::vector<std::uint32_t> distances(numbers->size());
  for (std::size_t i = 0; i < distances.size(); ++i) {
    distances[i] = (*numbers)[i];
    if (i > 0 && distances[i] <= distances[i - 1]) return does_not_fit(from, "numbers that do not rise");
  }
  if (distances.back() >= all_records() - place.number()) return does_not_fit(from, "a number beyond the last record");
  numbered_.push_back({block, at, place.number(), std::move(distances)});
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
  if (!other().ranks.empty()) return send_step(other().ranks[0], step);
  step.write_all = true;  // a merge with nothing
  return send_step(own().ranks[0], step);
}

Status FigureMerge::send_step(std::uint32_t rank, const Step& step) {
  net::Buffer key = net::Buffer::copy_of(std::as_bytes(std::span(step.key)));
  MergeMessage message;
  message.mutable_step()->set_write_all(step.write_all);
  message.mutable_step()->set_holder(step.holder);
  message.mutable_step()->set_number(step.number);
  return send(rank, std::move(message), std::move(key));
}

Status FigureMerge::take(std::uint32_t from, const MergeMessage& message, std::span<const std::byte> body) {
  if (message.has_end()) {
    over_ = true;
    return {};
  }
  const MergeMessage::Step& step = message.step();
  const bool fits = message.has_step() && !step_ && (reads(own(), step.holder()) || reads(other(), step.holder())) &&
                    step.number() <= all_records();
  if (!fits) return does_not_fit(from, "a step");
  ++counts_.hops;
  step_ = Step{step.write_all(), step.holder(), step.number(),
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
    if (step.write_all) return send_end();
    return send_step(step.holder, {true, own().ranks[index_], step.number, {}});
  }
  if (step.write_all) return write_own(step);
  PIF_TRY_VALUE(const Block* const block, load(next_));
  if (block->keys[0] < std::string_view(step.key)) return write_own(step);
  ++counts_.crossings;
  return send_step(step.holder, {false, own().ranks[index_], step.number, std::string(block->keys[0])});
}

Status FigureMerge::send_end() {
  MergeMessage message;
  message.mutable_end();
  for (const SideShape& side : shape_.sides) {
    for (const std::uint32_t rank : side.ranks) PIF_TRY(send(rank, message));
  }
  return {};
}

Status FigureMerge::write_own(const Step& step) {
  PIF_TRY_VALUE(Block* const block, load(next_));
  Step onward = step;
  ++onward.number;
  PIF_TRY(send_step(reader(own(), next_ + 1), onward));
  ship(*block, 0, step.number);
  shipped(next_);
  next_ += own().ranks.size();
  return {};
}

}  // namespace pif::sort
