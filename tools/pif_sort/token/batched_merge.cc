#include "token/batched_merge.h"

#include "pif/base/packed.h"

namespace pif::sort {
namespace {

constexpr std::size_t kNumberedMax = 8;  // row blocks of records that wait to be shipped while tokens are taken

}  // namespace

BatchedMerge::BatchedMerge(tool::Talk& talk, std::uint32_t channel, Clock& clock, MergeShape shape, unsigned side,
                           std::uint32_t index, Part& part, Outlet& outlet)
    : Merge(clock, std::move(shape), side, index, part, outlet),
      words_(talk, channel, {}, [this](const tool::Channel<Word>::Item& item) {
        return std::visit([&](const auto& word) { return take(word, item.body.span()); }, item.head);
      }) {}

Status BatchedMerge::start() {
  if (own().records == 0) return send_rest(other(), 0, 0);
  if (other().records == 0) return send_rest(own(), 0, 0);
  PIF_TRY_VALUE(const Block* const block, load(0));
  return send_token(reader(other(), 0), {0, own().ranks[0], 0, 0, 0}, block->keys.pack(0));
}

Status BatchedMerge::send_token(std::uint32_t rank, const Token& token, net::Buffer keys) {
  PIF_TRY(fits_a_message(keys));
  return words_.send(rank, token, std::move(keys));
}

Status BatchedMerge::send_rest(const SideShape& side, std::uint64_t first, std::uint64_t number) {
  for (const std::uint32_t rank : side.ranks) PIF_TRY(words_.send(rank, Rest{first, number}));
  return {};
}

// Every block gets the token once, in their order.
Status BatchedMerge::take(const Token& token, std::span<const std::byte> body) {
  const bool blocks_fit =
      is_own(token.block) && can_load(token.block) && token.other_block < blocks(other()) && !arrived_ && !rest_;
  if (!blocks_fit || token.holder != reader(other(), token.other_block)) return does_not_fit("a token");
  auto keys = KeyList::unpack(body);
  const std::uint64_t other_size = block_size(other(), token.other_block);
  const bool keys_fit = keys && token.other_from < other_size && keys->size() == other_size - token.other_from;
  const std::uint64_t before = (token.block + token.other_block) * shape_.block_records + token.other_from;
  if (!keys_fit || token.number != before) return does_not_fit("a token's keys");
  ++counts_.hops;
  arrived_ = Arrived{token, std::move(*keys)};
  return {};
}

Status BatchedMerge::take(const Rest& rest, std::span<const std::byte> nothing) {
  const bool fits =
      nothing.empty() && !rest_ && rest.first <= own().records && rest.number == rest.first + other().records;
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

Status BatchedMerge::ship_numbered() {
  const Numbered next = std::move(numbered_.front());
  numbered_.pop_front();
  PIF_TRY_VALUE(Block* const block, load(next.block));
  for (std::size_t i = 0; i < next.distances.size(); ++i) ship(*block, next.from + i, next.number + next.distances[i]);
  shipped(next.block);
  return {};
}

Status BatchedMerge::merge(const Arrived& arrived) {
  const Time begin = clock_.now();
  const Token& token = arrived.token;
  PIF_TRY_VALUE(const Block* const block, load(token.block));
  const KeyList& mine = block->keys;
  const KeyList& theirs = arrived.keys;
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
  PIF_TRY(pass_on(arrived, *block, x, z));
  counts_.acted += clock_.now() - begin;
  if (z > 0) {
    net::Buffer distances(other_at.size() * sizeof(std::uint32_t));
    pack_numbers(std::span(std::as_const(other_at)), distances.data());
    const std::uint64_t first = token.other_block * shape_.block_records + token.other_from;
    PIF_TRY(words_.send(token.holder, Place{first, z, token.number}, std::move(distances)));
  }
  if (x > 0) numbered_.push_back({token.block, 0, token.number, std::move(own_at)});
  return {};
}

Status BatchedMerge::pass_on(const Arrived& arrived, const Block& block, std::size_t x, std::size_t z) {
  const Token& token = arrived.token;
  const std::uint64_t number = token.number + x + z, m = shape_.block_records;
  if (x == block.size()) {
    if (token.block + 1 == blocks(own()))
      return send_rest(other(), token.other_block * m + token.other_from + z, number);
    return send_token(reader(own(), token.block + 1),
                      {token.block + 1, token.holder, token.other_block, token.other_from + z, number},
                      arrived.keys.pack(z));
  }
  if (token.other_block + 1 == blocks(other())) return send_rest(own(), token.block * m + x, number);
  ++counts_.crossings;
  return send_token(reader(other(), token.other_block + 1),
                    {token.other_block + 1, own().ranks[index_], token.block, x, number}, block.keys.pack(x));
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
  for (std::size_t i = 0; i < distances.size(); ++i) {
    distances[i] = (*numbers)[i];
    if (i > 0 && distances[i] <= distances[i - 1]) return does_not_fit("numbers that do not rise");
  }
  if (distances.back() >= all_records() - place.number) return does_not_fit("a number beyond the last record");
  numbered_.push_back({block, at, place.number, std::move(distances)});
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

}  // namespace pif::sort
