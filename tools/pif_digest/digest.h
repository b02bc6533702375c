// Digests of files' records: a hash of each record and its number, summed. So they do not depend on where records lie,
// and those of blocks of records say where two files differ. For damage, not for enemies.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "pif/base/ids.h"
#include "pif/base/result.h"
#include "pif/tool/controller.h"
#include "pif/tool/worker.h"

namespace pif::digest {

// Two sums of 64 bits.
struct Digest {
  std::uint64_t low = 0, high = 0;
  void add(const Digest& other) { low += other.low, high += other.high; }
  auto operator<=>(const Digest&) const = default;
};
std::string to_text(const Digest& digest);  // 32 hexadecimal digits

// By input, by block of so many records; 0: all of a file are one block. Called after open(), once.
[[nodiscard]] Result<std::vector<std::vector<Digest>>> digests_of(tool::Controller& controller, std::size_t inputs,
                                                                  std::uint64_t block_records);
// The worker of both tools.
[[nodiscard]] Status work(tool::Worker& worker);

}  // namespace pif::digest
