// What the galley benchmarks' files hold: each word follows from its place and a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "galley/crew.h"
#include "galley/task.h"
#include "pif/base/limits.h"
#include "pif/client/client.h"

namespace pif::bench {

// Fills `out` with what a file of that seed has from byte `offset` on. Both are multiples of 8.
void fill_contents(std::span<std::byte> out, std::uint64_t offset, std::uint64_t seed);
// Whether `bytes` are what fill_contents() would write.
bool are_contents(std::span<const std::byte> bytes, std::uint64_t offset, std::uint64_t seed);

// Makes a committed file of that seed, in records of so many bytes; ends the program if it cannot.
void make_file(Client& client, const std::string& path, std::uint64_t bytes, std::uint64_t seed,
               std::uint32_t record_length = kByteRecordLength);
// Compares the file's first bytes, as many as `tasks` are about, with what a byte loop over the records that were
// written gives: where nobody wrote the contents of `old_seed`, without it zeros. Ends the program if they differ.
void check_written(File& file, const std::vector<Task>& tasks, const std::vector<Turn>& turns,
                   std::optional<std::uint64_t> old_seed);

}  // namespace pif::bench
