// The numbers that name things, as types that do not mix: a record's place in the file and a row's place in a
// component are both 64-bit counts, and taking one for the other is the classic bug of an interleaved file. Values; any
// thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace pif {

template <typename Tag, typename T = std::uint64_t>
struct Id {
  T value{};

  // Ids are made from numbers by name only, so that no number becomes an id unnoticed; the default is 0, "none".
  constexpr Id() = default;
  constexpr explicit Id(T v) : value(v) {}
  constexpr auto operator<=>(const Id&) const = default;
};

using FileId = Id<struct FileIdTag>;                 // one incarnation of a file; never reused; 0: none
using NodeId = Id<struct NodeIdTag, std::uint32_t>;  // one LFS of the cluster; 0: none
using SessionId = Id<struct SessionIdTag>;           // one client of the PIF Server

// Plain numbers with a name for what they count.
using RecordNumber = std::uint64_t;  // record's place in the file, from 0
using Row = std::uint64_t;           // record's place in a component, from 0
using LfsIndex = std::uint32_t;      // LFS within a file, 0..width-1 (not a node id)

// Half-open range of records or rows.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  // One that ends before it begins is empty, too.
  constexpr std::uint64_t size() const { return end > begin ? end - begin : 0; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool operator==(const Range&) const = default;
};

}  // namespace pif

template <typename Tag, typename T>
struct std::hash<pif::Id<Tag, T>> {
  // For hash tables in memory; another standard library may compute another one, so it is never stored or sent.
  std::size_t operator()(const pif::Id<Tag, T>& id) const noexcept { return std::hash<T>{}(id.value); }
};
