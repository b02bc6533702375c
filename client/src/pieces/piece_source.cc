#include "pieces/piece_source.h"

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::client {

Result<patterns::Zip> Walks::zip(const File::Pieces& wanted) const {
  PIF_TRY_VALUE(const auto in_file, patterns::Walker::make(*file, wanted.displacement, wanted.skip, bytes));
  PIF_TRY_VALUE(const auto in_memory, patterns::Walker::make(*memory, 0, 0, bytes));
  return patterns::Zip(in_file, in_memory);
}

namespace {

using patterns::Compiled;
using patterns::CompiledPattern;

Result<std::shared_ptr<const Compiled>> compiled_of(const patterns::Pattern& pattern,
                                                    std::shared_ptr<const CompiledPattern> whole, bool is_blocking) {
  if (!whole && is_blocking) {
    PIF_TRY_VALUE(auto compiled, Compiled::make(pattern));
    return std::make_shared<const Compiled>(std::move(compiled));
  }
  if (!whole) {
    PIF_TRY_VALUE(whole, CompiledPattern::make(pattern));
  }
  const Compiled* const compiled = &whole->compiled();
  return std::shared_ptr<const Compiled>(std::move(whole), compiled);
}

}  // namespace

Result<Walks> Walks::make(const File::Pieces& wanted, std::size_t memory_bytes, bool is_blocking) {
  PIF_TRY_VALUE(auto file, compiled_of(wanted.file, wanted.compiled_file, is_blocking));
  PIF_TRY_VALUE(auto memory, compiled_of(wanted.memory, wanted.compiled_memory, is_blocking));
  PIF_ASSERT(file != nullptr && memory != nullptr);
  const std::uint64_t bytes = wanted.bytes.value_or(memory->bytes());
  PIF_TRY_VALUE(const auto in_file, file->bounds(wanted.displacement, wanted.skip, bytes));
  PIF_TRY_VALUE(const auto in_memory, memory->bounds(0, 0, bytes));
  if (bytes > 0 && in_file.lowest < 0)
    return fail(Code::kInvalid, fmt::format("a piece would begin at byte {} of the file", in_file.lowest));
  if (bytes > 0 && (in_memory.lowest < 0 || static_cast<std::uint64_t>(in_memory.highest) > memory_bytes))
    return fail(Code::kInvalid, fmt::format("pieces take bytes {} to {} of memory, of which {} were given",
                                            in_memory.lowest, in_memory.highest, memory_bytes));
  return Walks{std::move(file), std::move(memory), bytes};
}

}  // namespace pif::client
