#include "pif/matrix/weave.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "weave_plan.h"

namespace pif::matrix {
namespace {

constexpr unsigned kFieldBitsMax = 32;
constexpr std::size_t kChunkBytes =
    16u << 10;  // of a row that is woven in steps: what is between them stays in the cache

// Words that a step takes, in time of a field of an even pattern: of any pattern, a field takes longer.
constexpr std::uint64_t kAnyField = 4, kStep = 3;
std::uint64_t one_step(std::uint64_t parts, std::uint64_t per_word) {
  const bool is_even = (parts == 2 || parts == 4 || parts == 8) && parts <= per_word;
  return is_even ? parts : kAnyField * std::min(parts, per_word);
}

struct Steps {
  std::uint64_t cost = 0;
  std::uint32_t streams = 1;  // 1: one step
};

Steps best_steps(std::uint32_t parts, std::uint64_t per_word) {
  Steps best{one_step(parts, per_word), 1};
  for (std::uint32_t streams = 2; streams <= 8 && streams < parts; ++streams) {
    if (parts % streams != 0) continue;
    const std::uint64_t cost = one_step(streams, per_word) + best_steps(parts / streams, per_word).cost + kStep;
    if (cost < best.cost) best = {cost, streams};
  }
  return best;
}

// Whether each part has one element of every `parts`.
bool is_dealt_round(std::uint32_t parts, std::uint64_t period, std::uint64_t elements, const Weave::PartOf& part_of) {
  if (period != parts || elements < parts) return false;
  std::vector<bool> found(parts);
  for (std::uint32_t i = 0; i < parts; ++i) {
    const std::uint32_t part = part_of(i);
    if (found[part]) return false;
    found[part] = true;
  }
  return true;
}

// Hacker's Delight, 7-5 ("expand"): how the lowest bits of a word come to `places`.
Moves moves_to(std::uint64_t places) {
  Moves moves;
  std::uint64_t rest = places, zeros = ~places << 1;
  for (unsigned i = 0; i < 6; ++i) {
    std::uint64_t odd = zeros;  // below which there is an odd number of them
    for (unsigned shift = 1; shift < 64; shift *= 2) odd ^= odd << shift;
    const std::uint64_t move = odd & rest;
    moves.by[5 - i] = move;
    rest = (rest ^ move) | (move >> (1U << i));
    zeros &= ~odd;
  }
  return moves;
}

std::uint64_t lowest_bits(std::uint64_t of, unsigned count) {
  std::uint64_t rest = of;
  for (; count > 0; --count) rest &= rest - 1;
  return of & ~rest;
}

}  // namespace

struct Weave::Plan {
  std::vector<Field> fields;
  std::vector<Moves> moves;
  std::vector<std::uint32_t> field_ends;
  std::vector<std::uint64_t> part_bits;  // taken of each part by the words so far
  std::vector<std::uint64_t> part_bytes;
  bool even = false;

  void add(std::uint32_t part, std::uint64_t places, std::uint64_t first_bit);
  bool is_even(std::uint32_t parts) const;
};

bool Weave::Plan::is_even(std::uint32_t parts) const {
  if ((parts != 2 && parts != 4 && parts != 8) || fields.size() != parts * field_ends.size()) return false;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& first = fields[i % parts];
    const bool follows =
        fields[i].offset == i / parts * (8 / parts) && fields[i].within == 0 && fields[i].bits == 64 / parts;
    if (!follows || fields[i].part != first.part || fields[i].places != first.places) return false;
  }
  return true;
}

void Weave::Plan::add(std::uint32_t part, std::uint64_t places, std::uint64_t first_bit) {
  const auto bits = static_cast<std::uint16_t>(std::popcount(places));
  fields.push_back({part, static_cast<std::uint16_t>(first_bit % 8), bits, first_bit / 8, places});
  moves.push_back(moves_to(places));
}

// Element j of the row is the next one of stream j mod `streams`, and has its part there.
struct Weave::Split {
  struct Stream {
    Weave weave;
    std::vector<std::uint32_t> parts;  // of the row's, by number in the stream
  };
  std::vector<Stream> streams;
  std::unique_ptr<Weave> row;     // of the streams
  std::uint64_t chunk_words = 0;  // every part gives whole bytes to as many, and its pattern begins again
};

// For one thread.
struct Weave::Room {
  std::vector<const std::byte*> at;  // where parts, or streams, are
  std::vector<std::byte> streams;
  std::size_t stream_bytes = 0;  // of each
  std::unique_ptr<Room> inner, row;
};

Weave::Weave(Element element, std::uint64_t elements, std::uint32_t parts, std::uint64_t period, const PartOf& part_of)
    : element_(element), elements_(elements), parts_(parts), period_(period) {
  const std::uint32_t streams = best_steps(parts, element.per_word()).streams;
  if (streams > 1 && is_dealt_round(parts, period, elements, part_of)) {
    split(streams, part_of);
    return;
  }
  plan_ = std::make_unique<Plan>();
  plan_->part_bits.assign(parts, 0);
  const std::uint64_t words = std::min(words_of_row(), unit_words());
  for (std::uint64_t word = 0; word < words; ++word) plan_word(word, part_of);
  for (const std::uint64_t bits : plan_->part_bits) plan_->part_bytes.push_back(bits / 8);
  plan_->even = plan_->is_even(parts);
}

Weave::Weave(Weave&&) noexcept = default;
Weave::~Weave() = default;

