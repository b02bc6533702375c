#include "pif/matrix/weave.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "weave_plan.h"

namespace pif::matrix {
namespace {

constexpr unsigned kFieldBitsMax = 32;
constexpr std::size_t kPartsOnStack = 256;  // of more, rows take memory while they are woven

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

Weave::Weave(Element element, std::uint64_t elements, std::uint32_t parts, std::uint64_t period, const PartOf& part_of)
    : element_(element), elements_(elements), parts_(parts), plan_(std::make_unique<Plan>()) {
  plan_->part_bits.assign(parts, 0);
  // Eight patterns give every part whole bytes.
  const std::uint64_t pattern = std::lcm(period, element.per_word()) / element.per_word() * 8;
  const std::uint64_t words = std::min(words_of_row(), pattern);
  for (std::uint64_t word = 0; word < words; ++word) plan_word(word, part_of);
  for (const std::uint64_t bits : plan_->part_bits) plan_->part_bytes.push_back(bits / 8);
}

Weave::Weave(Weave&&) noexcept = default;
Weave::~Weave() = default;

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

void Weave::weave(std::span<const std::byte* const> parts, std::size_t pitch, std::uint64_t rows, Rows out) const {
  const WeavePlan plan = {plan_->fields.data(),
                          plan_->moves.data(),
                          plan_->field_ends.data(),
                          plan_->field_ends.size(),
                          plan_->part_bytes.data(),
                          parts_,
                          is_msb(),
                          plan_->is_even(parts_)};
  std::array<const std::byte*, kPartsOnStack> few;
  std::vector<const std::byte*> many(parts_ > few.size() ? parts_ : 0);
  const std::byte** const at = many.empty() ? few.data() : many.data();
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint32_t part = 0; part < parts_; ++part) at[part] = parts[part] + row * pitch;
    std::byte* const to = out.base + row * out.pitch;
    if (parts_ == 1) {
      std::memcpy(to, at[0], element_.bytes_of(elements_));
    } else {
      weave_row(plan, at, words_of_row(), to);
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
