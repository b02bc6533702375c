#include "pif/tool/reduce.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/tool/message.h"

namespace pif::tool {
namespace {

// Of another worker: as long as it is here.
Status check_size(std::uint32_t rank, std::string_view value, std::size_t size) {
  if (value.size() == size) return {};
  return sent_nonsense(rank, fmt::format("{} bytes of numbers, where {} are here", value.size(), size));
}

std::string joined(const std::vector<std::string>& parts) {
  std::string whole;
  for (const std::string& part : parts) whole += part;
  return whole;
}

}  // namespace

Range part_of_array(std::uint64_t numbers, std::uint32_t rank, std::uint32_t workers) {
  PIF_ASSERT(rank < workers, rank, workers);
  const std::uint64_t each = numbers / workers, more = numbers - each * workers;
  const auto begin = [&](std::uint64_t part) { return each * part + std::min(part, more); };
  return {begin(rank), begin(rank + std::uint64_t{1})};
}

Result<std::string> Reduction::scatter(std::string_view own) {
  PIF_ASSERT(own.size() % unit_ == 0, own.size(), unit_);
  std::vector<std::string_view> parts;
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank) {
    const Range numbers = part_of_array(own.size() / unit_, rank, worker_.width());
    parts.push_back(own.substr(numbers.begin * unit_, numbers.size() * unit_));
  }
  PIF_TRY_VALUE(auto come, team_.all_to_all(parts));
  for (std::uint32_t from = 0; from < come.size(); ++from) {
    PIF_TRY(check_size(from, come[from], parts[worker_.rank()].size()));
    if (from == 0) continue;
    combine_(reinterpret_cast<std::byte*>(come[0].data()), reinterpret_cast<const std::byte*>(come[from].data()),
             come[0].size());
  }
  return std::move(come[0]);
}

Result<std::string> Reduction::all(std::string_view own) {
  PIF_TRY_VALUE(std::string part, scatter(own));
  PIF_TRY_VALUE(const auto parts, team_.all_gather(std::move(part)));
  return joined(parts);
}

Result<std::string> Reduction::to_one(std::string_view own, std::uint32_t to) {
  PIF_TRY_VALUE(std::string part, scatter(own));
  PIF_TRY_VALUE(const auto parts, team_.gather(std::move(part), to));
  return joined(parts);
}

Result<std::string> Reduction::before(std::string_view own, std::string before) {
  const auto add_own = [&](std::string& state) -> Status {
    if (worker_.rank() == 0) state = before;
    PIF_TRY(check_size(worker_.rank() - 1, state, own.size()));
    before = state;
    combine_(reinterpret_cast<std::byte*>(state.data()), reinterpret_cast<const std::byte*>(own.data()), own.size());
    return {};
  };
  PIF_TRY(team_.in_turn(add_own));
  return before;
}

}  // namespace pif::tool
