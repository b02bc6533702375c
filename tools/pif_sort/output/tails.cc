#include "output/tails.h"

#include <fmt/format.h>

#include "pif/tool/message.h"
#include "sort.pb.h"

namespace pif::sort {
namespace {

tl::unexpected<Error> other_count(std::uint32_t rank, int said, std::size_t count) {
  return tool::sent_nonsense(rank, fmt::format("the ends of {} components, where there are {}", said, count));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::string pack_tails(std::span<const component::Tail> tails) {
  message::Tails out;
  for (const component::Tail& tail : tails) {
    message::Tails::Tail& one = *out.add_tails();
    one.set_rows(tail.rows);
    one.set_bytes(tail.bytes);
    one.set_data_sum(tail.data_sum);
    one.set_index_sum(tail.index_sum);
  }
  return out.SerializeAsString();
}

Result<std::vector<component::Tail>> unpack_tails(std::string_view bytes, std::uint32_t rank, std::size_t count) {
  PIF_TRY_VALUE(const auto from, tool::parse_message<message::Tails>(bytes, rank));
  if (static_cast<std::size_t>(from.tails_size()) != count) return other_count(rank, from.tails_size(), count);
  std::vector<component::Tail> tails;
  for (const auto& tail : from.tails()) tails.push_back({tail.rows(), tail.bytes(), tail.data_sum(), tail.index_sum()});
  return tails;
}

std::string pack_seams(std::span<const component::Seam> seams) {
  message::Seams out;
  for (const component::Seam& seam : seams) {
    message::Seams::Seam& one = *out.add_seams();
    one.set_rows(seam.rows);
    one.set_bytes(seam.bytes);
    one.set_data(text_of(seam.data));
    one.set_index(text_of(seam.index));
  }
  return out.SerializeAsString();
}

Result<std::vector<component::Seam>> unpack_seams(std::string_view bytes, std::uint32_t rank, std::size_t count) {
  PIF_TRY_VALUE(const auto from, tool::parse_message<message::Seams>(bytes, rank));
  if (static_cast<std::size_t>(from.seams_size()) != count) return other_count(rank, from.seams_size(), count);
  std::vector<component::Seam> seams;
  for (const auto& seam : from.seams())
    seams.push_back({seam.rows(), seam.bytes(), bytes_of(seam.data()), bytes_of(seam.index())});
  return seams;
}

}  // namespace pif::sort
