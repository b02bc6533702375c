#include "overwrite/images.h"

#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/component/extents.h"

namespace pif::lfs {
namespace {

// Of fixed records: so the runs of what changes in it are few enough to be encoded.
constexpr std::uint64_t kImageBytesMax = 1u << 20;

// Gathers chunks in the order in which pieces touch them.
class Touched {
 public:
  Touched(std::uint64_t chunk_bytes, std::uint64_t bytes) : chunk_bytes_(chunk_bytes), bytes_(bytes) {}

  void add_piece(std::uint64_t offset, std::uint64_t size) {
    const std::uint64_t end = offset + size;
    PIF_ASSERT(size > 0 && end <= bytes_, offset, size, bytes_);
    const std::uint64_t first = offset / chunk_bytes_, last = (end - 1) / chunk_bytes_;
    const bool ends_in_part = end < std::min((last + 1) * chunk_bytes_, bytes_);
    const bool begins_in_part = offset % chunk_bytes_ != 0 || (first == last && ends_in_part);
    const std::uint64_t whole = first + (begins_in_part ? 1 : 0);
    const std::uint64_t whole_end = last + (ends_in_part ? 0 : 1);
    if (begins_in_part) add({first, 1, true});
    if (whole < whole_end) add({whole, whole_end - whole, false});
    if (ends_in_part && first != last) add({last, 1, true});
  }
  std::uint64_t count() const { return count_; }
  std::vector<ChunkRange> take() { return std::move(ranges_); }

 private:
  void add(const ChunkRange& range) {
    ChunkRange* const before = ranges_.empty() ? nullptr : &ranges_.back();
    PIF_ASSERT(before == nullptr || range.end() >= before->end(), range.first, range.count);
    if (before != nullptr && range.first < before->end()) {  // the chunk in which the piece before ended
      PIF_ASSERT(before->is_part && range.is_part && range.count == 1, range.first, range.count);
      return;
    }
    count_ += range.count;
    if (before != nullptr && range.first == before->end() && range.is_part == before->is_part)
      before->count += range.count;
    else
      ranges_.push_back(range);
  }

