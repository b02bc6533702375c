#include "pif/component/page_copy.h"

#include <algorithm>

#include <fmt/format.h>

#include "parity/parity_entry.h"
#include "pif/base/assert.h"
#include "pif/base/checksum.h"

namespace pif::component {
namespace {

constexpr std::size_t kCopyBytes = 256u << 10;  // as of components: stays in the processor's cache
constexpr std::size_t kEntryBytesAtOnce = 256u << 10;
constexpr std::uint64_t kWriteBackBytes = 8u << 20;
constexpr const char* kOtherBytes = "the bytes do not match their checksum";

}  // namespace

// Some entries of .psum behind one another whose vectors hold.
class PageCopy::Entries {
 public:
  Entries(const ParityShape& source, std::uint64_t first, std::uint64_t begin)
      : shape_(source), words_of_(PageEntry::words_of(source)), first_(first), begins_{begin} {}

  // As many as there are, up to `count`; the reason why the next one does not count, if there are less.
  Result<std::string> load(File& sums, std::uint64_t count) {
    const std::uint64_t bytes = words_of_ * sizeof(std::uint64_t);
    words_.resize(count * words_of_);
    PIF_TRY_VALUE(const std::size_t n, sums.read(first_ * bytes, std::as_writable_bytes(std::span(words_))));
    for (std::uint64_t i = 0; i < count; ++i) {
      if ((i + 1) * bytes > n) return "is not there: .psum ends before it";
      PageEntry one = at(i);
      if (one.sum_of_vector(shape_.file, first_ + i) != one.vector_sum())
        return "its vector does not match its checksum";
      const std::uint64_t begin = begins_.back();
      const std::uint64_t end = shape_.format.is_fixed() ? begin + fixed_page_bytes(shape_) : one.end();
      if (end < begin || !is_page_size(shape_, end - begin)) return "it cannot be where its entry says";
      begins_.push_back(end);
    }
    return std::string();
  }
  std::uint64_t count() const { return begins_.size() - 1; }
  Range place(std::uint64_t i) const { return {begins_[i], begins_[i + 1]}; }
  PageEntry at(std::uint64_t i) { return {shape_, std::span(words_).subspan(i * words_of_, words_of_)}; }
  bool is_sum_of(std::uint64_t i, std::uint64_t hash) {
    return (hash ^ chunk_mix(shape_.file, kPageStream, first_ + i)) == at(i).page_sum();
  }
  // Behind the last of those, from entry i on, that fit one buffer. i: it is longer.
  std::uint64_t end_of_piece(std::uint64_t i) const {
    std::uint64_t end = i;
    while (end < count() && begins_[end + 1] - begins_[i] <= kCopyBytes) ++end;
    return end;
  }
  // As these entries are to stand in .psum of the other file.
  std::span<const std::byte> bound_to(FileId target, Range entries) {
    for (std::uint64_t i = entries.begin; i < entries.end; ++i) {
      PageEntry one = at(i);
      const std::uint64_t page = first_ + i;
      one.page_sum() ^= chunk_mix(shape_.file, kPageStream, page) ^ chunk_mix(target, kPageStream, page);
      for (std::size_t member = 0; member < shape_.members(); ++member) one.number(member) = 0;
      one.vector_sum() = one.sum_of_vector(target, page);
    }
    return std::as_bytes(std::span(words_).subspan(entries.begin * words_of_, entries.size() * words_of_));
  }
  std::uint64_t offset(std::uint64_t i) const { return (first_ + i) * words_of_ * sizeof(std::uint64_t); }

