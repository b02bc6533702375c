#include "messages/values.h"

#include <algorithm>
#include <climits>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/packed.h"

namespace pif::tool {
namespace {

constexpr std::size_t kPartBytes = std::size_t{1} << 20;  // of a value, in one message

}  // namespace

ValueStep::ValueStep(Team& team, Duration patience, std::vector<std::uint32_t> senders)
    : senders_(std::move(senders)),
      talk_(team, patience),
      parts_(talk_, 0, {}, [this](const Channel<Part>::Item& item) { return take(item); }) {}

Status ValueStep::send(std::uint32_t to, std::string_view value) {
  const auto bytes = std::as_bytes(std::span(value));
  std::size_t at = 0;
  do {
    const auto part = bytes.subspan(at, std::min(kPartBytes, bytes.size() - at));
    PIF_TRY(parts_.send(to, {value.size()}, net::Buffer::copy_of(part)));
    at += part.size();
  } while (at < bytes.size());
  return {};
}

Status ValueStep::take(const Channel<Part>::Item& item) {
  if (std::find(senders_.begin(), senders_.end(), item.from) == senders_.end())
    return fail(Code::kInvalid, "a value that nobody asked for");
  Value& value = values_[item.from];
  if (value.is_whole()) return fail(Code::kInvalid, "two values for one step");
  if (item.head.size > INT_MAX || value.size.value_or(item.head.size) != item.head.size)
    return fail(Code::kInvalid, fmt::format("a value of {} bytes", item.head.size));
  value.size = item.head.size;
  if (value.bytes.size() > *value.size || item.body.size() > *value.size - value.bytes.size())
    return fail(Code::kInvalid, fmt::format("more than the {} bytes that its value has", *value.size));
  value.bytes.append(reinterpret_cast<const char*>(item.body.data()), item.body.size());
  return {};
}

Result<std::string> ValueStep::receive(std::uint32_t from) {
  // Nobody else's value is taken: it would be waited for in vain.
  PIF_ASSERT(std::find(senders_.begin(), senders_.end(), from) != senders_.end(), from, senders_.size());
  PIF_TRY(talk_.until([&] { return values_[from].is_whole(); }));
  return std::move(values_[from].bytes);
}

Status ValueStep::finish() { return talk_.flush(); }

void append_value(std::string& list, std::uint32_t rank, std::string_view value) {
  const std::uint64_t numbers[] = {rank, value.size()};
  list += packed(std::span<const std::uint64_t>(numbers));
  list += value;
}

Result<std::vector<std::string>> unpack_values(std::string_view list, const Tree& tree, std::uint32_t width) {
  std::vector<std::string> values(width);
  std::vector<bool> is_there(width);
  std::span<const std::byte> rest = std::as_bytes(std::span(list));
  while (!rest.empty()) {
    const auto numbers = PackedNumbers<std::uint64_t>::take(rest, 2);
    if (!numbers || (*numbers)[1] > rest.size()) return fail(Code::kInvalid, "values that are cut off");
    const std::uint64_t rank = (*numbers)[0];
    if (rank >= width || !tree.has(static_cast<std::uint32_t>(rank)) || is_there[rank])
      return fail(Code::kInvalid, fmt::format("a value of worker {}, which does not belong there", rank));
    is_there[rank] = true;
    values[rank].assign(reinterpret_cast<const char*>(rest.data()), (*numbers)[1]);
    rest = rest.subspan((*numbers)[1]);
  }
  const auto count = static_cast<std::uint32_t>(std::count(is_there.begin(), is_there.end(), true));
  if (count == tree.size()) return values;
  return fail(Code::kInvalid, fmt::format("{} values of {} workers", count, tree.size()));
}

}  // namespace pif::tool