  const std::uint64_t chunk_bytes_;
  const std::uint64_t bytes_;
  std::vector<ChunkRange> ranges_;
  std::uint64_t count_ = 0;
};

}  // namespace

Result<std::vector<ChunkRange>> touched_chunks(const OverwriteTarget& target, std::uint64_t chunk_bytes,
                                               std::uint64_t bytes) {
  if (target.empty()) return std::vector<ChunkRange>();
  const std::uint64_t count_max =
      target.is_pieces() ? std::max<std::uint64_t>(1, component::kTouchedBytesMax / chunk_bytes) : UINT64_MAX;
  Touched touched(chunk_bytes, bytes);
  target.each([&](std::uint64_t offset, std::span<const std::byte> piece) {
    touched.add_piece(offset, piece.size());
    return touched.count() <= count_max;
  });
  if (touched.count() <= count_max) return touched.take();
  return fail(Code::kTooLarge, fmt::format("the pieces of one overwrite are in more than {} chunks of {} bytes",
                                           count_max, chunk_bytes));
}

bool have_common(std::span<const ChunkRange> a, std::span<const ChunkRange> b) {
  while (!a.empty() && !b.empty()) {
    if (a[0].first < b[0].end() && b[0].first < a[0].end()) return true;
    (a[0].end() < b[0].end() ? a : b) = (a[0].end() < b[0].end() ? a : b).subspan(1);
  }
  return false;
}

LogEntry BatchImages::Image::make_entry() {
  const component::Shape& shape = component->shape;
  if (changed) changes = encode_changes(shape, first_chunk, bytes, *changed);
  const std::span<const std::byte> data = changes ? *changes : bytes;
  return {component->file, first_chunk, shape.chunk_bytes, data,
          changes ? LogEntryType::kChanges : LogEntryType::kChunks};
}

const BatchImages::Place* BatchImages::find(FileId file, std::uint64_t chunk) const {
  const auto found = newest_.find({file.value, chunk});
  return found == newest_.end() ? nullptr : &found->second;
}

std::uint64_t BatchImages::count_missing(FileId file, std::span<const ChunkRange> chunks, std::uint64_t limit) const {
  std::uint64_t count = 0;
  for (const ChunkRange& range : chunks)
    for (std::uint64_t chunk = range.first; chunk < range.end() && count <= limit; ++chunk)
      if (find(file, chunk) == nullptr) ++count;
  return count;
}

bool BatchImages::has_in_one_image(FileId file, const ChunkRange& chunks) const {
  const Place* const first = find(file, chunks.first);
  if (first == nullptr) return false;
  for (std::uint64_t chunk = chunks.first + 1; chunk < chunks.end(); ++chunk) {
    const Place* const place = find(file, chunk);
    if (place == nullptr || place->image != first->image) return false;
  }
  return true;
}

std::vector<ChunkRange> BatchImages::missing(const Component& component, std::span<const ChunkRange> chunks) const {
  PIF_ASSERT(!chunks.empty(), component.file.value);
  if (!component.shape.format.is_fixed()) {
    const ChunkRange all{chunks.front().first, chunks.back().end() - chunks.front().first};
    return has_in_one_image(component.file, all) ? std::vector<ChunkRange>() : std::vector{all};
  }
  const std::uint64_t count_max = std::max<std::uint64_t>(1, kImageBytesMax / component.shape.chunk_bytes);
  std::vector<ChunkRange> out;
  for (const ChunkRange& range : chunks) {
    for (std::uint64_t chunk = range.first; chunk < range.end(); ++chunk) {
      if (find(component.file, chunk) != nullptr) continue;
      if (!out.empty() && out.back().end() == chunk && out.back().count < count_max)
        ++out.back().count;
      else
        out.push_back({chunk, 1});
    }
  }
  return out;
}

Status BatchImages::fill(Image& image, std::span<const ChunkRange> touched, const component::Reader& reader) const {
  const FileId file = image.component->file;
  const std::uint64_t chunk_bytes = image.component->shape.chunk_bytes;
  const std::uint64_t image_end = image.first_chunk + (image.bytes.size() + chunk_bytes - 1) / chunk_bytes;
  const auto part = [&](std::uint64_t from, std::uint64_t to) {
    const std::uint64_t begin = (from - image.first_chunk) * chunk_bytes;
    const std::uint64_t end = std::min<std::uint64_t>((to - image.first_chunk) * chunk_bytes, image.bytes.size());
    PIF_ASSERT(begin < end, from, to, image.first_chunk, image.bytes.size());
    return std::span(image.bytes).subspan(begin, end - begin);
  };
  auto at = std::partition_point(touched.begin(), touched.end(),
                                 [&](const ChunkRange& range) { return range.end() <= image.first_chunk; });
  for (; at != touched.end() && at->first < image_end; ++at) {
    const ChunkRange& range = *at;
    if (!range.is_part) continue;  // chunks that change whole need not even be intact
    if (image.component->shape.format.is_fixed() && !image.changed) image.changed.emplace(image.bytes.size());
    const std::uint64_t end = std::min(range.end(), image_end);
    for (std::uint64_t chunk = std::max(range.first, image.first_chunk); chunk < end;) {
      std::uint64_t next = chunk + 1;
      if (const Place* const place = find(file, chunk)) {
        PIF_ASSERT(place->bytes.size() == part(chunk, next).size(), chunk, place->bytes.size());
        std::memcpy(part(chunk, next).data(), place->bytes.data(), place->bytes.size());
      } else {
        while (next < end && find(file, next) == nullptr) ++next;
        PIF_TRY(reader.read_bytes(chunk * chunk_bytes, part(chunk, next)));
      }
      chunk = next;
    }
  }
  return {};
}

void BatchImages::adopt(std::vector<Image> fresh) {
  for (Image& image : fresh) {
    const std::uint64_t chunk_bytes = image.component->shape.chunk_bytes;
    bytes_ += image.bytes.size();
    for (std::uint64_t at = 0; at < image.bytes.size(); at += chunk_bytes) {
      const auto bytes = std::span(image.bytes).subspan(at, std::min(chunk_bytes, image.bytes.size() - at));
      newest_[{image.component->file.value, image.first_chunk + at / chunk_bytes}] = {images_.size(), bytes};
    }
    images_.push_back(std::move(image));  // its bytes stay where they are
  }
}

void BatchImages::put(const Component& component, const OverwriteTarget& target) {
  const std::uint64_t chunk_bytes = component.shape.chunk_bytes;
  std::uint64_t known = UINT64_MAX;  // chunk of `place`
  const Place* place = nullptr;
  target.each([&](std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::uint64_t chunk = offset / chunk_bytes, within = offset % chunk_bytes;
      if (chunk != known) place = find(component.file, chunk);
      known = chunk;
      PIF_ASSERT(place != nullptr && within < place->bytes.size(), component.file.value, chunk, within);
      const std::size_t size = std::min(bytes.size(), place->bytes.size() - within);
      std::memcpy(place->bytes.data() + within, bytes.data(), size);
      Image& image = images_[place->image];
      if (image.changed)
        image.changed->add(static_cast<std::size_t>(place->bytes.data() + within - image.bytes.data()), size);
      bytes = bytes.subspan(size);
      offset += size;
    }
    return true;
  });
}

Status BatchImages::change(const ComponentPtr& component, const OverwriteTarget& target,
                           const component::Reader& reader) {
  if (target.empty()) return {};
  const std::uint64_t chunk_bytes = component->shape.chunk_bytes;
  const std::uint64_t component_bytes = reader.tail().bytes;
  PIF_TRY_VALUE(const auto touched, touched_chunks(target, chunk_bytes, component_bytes));
  std::vector<Image> fresh;
  for (const ChunkRange& range : missing(*component, touched)) {
    const std::uint64_t end = std::min(range.end() * chunk_bytes, component_bytes);
    PIF_ASSERT(range.first * chunk_bytes < end, range.first, range.count, component_bytes);
    Image& image = fresh.emplace_back(
        Image{component, range.first, 0, std::vector<std::byte>(end - range.first * chunk_bytes), {}, {}});
    PIF_TRY(fill(image, touched, reader));
  }
  adopt(std::move(fresh));
  put(*component, target);
  return {};
}

}  // namespace pif::lfs
