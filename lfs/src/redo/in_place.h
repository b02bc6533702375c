// The in-place data of overwrites: chunks of .dat with their sums, where entries of the redo log belong.
#pragma once

#include "pif/component/component.h"
#include "redo/redo_pieces.h"

namespace pif::lfs {

// Writes chunks from `first_chunk` on, as far as they are inside `tail`, and their sums; the sum of a partial last
// chunk goes into `tail`. bytes: starts with its chunk; ends with a chunk or with the data as it was when it was
// logged.
[[nodiscard]] Status write_in_place(const component::Shape& shape, component::Files& files, std::uint64_t first_chunk,
                                    std::span<const std::byte> bytes, component::Tail& tail);
// Changes bytes of chunks from `first_chunk` on that are there already. Their sums are those that the entry has: of
// bytes that it does not have they say whether they are still what they were. kIo: it can be done again.
[[nodiscard]] Status change_in_place(const component::Shape& shape, component::Files& files, std::uint64_t first_chunk,
                                     const Changes& changes, component::Tail& tail);
// Makes .dat and .sum durable. Any thread. The files are those that were written through: to one opened later, a
// failure that somebody has seen already is not reported.
[[nodiscard]] Status sync_data_and_sums(component::Files& files);

}  // namespace pif::lfs
