#include "pif/tool/message.h"

#include <fmt/format.h>

namespace pif::tool {

std::string worker_name(std::uint32_t rank) { return fmt::format("worker {}", rank); }

tl::unexpected<Error> sent_nonsense(std::string_view sender, std::string_view what) {
  return fail(Code::kCorrupt, fmt::format("{} sent nonsense: {}", sender, what));
}

tl::unexpected<Error> sent_nonsense(std::uint32_t rank, std::string_view what) {
  return sent_nonsense(worker_name(rank), what);
}

tl::unexpected<Error> sent_wrong(std::uint32_t rank, const Error& error) {
  return error.code == Code::kInvalid ? sent_nonsense(rank, error.text) : fail(error);
}

}  // namespace pif::tool
