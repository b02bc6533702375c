// How long things are: counted by powers of two, so that many workers can say it in few bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sort.pb.h"

namespace pif::sort {

class Lengths {
 public:
  // Some of this length each. Longer than 2^40 bytes nothing is.
  void add(std::uint64_t bytes, std::uint64_t count = 1);
  void add(const Lengths& others);
  // How many have no more than `bytes` together, `overhead` more for each, whichever they are.
  std::uint64_t fit(std::uint64_t bytes, std::uint64_t overhead) const;
  std::uint64_t longest() const;

  void pack(message::RunSizes& out) const;
  // Nothing if there are more classes than lengths have, or one has a length that is not its own.
  static std::optional<Lengths> unpack(const message::RunSizes& from);

 private:
  struct Class {
    std::uint64_t count = 0, bytes = 0, longest = 0;
  };
  std::array<Class, 41> classes_;  // by the number of bits of the length
};

}  // namespace pif::sort
