#include "runs/tails.h"

#include <fmt/format.h>

#include "pif/tool/message.h"
#include "sort.pb.h"

namespace pif::sort {

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
  if (static_cast<std::size_t>(from.tails_size()) != count)
    return tool::sent_nonsense(rank,
                               fmt::format("the ends of {} components, where there are {}", from.tails_size(), count));
  std::vector<component::Tail> tails;
  for (const auto& tail : from.tails()) tails.push_back({tail.rows(), tail.bytes(), tail.data_sum(), tail.index_sum()});
  return tails;
}

}  // namespace pif::sort
