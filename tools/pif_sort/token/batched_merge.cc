#include "token/batched_merge.h"

#include "pif/base/packed.h"

namespace pif::sort {
namespace {

constexpr std::size_t kShippedAtOnce = 512;
constexpr std::size_t kNumberedMax = 8;  // row blocks of records that wait to be shipped while tokens are taken

}  // namespace

// What is taken from the block here (x records) and from the keys of the other side (z), and its numbers.
class BatchedMerge::Hop {
 public:
  Hop(const KeyList& mine, const KeyList& theirs, bool unique, std::string_view last)
      : mine_(mine), theirs_(theirs), unique_(unique), last_(last) {
    own_at.reserve(mine.size());
    other_at.reserve(theirs.size());
  }

  // Always the smaller, until one side ends.
  void merge() {
    while (x < mine_.size() && z < theirs_.size()) before(mine_[x], theirs_[z]) ? take_own() : take_other();
  }
  void take_own() { number(mine_[x++], own_at); }
  void take_other() { number(theirs_[z++], other_at); }
  std::string_view last() const { return last_; }  // key of the result's last record, with unique

  std::size_t x = 0, z = 0;
  std::uint32_t kept = 0;
  std::vector<std::uint32_t> own_at, other_at;  // distances of the numbers

 private:
  void number(std::string_view key, std::vector<std::uint32_t>& distances) {
    if (unique_ && is_same(last_, key)) return distances.push_back(kDropped);
    if (unique_) last_ = key;
    distances.push_back(kept++);
  }