void Weave::split(std::uint32_t streams, const PartOf& part_of) {
  split_ = std::make_unique<Split>();
  const std::uint32_t of_stream = parts_ / streams;
  const auto dealt = [](std::uint32_t parts) {
    return [parts](std::uint64_t i) { return static_cast<std::uint32_t>(i % parts); };
  };
  for (std::uint32_t stream = 0; stream < streams; ++stream) {
    const std::uint64_t elements = (elements_ - stream + streams - 1) / streams;
    Split::Stream made{Weave(element_, elements, of_stream, of_stream, dealt(of_stream)), {}};
    for (std::uint32_t i = 0; i < of_stream; ++i) made.parts.push_back(part_of(stream + std::uint64_t{i} * streams));
    split_->streams.push_back(std::move(made));
  }
  const std::uint64_t unit = unit_words();
  split_->chunk_words = unit * std::max<std::uint64_t>(kChunkBytes / sizeof(std::uint64_t) / unit, 1);
  split_->row =
      std::make_unique<Weave>(element_, split_->chunk_words * element_.per_word(), streams, streams, dealt(streams));
}

// A pattern of words to which every part gives whole bytes: eight give every part whole bytes.
std::uint64_t Weave::unit_words() const {
  if (split_) return split_->streams.size() * split_->streams.front().weave.unit_words();
  return std::lcm(period_, element_.per_word()) / element_.per_word() * 8;
}

// The last word of a pattern may be the row's, and then have fewer elements.
void Weave::plan_word(std::uint64_t word, const PartOf& part_of) {
  const std::uint64_t ones = ~std::uint64_t{0} >> (64 - element_.bits);
  const std::uint64_t first = word * element_.per_word(),
                      count = std::min<std::uint64_t>(element_.per_word(), elements_ - first);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> places;  // of each part that gives anything
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t part = part_of(first + i);
    auto found = std::find_if(places.begin(), places.end(), [&](const auto& one) { return one.first == part; });
    if (found == places.end()) found = places.insert(places.end(), {part, 0});
    found->second |= ones << (is_msb() ? element_.per_word() - 1 - i : i) * element_.bits;
  }
  for (const auto& [part, all] : places) plan_fields(part, all);
  plan_->field_ends.push_back(static_cast<std::uint32_t>(plan_->fields.size()));
}

// With the most significant bit first the earlier elements have the higher places.
void Weave::plan_fields(std::uint32_t part, std::uint64_t places) {
  std::uint64_t& taken = plan_->part_bits[part];
  const auto bits = static_cast<unsigned>(std::popcount(places));
  const std::uint64_t low = lowest_bits(places, std::min(bits, kFieldBitsMax)), high = places & ~low;
  const auto low_bits = static_cast<unsigned>(std::popcount(low));
  plan_->add(part, low, is_msb() ? taken + bits - low_bits : taken);
  if (high != 0) plan_->add(part, high, is_msb() ? taken : taken + low_bits);
  taken += bits;
}

void Weave::make_room(Room& room) const {
  if (!split_) return;
  const std::size_t streams = split_->streams.size();
  room.at.resize(std::max<std::size_t>(parts_ / streams, streams));
  room.stream_bytes = (split_->chunk_words / streams + 1) * sizeof(std::uint64_t);  // a word more may be read
  room.streams.resize(streams * room.stream_bytes);
  room.inner = std::make_unique<Room>();
  room.row = std::make_unique<Room>();
  split_->streams.front().weave.make_room(*room.inner);
}

// at: where each part begins; may be changed.
void Weave::weave_words(const std::byte** at, std::uint64_t words, std::byte* out, Room& room) const {
  if (!split_) {
    const WeavePlan plan = {plan_->fields.data(),
                            plan_->moves.data(),
                            plan_->field_ends.data(),
                            plan_->field_ends.size(),
                            plan_->part_bytes.data(),
                            parts_,
                            is_msb(),
                            plan_->even};
    return weave_row(plan, at, words, out);
  }
  const std::uint64_t streams = split_->streams.size();
  for (std::uint64_t done = 0, some = 0; done < words; done += some) {
    some = std::min(words - done, split_->chunk_words);
    const std::size_t of_part = done * sizeof(std::uint64_t) / parts_;
    std::byte* to = room.streams.data();
    for (const Split::Stream& stream : split_->streams) {
      for (std::size_t i = 0; i < stream.parts.size(); ++i) room.at[i] = at[stream.parts[i]] + of_part;
      const std::uint64_t left = stream.weave.words_of_row() - done / streams;  // a part is not read behind its end
      stream.weave.weave_words(room.at.data(), std::min((some + streams - 1) / streams, left), to, *room.inner);
      to += room.stream_bytes;
    }
    for (std::uint64_t i = 0; i < streams; ++i) room.at[i] = room.streams.data() + i * room.stream_bytes;
    split_->row->weave_words(room.at.data(), some, out + done * sizeof(std::uint64_t), *room.row);
  }
}

void Weave::weave(std::span<const std::byte* const> parts, std::size_t pitch, std::uint64_t rows, Rows out) const {
  Room room;
  make_room(room);
  std::vector<const std::byte*> at(parts_);
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint32_t part = 0; part < parts_; ++part) at[part] = parts[part] + row * pitch;
    std::byte* const to = out.base + row * out.pitch;
    if (parts_ == 1) {
      std::memcpy(to, at[0], element_.bytes_of(elements_));
    } else {
      weave_words(at.data(), words_of_row(), to, room);
    }
    clear_padding(to);
  }
}

// A pattern that goes on behind the row's end has brought what lies behind the ends of its parts.
void Weave::clear_padding(std::byte* row) const {
  const std::uint64_t bytes = element_.bytes_of(elements_), used = elements_ * element_.bits % 8;
  std::memset(row + bytes, 0, words_of_row() * sizeof(std::uint64_t) - bytes);
  if (used == 0) return;
  row[bytes - 1] &= static_cast<std::byte>(is_msb() ? 0xFF00 >> used : 0xFF >> (8 - used));
}

}  // namespace pif::matrix
