#include "file/piece_source.h"

#include <fmt/format.h>

namespace pif::client {

Result<patterns::Zip> Walks::zip(const File::Pieces& wanted) const {
  PIF_TRY_VALUE(const auto in_file, patterns::Walker::make(file, wanted.displacement, wanted.skip, bytes));
  PIF_TRY_VALUE(const auto in_memory, patterns::Walker::make(memory, 0, 0, bytes));
  return patterns::Zip(in_file, in_memory);
}

namespace {

// A copy has the same lists, which whoever keeps the pattern keeps.
Result<patterns::Compiled> compiled_of(const patterns::Pattern& pattern,
                                       const std::shared_ptr<const patterns::CompiledPattern>& compiled) {
  if (compiled) return compiled->compiled();
  return patterns::Compiled::make(pattern);
}

}  // namespace

Result<Walks> Walks::make(const File::Pieces& wanted, std::size_t memory_bytes, bool is_blocking) {
  const auto kept = is_blocking ? nullptr : std::make_shared<const File::Pieces>(wanted);
  const File::Pieces& pieces = kept ? *kept : wanted;
  PIF_TRY_VALUE(auto file, compiled_of(pieces.file, pieces.compiled_file));
  PIF_TRY_VALUE(auto memory, compiled_of(pieces.memory, pieces.compiled_memory));
  const std::uint64_t bytes = wanted.bytes.value_or(memory.bytes());
  PIF_TRY_VALUE(const auto in_file, file.bounds(wanted.displacement, wanted.skip, bytes));
  PIF_TRY_VALUE(const auto in_memory, memory.bounds(0, 0, bytes));
  if (bytes > 0 && in_file.lowest < 0)
    return fail(Code::kInvalid, fmt::format("a piece would begin at byte {} of the file", in_file.lowest));
  if (bytes > 0 && (in_memory.lowest < 0 || static_cast<std::uint64_t>(in_memory.highest) > memory_bytes))
    return fail(Code::kInvalid, fmt::format("pieces take bytes {} to {} of memory, of which {} were given",
                                            in_memory.lowest, in_memory.highest, memory_bytes));
  return Walks{kept, std::move(file), std::move(memory), bytes};
}

}  // namespace pif::client
