#include <algorithm>

#include <fmt/format.h>

#include "parity_entry.h"
#include "pif/base/assert.h"

namespace pif::component {
namespace {

constexpr std::size_t kCopyBytes = 256u << 10;
constexpr std::uint64_t kEntriesAtOnce = 1024;

Status copy_bytes(const ParityShape& source, File& from, File& to, std::uint64_t end) {
  const Status cloned = to.clone_from(from);
  if (!cloned && cloned.error().code != Code::kUnsupported) return cloned;
  PIF_TRY(to.resize(end));
  if (cloned) return {};
  std::vector<std::byte> buffer(kCopyBytes);
  for (std::uint64_t at = 0; at < end; at += buffer.size()) {
    const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), end - at));
    PIF_TRY_VALUE(const std::size_t n, from.read(at, part));
    if (n != part.size())
      return fail(Code::kCorrupt, fmt::format("file {}: .par ends at byte {}", source.file.value, at + n));
    PIF_TRY(to.write(at, part));
  }
  return {};
}

Status copy_entries(const ParityShape& source, File& from, FileId target, File& to, std::uint64_t pages) {
  const std::size_t words = PageEntry::words_of(source), bytes = words * sizeof(std::uint64_t);
  std::vector<std::uint64_t> buffer(std::min(pages, kEntriesAtOnce) * words);
  for (std::uint64_t first = 0; first < pages; first += kEntriesAtOnce) {
    const std::uint64_t count = std::min(kEntriesAtOnce, pages - first);
    const auto batch = std::span(buffer).first(count * words);
    PIF_TRY_VALUE(const std::size_t n, from.read(first * bytes, std::as_writable_bytes(batch)));
    if (n != batch.size_bytes())
      return fail(Code::kCorrupt, fmt::format("{}: .psum ends before it", page_name(source, first + n / bytes)));
    for (std::uint64_t i = 0; i < count; ++i) {
      PageEntry entry(source, batch.subspan(i * words, words));
      const auto change = [&](std::uint32_t stream) {
        return chunk_mix(source.file, stream, first + i) ^ chunk_mix(target, stream, first + i);
      };
      entry.page_sum() ^= change(kPageStream);
      entry.vector_sum() ^= change(kVectorStream);
    }
    PIF_TRY(to.write(first * bytes, std::as_bytes(batch)));
  }
  return to.resize(pages * bytes);
}

Status copy_pages(const ParityShape& source, ParityFiles& from, FileId target, ParityFiles& to, std::uint64_t pages) {
  std::uint64_t end = 0;
  if (pages > 0) {
    PIF_TRY_VALUE(const Range last, page_bytes(source, from, pages - 1));
    end = last.end;
    if (from.pages == nullptr) return fail(Code::kCorrupt, fmt::format("file {}: there is no .par", source.file.value));
    PIF_TRY_VALUE(const std::uint64_t size, from.pages->size());
    if (size < end) return fail(Code::kCorrupt, fmt::format("file {}: .par ends at byte {}", source.file.value, size));
  }
  if (end == 0) {
    PIF_TRY(to.pages->resize(0));
    return to.sums->resize(0);
  }
  PIF_TRY(copy_bytes(source, *from.pages, *to.pages, end));
  return copy_entries(source, *from.sums, target, *to.sums, pages);
}

// One by one: the hash of each binds it to its file.
Status copy_frames(FileId source, ParityFiles& from, FileId target, ParityFiles& to, std::uint64_t begin) {
  PIF_TRY(to.frames->resize(0));
  PIF_TRY_VALUE(const FrameIndex index, scan_frames(source, from, begin));
  std::vector<std::byte> row;
  for (const auto& [record, frame] : index.frames) {
    PIF_TRY(read_frame(source, from, frame, row));
    const NewFrame out{record, frame.generation, frame.number, row};
    PIF_TRY(write_frames(target, to, frame.offset - kFrameHeaderBytes, std::span(&out, 1)));
  }
  return {};
}

}  // namespace

Status copy_parity(const ParityShape& source, ParityFiles& from, FileId target, ParityFiles& to, std::uint64_t pages,
                   std::uint64_t pap_begin) {
  PIF_ASSERT(to.pages != nullptr && to.sums != nullptr && to.frames != nullptr);
  PIF_TRY(copy_pages(source, from, target, to, pages));
  return copy_frames(source.file, from, target, to, pap_begin);
}

}  // namespace pif::component
