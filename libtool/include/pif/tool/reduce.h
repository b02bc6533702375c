// Numbers of all workers, put together place by place: every worker has an array of as many numbers, and f puts two
// numbers together. In the order of ranks, so that sums of doubles have the same bytes at every run. Each worker puts
// one part of the array together for all: a number travels twice, whatever the number of workers. Memory of a worker:
// the array three times.
//
//   PIF_TRY_VALUE(const auto ranks, all_reduce<double>(team, worker, ranks_here, std::plus<>()));
//
// Called by all workers; steps of the team. Errors: those of its steps; kCorrupt names a worker that gave another
// number of numbers than this one. Not thread-safe.
#pragma once

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pif/base/assert.h"
#include "pif/base/packed.h"
#include "pif/tool/team.h"

namespace pif::tool {

// Arrays of any type: what the functions below, which say more, are made of.
class Reduction {
 public:
  // Puts the numbers at `from` to those at `to`: so many bytes of each, whole numbers; any alignment.
  using Combine = std::function<void(std::byte* to, const std::byte* from, std::size_t bytes)>;
  // unit: bytes of a number. The team and worker outlive it.
  Reduction(Team& team, const Worker& worker, std::size_t unit, Combine combine)
      : team_(team), worker_(worker), unit_(unit), combine_(std::move(combine)) {}

  // This worker's part of the whole, in bytes; `parts` of an array that long belong to workers by rank.
  Result<std::string> scatter(std::string_view own);
  Result<std::string> all(std::string_view own);
  // Nothing at other workers than `to`.
  Result<std::string> to_one(std::string_view own, std::uint32_t to);
  // The combined values of all workers before this one; `before` stands for those before the first one.
  Result<std::string> before(std::string_view own, std::string before);

 private:
  Team& team_;
  const Worker& worker_;
  std::size_t unit_;
  Combine combine_;
};

// The numbers that the worker of that rank has of an array of so many, in what reduce_scatter() gives.
Range part_of_array(std::uint64_t numbers, std::uint32_t rank, std::uint32_t workers);

// How f on two numbers is f on arrays of them.
template <PackedNumber T, typename F>
Reduction::Combine combine_numbers(F f) {
  return [f](std::byte* to, const std::byte* from, std::size_t bytes) {
    PIF_ASSERT(bytes % sizeof(T) == 0, bytes);
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
      T a, b;
      std::memcpy(&a, to + at, sizeof a);
      std::memcpy(&b, from + at, sizeof b);
      a = f(a, b);
      std::memcpy(to + at, &a, sizeof a);
    }
  };
}

// The array's memory; valid as long as that.
template <PackedNumber T>
std::string_view bytes_of(std::span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}
// For whole numbers.
template <PackedNumber T>
std::vector<T> numbers_of(std::string_view bytes) {
  PIF_ASSERT(bytes.size() % sizeof(T) == 0, bytes.size());
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

// Everybody gets all of it.
template <PackedNumber T, typename F>
Result<std::vector<T>> all_reduce(Team& team, const Worker& worker, std::span<const T> own, F f) {
  PIF_TRY_VALUE(const auto bytes, Reduction(team, worker, sizeof(T), combine_numbers<T>(f)).all(bytes_of(own)));
  return numbers_of<T>(bytes);
}
// Each gets its part_of_array().
template <PackedNumber T, typename F>
Result<std::vector<T>> reduce_scatter(Team& team, const Worker& worker, std::span<const T> own, F f) {
  PIF_TRY_VALUE(const auto bytes, Reduction(team, worker, sizeof(T), combine_numbers<T>(f)).scatter(bytes_of(own)));
  return numbers_of<T>(bytes);
}
// The worker of rank `to` gets all of it; the others get nothing. kInvalid: there is none.
template <PackedNumber T, typename F>
Result<std::vector<T>> reduce(Team& team, const Worker& worker, std::span<const T> own, F f, std::uint32_t to = 0) {
  PIF_TRY_VALUE(const auto bytes, Reduction(team, worker, sizeof(T), combine_numbers<T>(f)).to_one(bytes_of(own), to));
  return numbers_of<T>(bytes);
}
// Prefix sums: what the workers before this one gave, put together; the first one gets `zero` at each place.
template <PackedNumber T, typename F>
Result<std::vector<T>> reduce_before(Team& team, const Worker& worker, std::span<const T> own, F f, T zero = {}) {
  const std::vector<T> first(own.size(), zero);
  Reduction reduction(team, worker, sizeof(T), combine_numbers<T>(f));
  PIF_TRY_VALUE(const auto bytes, reduction.before(bytes_of(own), std::string(bytes_of(std::span<const T>(first)))));
  return numbers_of<T>(bytes);
}

}  // namespace pif::tool