  const KeyList& mine_;
  const KeyList& theirs_;
  const bool unique_;
  std::string_view last_;
};

BatchedMerge::BatchedMerge(tool::Talk& talk, std::uint32_t channel, Clock& clock, MergeShape shape, unsigned side,
                           std::uint32_t index, Part& part, Outlet& outlet)
    : Merge(clock, std::move(shape), side, index, part, outlet),
      words_(talk, channel, {}, [this](const tool::Channel<Word>::Item& item) { return take(item); }) {}

Status BatchedMerge::start() {
  if (own().records == 0 || other().records == 0) {
    if (shape_.unique) return start_unique();
    return own().records == 0 ? send_rest(other(), 0, 0) : send_rest(own(), 0, 0);
  }
  PIF_TRY_VALUE(const Block* const block, load(0));
  next_token_ = own().ranks.size();
  return send_token(reader(other(), 0), {0, own().ranks[0], 0, 0, 0, 0, 0}, {}, block->keys.pack(0));
}

// One side is over from the first.
Status BatchedMerge::start_unique() {
  const SideShape& there = own().records == 0 ? other() : own();
  return send_token(reader(there, 0), {0, own().ranks[index_], 0, 0, 0, 0, 0}, {}, KeyList().pack(0));
}

Status BatchedMerge::send_token(std::uint32_t rank, Token token, std::string_view last, net::Buffer keys) {
  token.last_bytes = last.size();
  PIF_TRY_VALUE(net::Buffer body, send_ahead(body_of(last, std::move(keys)), [&](net::Buffer part) {
                  return words_.send(rank, MoreOfToken(), std::move(part));
                }));
  return words_.send(rank, token, std::move(body));
}

Status BatchedMerge::send_rest(const SideShape& side, std::uint64_t first, std::uint64_t number) {
  for (const std::uint32_t rank : side.ranks) PIF_TRY(words_.send(rank, Rest{first, number}));
  return {};
}

Status BatchedMerge::take(const tool::Channel<Word>::Item& item) {
  const auto body = item.body.span();
  if (std::holds_alternative<MoreOfToken>(item.head)) return take_ahead(item.from, body);
  if (const auto* const token = std::get_if<Token>(&item.head)) return take(*token, whole_body(item.from, body));
  if (has_sent_ahead(item.from)) return does_not_fit("a part of a token without the rest");
  if (const auto* const place = std::get_if<Place>(&item.head)) return take(*place, body);
  return take(std::get<Rest>(item.head), body);
}

// Every block gets the token once, in their order.
Status BatchedMerge::take(const Token& token, std::vector<std::byte> body) {
  const bool over = shape_.unique && token.other_block == blocks(other());  // the other side
  const bool other_fits =
      over ? token.other_from == 0
           : token.other_block < blocks(other()) && token.holder == reader(other(), token.other_block);
  if (!is_own(token.block) || !can_load(token.block) || !other_fits || arrived_ || rest_)
    return does_not_fit("a token");
  const std::string_view all(reinterpret_cast<const char*>(body.data()), body.size());
  const bool last_fits =
      token.last_bytes <= body.size() && (token.last_bytes == 0 || (shape_.unique && token.last_bytes >= kNumberBytes));
  auto keys = last_fits ? KeyList::unpack(std::span(body).subspan(token.last_bytes)) : std::nullopt;
  const std::uint64_t other_size = over ? 0 : block_size(other(), token.other_block);
  const bool keys_fit = keys && (over || token.other_from < other_size) &&
                        keys->size() == other_size - token.other_from && keys->are_at_least(kNumberBytes);
  const std::uint64_t m = shape_.block_records;
  const std::uint64_t taken = token.block * m + (over ? other().records : token.other_block * m + token.other_from);
  const bool counts_fit = token.taken == taken && token.dropped <= (shape_.unique ? taken : 0);
  if (!keys_fit || !counts_fit) return does_not_fit("a token's keys");
  ++counts_.hops;
  next_token_ = token.block + own().ranks.size();
  arrived_ = Arrived{token, std::string(all.substr(0, token.last_bytes)), std::move(*keys)};
  return {};
}

Status BatchedMerge::take(const Rest& rest, std::span<const std::byte> nothing) {
  const bool fits = nothing.empty() && !rest_ && !shape_.unique && rest.first <= own().records &&
                    rest.number == rest.first + other().records;
  if (!fits) return does_not_fit("the rest");
  const Placement placement(static_cast<std::uint32_t>(own().ranks.size()));
  const Row before = placement.rows(index_, rest.first / shape_.block_records);  // own blocks
  rest_ = Following{rest.first, rest.number, placement.record_at({index_, before})};
  return {};
}

Result<bool> BatchedMerge::go_on() {
  if (!has_room()) return false;
  if (arrived_ && is_full(arrived_->token.block) && numbered_.size() < kNumberedMax) {
    const Arrived arrived = std::move(*arrived_);
    arrived_.reset();
    PIF_TRY(merge(arrived));
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

// Some of the first ones: a token may be waiting.
Status BatchedMerge::ship_numbered() {
  Numbered& next = numbered_.front();
  PIF_TRY_VALUE(Block* const block, load(next.block));
  const std::size_t end = std::min(next.shipped + kShippedAtOnce, next.distances.size());
  for (std::size_t& i = next.shipped; i < end; ++i) {
    const std::uint32_t distance = next.distances[i];
    expect(*block, next.from + i + kAhead);
    distance == kDropped ? drop(*block) : ship(*block, next.from + i, next.number + distance);
  }
  if (end < next.distances.size()) return {};
  shipped(next.block);
  numbered_.pop_front();
  return {};
}

Status BatchedMerge::merge(const Arrived& arrived) {
  const Time begin = clock_.now();
  const Token& token = arrived.token;
  PIF_TRY_VALUE(const Block* const block, load(token.block));
  Hop hop(block->keys, arrived.keys, shape_.unique, arrived.last);
  hop.merge();
  PIF_TRY(shape_.unique ? pass_on_unique(arrived, *block, hop) : pass_on(arrived, *block, hop));
  counts_.acted += clock_.now() - begin;
  if (hop.z > 0) {
    net::Buffer distances(hop.other_at.size() * sizeof(std::uint32_t));
    pack_numbers(std::span(std::as_const(hop.other_at)), distances.data());
    const std::uint64_t first = token.other_block * shape_.block_records + token.other_from;
    PIF_TRY(words_.send(token.holder, Place{first, hop.z, token.number()}, std::move(distances)));
  }
  if (hop.x > 0) numbered_.push_back({token.block, 0, token.number(), std::move(hop.own_at), 0});
  return {};
}

Status BatchedMerge::pass_on(const Arrived& arrived, const Block& block, const Hop& hop) {
  const Token& token = arrived.token;
  const std::uint64_t taken = token.taken + hop.x + hop.z, m = shape_.block_records;
  if (hop.x == block.size()) {
    if (token.block + 1 == blocks(own()))
      return send_rest(other(), token.other_block * m + token.other_from + hop.z, taken);
    return send_token(reader(own(), token.block + 1),
                      {token.block + 1, token.holder, token.other_block, token.other_from + hop.z, taken, 0, 0}, {},
                      arrived.keys.pack(hop.z));
  }
  if (token.other_block + 1 == blocks(other())) return send_rest(own(), token.block * m + hop.x, taken);
  ++counts_.crossings;
  return send_token(reader(other(), token.other_block + 1),
                    {token.other_block + 1, own().ranks[index_], token.block, hop.x, taken, 0, 0}, {},
                    block.keys.pack(hop.x));
}

// The token comes to every block, so that each record is compared with the one before it.
Status BatchedMerge::pass_on_unique(const Arrived& arrived, const Block& block, Hop& hop) {
  const Token& token = arrived.token;
  const bool own_goes_on = token.block + 1 < blocks(own());
  const bool other_goes_on = token.other_block + 1 < blocks(other());
  while (!own_goes_on && hop.x == block.size() && hop.z < arrived.keys.size()) hop.take_other();
  while (!other_goes_on && hop.z == arrived.keys.size() && hop.x < block.size()) hop.take_own();
  const std::uint64_t taken = token.taken + hop.x + hop.z;
  const std::uint64_t dropped = token.dropped + hop.x + hop.z - hop.kept;
  if (hop.x == block.size() && own_goes_on) {
    const bool is_left = hop.z < arrived.keys.size();
    const Token next = {token.block + 1,
                        token.holder,
                        is_left ? token.other_block : blocks(other()),
                        is_left ? token.other_from + hop.z : 0,
                        taken,
                        dropped,
                        0};
    return send_token(reader(own(), next.block), next, hop.last(), arrived.keys.pack(hop.z));
  }
  if (hop.z == arrived.keys.size() && other_goes_on) {
    ++counts_.crossings;
    const bool is_left = hop.x < block.size();
    const Token next = {token.other_block + 1,
                        own().ranks[index_],
                        is_left ? token.block : blocks(own()),
                        is_left ? hop.x : 0,
                        taken,
                        dropped,
                        0};
    return send_token(reader(other(), next.block), next, hop.last(), block.keys.pack(hop.x));
  }
  result_ = taken - dropped;
  return {};
}

// They are of a block that is here, because its keys went out with a token. Numbers rise: each record has its own.
Status BatchedMerge::take(const Place& place, std::span<const std::byte> body) {
  const std::uint64_t block = place.first / shape_.block_records, at = place.first % shape_.block_records;
  const auto numbers = PackedNumbers<std::uint32_t>::all_of(body, place.count);
  const Block* const numbered = loaded(block);
  const bool fits = numbers && place.count > 0 && numbered != nullptr && at <= numbered->size() &&
                    place.count <= numbered->size() - at && place.number <= all_records();
  if (!fits) return does_not_fit("numbers of records");
  std::vector<std::uint32_t> distances(numbers->size());
  std::uint64_t next = 0;  // the lowest that may come
  for (std::size_t i = 0; i < distances.size(); ++i) {
    distances[i] = (*numbers)[i];
    if (distances[i] == kDropped && shape_.unique) continue;
    if (distances[i] < next) return does_not_fit("numbers that do not rise");
    next = std::uint64_t{distances[i]} + 1;
  }
  if (next > all_records() - place.number) return does_not_fit("a number beyond the last record");
  numbered_.push_back({block, at, place.number, std::move(distances), 0});
  return {};
}

// One block of it.
Status BatchedMerge::ship_rest() {
  const std::uint64_t block = rest_->next_block, first = block * shape_.block_records;
  PIF_TRY_VALUE(Block* const loaded, load(block));
  const std::uint64_t from = std::max(first, rest_->from);
  for (std::uint64_t record = from; record < first + loaded->size(); ++record) {
    expect(*loaded, record - first + kAhead);
    ship(*loaded, record - first, rest_->number + (record - rest_->from));
  }
  shipped(block);
  rest_->next_block += own().ranks.size();
  return {};
}

}  // namespace pif::sort