 private:
  const ParityShape& shape_;
  const std::size_t words_of_;
  const std::uint64_t first_;
  std::vector<std::uint64_t> begins_;  // of each page in .par, and where the last one ends
  std::vector<std::uint64_t> words_;
};

PageCopy::PageCopy(const ParityShape& source, ParityFiles& from, FileId target, ParityFiles& to, std::uint64_t pages)
    : source_(source), from_(from), target_(target), to_(to), pages_(std::min(pages, pages_limit(source))) {
  PIF_ASSERT(to.pages != nullptr && to.sums != nullptr, target.value);
  PIF_ASSERT(source.file != target, source.file.value);
}

void PageCopy::stop(const std::string& why) { damage_ = fmt::format("{}: {}", page_name(source_, done_), why); }

Status PageCopy::begin() {
  begun_ = true;
  PIF_TRY(to_.sums->resize(0));
  if (from_.pages == nullptr || from_.sums == nullptr) {
    stop("there is no .par");
    return to_.pages->resize(0);
  }
  const Status cloned = to_.pages->clone_from(*from_.pages);
  if (!cloned && cloned.error().code != Code::kUnsupported) return cloned;
  cloned_ = cloned.has_value();
  return cloned_ ? Status() : to_.pages->resize(0);
}

Result<bool> PageCopy::step(std::uint64_t bytes) {
  if (!begun_ && pages_ > 0) PIF_TRY(begin());
  for (std::uint64_t copied = 0; copied < bytes && !is_over();) {
    PIF_TRY_VALUE(const std::uint64_t more, copy_batch(bytes - copied));
    copied += more;
  }
  return !is_over();
}

// As many pages as one read of .psum gives, or about `bytes` bytes.
Result<std::uint64_t> PageCopy::copy_batch(std::uint64_t bytes) {
  PIF_ASSERT(!is_over(), done_, pages_);
  const std::uint64_t begin = end_, first = done_;
  const std::uint64_t entry_bytes = PageEntry::words_of(source_) * sizeof(std::uint64_t);
  std::uint64_t count = std::min(pages_ - done_, std::max<std::uint64_t>(kEntryBytesAtOnce / entry_bytes, 1));
  if (source_.format.is_fixed()) count = std::min(count, bytes / fixed_page_bytes(source_) + 1);
  Entries entries(source_, done_, end_);
  PIF_TRY_VALUE(const std::string damage, entries.load(*from_.sums, count));
  while (end_ - begin < bytes && done_ - first < entries.count() && damage_.empty()) {
    const Range pages{done_ - first, entries.end_of_piece(done_ - first)};
    PIF_TRY(pages.empty() ? copy_long_page(entries, pages.begin) : copy_short_pages(entries, pages));
  }
  if (done_ - first == entries.count() && !damage.empty()) stop(damage);
  return end_ - begin;
}

Result<bool> PageCopy::copy_bytes(std::uint64_t at, std::span<std::byte> part) {
  PIF_TRY_VALUE(const std::size_t n, from_.pages->read(at, part));
  if (n != part.size()) {
    stop(fmt::format(".par ends at byte {}", at + n));
    return false;
  }
  if (!cloned_) PIF_TRY(to_.pages->write(at, part));
  return true;
}

Status PageCopy::copy_short_pages(Entries& entries, Range pages) {
  buffer_.resize(kCopyBytes);
  PIF_ASSERT(entries.place(pages.end - 1).end - end_ <= kCopyBytes, pages.begin, pages.end, end_);
  const auto bytes = std::span(buffer_).first(entries.place(pages.end - 1).end - end_);
  const std::uint64_t begin = end_;
  PIF_TRY_VALUE(const bool are_there, copy_bytes(begin, bytes));
  if (!are_there) return {};  // perhaps some are; the others are made anew, and these with them
  for (std::uint64_t i = pages.begin; i < pages.end; ++i) {
    const Range place = entries.place(i);
    if (entries.is_sum_of(i, hash_bytes(bytes.subspan(place.begin - begin, place.size())))) continue;
    PIF_TRY(keep(entries, {pages.begin, i}));
    stop(kOtherBytes);
    return {};
  }
  return keep(entries, pages);
}

Status PageCopy::copy_long_page(Entries& entries, std::uint64_t i) {
  buffer_.resize(kCopyBytes);
  HashStream stream;
  const Range place = entries.place(i);
  for (std::uint64_t at = place.begin; at < place.end; at += kCopyBytes) {
    const auto part = std::span(buffer_).first(std::min<std::uint64_t>(kCopyBytes, place.end - at));
    PIF_TRY_VALUE(const bool are_there, copy_bytes(at, part));
    if (!are_there) return {};
    stream.add(part);
  }
  if (entries.is_sum_of(i, stream.value())) return keep(entries, {i, i + 1});
  stop(kOtherBytes);
  return {};
}

// These pages hold, and are in .par.
Status PageCopy::keep(Entries& entries, Range pages) {
  if (pages.empty()) return {};
  PIF_ASSERT(pages.end <= entries.count() && entries.place(pages.begin).begin == end_, pages.begin, pages.end, end_);
  PIF_TRY(to_.sums->write(entries.offset(pages.begin), entries.bound_to(target_, pages)));
  end_ = entries.place(pages.end - 1).end;
  done_ += pages.size();
  PIF_ASSERT(done_ <= pages_, done_, pages_);
  if (!cloned_ && end_ - written_back_ >= kWriteBackBytes) {
    to_.pages->start_writeback(written_back_, end_ - written_back_);
    written_back_ = end_;
  }
  return {};
}

// What was checked is cloned once more: a scrub may have repaired pages since begin().
Status PageCopy::finish() {
  if (cloned_) PIF_TRY(to_.pages->clone_from(*from_.pages));
  PIF_TRY(to_.pages->resize(end_));
  return to_.sums->resize(done_ * PageEntry::words_of(source_) * sizeof(std::uint64_t));
}

}  // namespace pif::component
