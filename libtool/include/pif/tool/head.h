// Heads of messages between a tool's processes. A head is a struct that lists its members, or one of several such, or a
// message of protobuf:
//
//   struct Rows {
//     std::uint64_t first = 0, count = 0;
//     bool is_last = false;
//     static auto members(auto& self) { return std::tie(self.first, self.count, self.is_last); }
//   };
//   using Word = std::variant<Rows, Written>;
//
// Members are numbers, bools, strings, structs that list their members, and vectors of these. They travel one behind
// another, numbers little-endian as long as they are, bools as one byte, strings behind their length (32 bits), vectors
// behind how many there are (32 bits); one of several behind its place among them (8 bits). Jobs' values and results
// are such structs, too (Worker::value_as, results_as). Pure; any thread.
#pragma once

#include <climits>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "pif/base/packed.h"

namespace pif::tool {

template <typename T>
concept Listed = requires(T head, const T fixed) {
  T::members(head);
  T::members(fixed);
};

template <typename T>
struct IsOneOf : std::false_type {};
template <typename... Heads>
struct IsOneOf<std::variant<Heads...>> : std::bool_constant<(Listed<Heads> && ...)> {};

template <typename T>
concept Protobuf = requires(T head, const T fixed, const char* bytes, int size) {
  { fixed.SerializeAsString() } -> std::same_as<std::string>;
  { head.ParseFromArray(bytes, size) } -> std::same_as<bool>;
};

template <typename T>
concept Head = std::default_initializable<T> &&(Listed<T> || IsOneOf<T>::value || Protobuf<T>);

// ---- how members travel ---------------------------------------------------------------------------------------------

// Adds a member to what is packed.
inline void pack_member(std::string& out, bool member) { out.push_back(member ? 1 : 0); }
// Less than 4 GiB of it.
inline void pack_member(std::string& out, const std::string& member) {
  const auto size = static_cast<std::uint32_t>(member.size());
  out += packed(std::span(&size, 1));
  out += member;
}
// A number of any length.
template <PackedNumber T>
void pack_member(std::string& out, T member) {
  out += packed(std::span<const T>(&member, 1));
}
// A struct that lists its members: one behind another.
template <Listed T>
void pack_member(std::string& out, const T& member);
// Fewer than 2^32 of them.
template <typename T>
void pack_member(std::string& out, const std::vector<T>& members) {
  pack_member(out, static_cast<std::uint32_t>(members.size()));
  if constexpr (PackedNumber<T>) {
    out += packed(std::span<const T>(members));
  } else {
    for (const T& member : members) pack_member(out, member);
  }
}
// As declared above.
template <Listed T>
void pack_member(std::string& out, const T& member) {
  std::apply([&](const auto&... each) { (pack_member(out, each), ...); }, T::members(member));
}

// False: it is not there.
template <PackedNumber T>
bool take_member(std::span<const std::byte>& rest, T& member) {
  const auto number = PackedNumbers<T>::take(rest, 1);
  if (number) member = (*number)[0];
  return number.has_value();
}
inline bool take_member(std::span<const std::byte>& rest, bool& member) {
  std::uint8_t number = 0;
  if (!take_member(rest, number) || number > 1) return false;
  member = number == 1;
  return true;
}
inline bool take_member(std::span<const std::byte>& rest, std::string& member) {
  std::uint32_t size = 0;
  if (!take_member(rest, size) || rest.size() < size) return false;
  member.assign(reinterpret_cast<const char*>(rest.data()), size);
  rest = rest.subspan(size);
  return true;
}

// False: they are not there, or too few.
template <Listed T>
bool take_member(std::span<const std::byte>& rest, T& member);
template <typename T>
bool take_member(std::span<const std::byte>& rest, std::vector<T>& members) {
  std::uint32_t count = 0;
  if (!take_member(rest, count) || count > rest.size()) return false;  // each is a byte at least
  if constexpr (PackedNumber<T>) {
    const auto numbers = PackedNumbers<T>::take(rest, count);
    if (!numbers) return false;
    members.resize(count);
    for (std::size_t i = 0; i < count; ++i) members[i] = (*numbers)[i];
    return true;
  } else {
    members.clear();
    for (; count > 0; --count)
      if (!take_member(rest, members.emplace_back())) return false;
    return true;
  }
}
// As declared above.
template <Listed T>
bool take_member(std::span<const std::byte>& rest, T& member) {
  return std::apply([&](auto&... each) { return (take_member(rest, each) && ...); }, T::members(member));
}

// ---- heads ----------------------------------------------------------------------------------------------------------

// The head's bytes, as unpack_head() takes them.
template <Listed T>
std::string pack_head(const T& head) {
  std::string out;
  pack_member(out, head);
  return out;
}
// One of several.
template <typename... Heads>
std::string pack_head(const std::variant<Heads...>& head) {
  std::string out(1, static_cast<char>(head.index()));
  return out + std::visit([](const auto& one) { return pack_head(one); }, head);
}
// A message of protobuf.
template <Protobuf T>
std::string pack_head(const T& head) {
  return head.SerializeAsString();
}

// Nothing if the bytes are no such head, and nothing else. The caller still has to check its content.
template <Listed T>
std::optional<T> unpack_head(std::string_view bytes, std::type_identity<T>) {
  std::optional<T> head(std::in_place);
  std::span<const std::byte> rest = std::as_bytes(std::span(bytes));
  if (!take_member(rest, *head) || !rest.empty()) head.reset();
  return head;
}
template <typename... Heads>
std::optional<std::variant<Heads...>> unpack_head(std::string_view bytes, std::type_identity<std::variant<Heads...>>) {
  std::optional<std::variant<Heads...>> head;
  if (bytes.empty()) return head;
  const auto place = static_cast<unsigned char>(bytes[0]);
  const auto take = [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto one = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
      using Kind = std::variant_alternative_t<i, std::variant<Heads...>>;
      if (place != i) return;
      if (auto taken = unpack_head(bytes.substr(1), std::type_identity<Kind>())) head.emplace(std::move(*taken));
    };
    (one(std::integral_constant<std::size_t, I>()), ...);
  };
  take(std::index_sequence_for<Heads...>());
  return head;
}
template <Protobuf T>
std::optional<T> unpack_head(std::string_view bytes, std::type_identity<T>) {
  std::optional<T> head(std::in_place);
  if (bytes.size() > INT_MAX || !head->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) head.reset();
  return head;
}
template <Head T>
std::optional<T> unpack_head(std::string_view bytes) {
  return unpack_head(bytes, std::type_identity<T>());
}

}  // namespace pif::tool
