// The images that a batch of overwrites writes to the redo log: whole new chunks of .dat, one of each chunk however
// many requests change it. Knows nothing of the loop. Thread-safety: none.
//
// An image of chunks that change in part knows which of its bytes do: the log takes no more than these.
//
// One image, and so one entry of the log, has all that one request changes in variable records, since a record may
// cross chunks. Fixed records do not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "components/components.h"
#include "pif/pattern/runs.h"
#include "redo/redo_log.h"
#include "redo/redo_pieces.h"

namespace pif::lfs {

// Bytes of .dat that a request changes: pieces that rise and are disjoint. The bytes outlive it.
class OverwriteTarget {
 public:
  OverwriteTarget(std::uint64_t offset, std::span<const std::byte> bytes) : offset_(offset), bytes_(bytes) {}
  // runs: of so many bytes.
  OverwriteTarget(const patterns::RunDecoder& runs, std::span<const std::byte> bytes) : runs_(runs), bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  bool is_pieces() const { return runs_.has_value(); }
  std::uint64_t end() const { return runs_ ? runs_->end() : offset_ + bytes_.size(); }  // behind its last byte
  // each(offset, bytes): every piece, in order, until it says false.
  template <typename Each>
  void each(const Each& each) const {
    if (!runs_) return void(each(offset_, bytes_));
    patterns::RunDecoder runs = *runs_;
    std::span<const std::byte> left = bytes_;
    while (auto run = runs.next()) {
      for (; run->count > 0; --run->count, run->offset += run->stride) {
        if (!each(run->offset, left.first(run->length))) return;
        left = left.subspan(run->length);
      }
    }
  }

 private:
  std::optional<patterns::RunDecoder> runs_;
  std::uint64_t offset_ = 0;
  std::span<const std::byte> bytes_;
};

struct ChunkRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool is_part = false;  // all of them change in part, or all whole; else it means nothing

  std::uint64_t end() const { return first + count; }
  bool operator==(const ChunkRange&) const = default;
};

// The chunks that change of a component of `bytes` bytes, rising and disjoint. kTooLarge: pieces are in more chunks
// than one request may change (kTouchedBytesMax).
[[nodiscard]] Result<std::vector<ChunkRange>> touched_chunks(const OverwriteTarget& target, std::uint64_t chunk_bytes,
                                                             std::uint64_t bytes);
// Whether they have a chunk in common. Both rise.
bool have_common(std::span<const ChunkRange> a, std::span<const ChunkRange> b);

class BatchImages {
 public:
  struct Image {
    ComponentPtr component;
    std::uint64_t first_chunk = 0;
    std::uint64_t number = 0;  // in the log, once it is there
    std::vector<std::byte> bytes;
    std::optional<ChangedBytes> changed;            // nothing: all of them may
    std::optional<std::vector<std::byte>> changes;  // set by whoever logs it

    // Its entry of the log, as long as this lives: what changes, or all of it if that is hardly longer.
    LogEntry make_entry();
  };

  // Changes the images of the target's chunks. Those that the batch does not have yet are made of what `reader` has.
  // Errors: kTooLarge; those of the reader, also kBusy of one that does not wait for the disk. The batch is as it was
  // then.
  [[nodiscard]] Status change(const ComponentPtr& component, const OverwriteTarget& target,
                              const component::Reader& reader);
  // How many of these chunks have no image yet, of fixed records; more than `limit` are not counted.
  std::uint64_t count_missing(FileId file, std::span<const ChunkRange> chunks, std::uint64_t limit) const;

  std::vector<Image>& images() { return images_; }
  bool empty() const { return images_.empty(); }
  std::uint64_t bytes() const { return bytes_; }  // of all images

 private:
  using ChunkKey = std::pair<std::uint64_t, std::uint64_t>;  // file, chunk
  struct Place {
    std::size_t image = 0;  // index
    std::span<std::byte> bytes;
  };

  const Place* find(FileId file, std::uint64_t chunk) const;
  // Chunks of which an image is to be made, each range one.
  std::vector<ChunkRange> missing(const Component& component, std::span<const ChunkRange> chunks) const;
  bool has_in_one_image(FileId file, const ChunkRange& chunks) const;
  // Fills in the bytes of chunks that change in part: from an image before, or from the disk.
  [[nodiscard]] Status fill(Image& image, std::span<const ChunkRange> touched, const component::Reader& reader) const;
  void adopt(std::vector<Image> fresh);
  void put(const Component& component, const OverwriteTarget& target);

  std::vector<Image> images_;
  std::map<ChunkKey, Place> newest_;  // image of each chunk
  std::uint64_t bytes_ = 0;
};

}  // namespace pif::lfs
