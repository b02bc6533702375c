// The chunks of one stream of a component, .dat or .idx, held against what they should have: bytes that come in order,
// from others, as far as they are known. Away from the loop; one thread.
#pragma once

#include <string>
#include <vector>

#include "pif/component/component.h"

namespace pif::lfs {

enum class ScrubStream : std::uint8_t { kData, kIndex };

// A chunk that is not as it should be.
struct BadChunk {
  ScrubStream stream = ScrubStream::kData;
  std::uint64_t chunk = 0;
  Range place;                   // in .dat or .idx
  bool sum_holds = false;        // its own sum: then it is an old one, or was written wrong
  std::uint64_t published = 0;   // so many of its bytes, from the first on, are of published rows; others are nobody's
  bool is_known = false;         // all of those are known
  std::string why;               // what reading it said
  std::vector<std::byte> bytes;  // those, as they should be, if they are known

  bool has_rest() const { return published < place.size(); }
};

class ChunkCheck {
 public:
  // The bytes that tail has of that stream, from the first on. files outlive it.
  ChunkCheck(ScrubStream stream, const component::Shape& shape, const component::Tail& tail, component::Files& files);

  // Takes the next bytes. Bytes behind the stream's end are passed over.
  void add(std::span<const std::byte> bytes);
  // The next `count` bytes are known to nobody: the chunks' own sums must do.
  void skip(std::uint64_t count);
  // The same for the rest of the stream, which has rows behind the published ones. Bad chunks that have nothing else
  // are given as one, whose place is that of all.
  void skip_rest();
  // Nothing in front of `place`, where a chunk begins, is looked at. Before anything comes.
  void skip_to(std::uint64_t place);
  std::uint64_t position() const { return at_; }
  std::uint64_t size() const { return size_; }
  // Since the last call.
  std::vector<BadChunk> take_bad();

 private:
  std::uint64_t room() const { return chunk_size() - bytes_.size(); }  // in the chunk that is begun
  std::uint64_t chunk_size() const;
  void advance(std::uint64_t count);
  void judge();
  void note_bad(Range place, const Status& read_well);
  [[nodiscard]] Status read(Range place);
  [[nodiscard]] Status read_index(Range place);
  bool is_as_expected() const;

  const ScrubStream stream_;
  const component::Shape shape_;
  const component::Tail tail_;
  component::Files& files_;
  const component::Reader reader_;
  const std::uint64_t chunk_bytes_;
  const std::uint64_t size_;
  std::uint64_t published_ = size_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> bytes_;  // of the chunk that is begun
  std::vector<Range> unknown_;    // places in it
  std::vector<std::byte> own_;    // as it is stored
  std::vector<BadChunk> bad_;
};

// The sum of the first bytes of a partial last chunk.
std::uint64_t partial_sum(const component::Shape& shape, ScrubStream stream, std::uint64_t chunk,
                          std::span<const std::byte> bytes);
// Writes chunks without a rest with their sums, makes them durable, and reads them back. files: open for writing.
// kCorrupt: they are not as they were written, or a partial last chunk does not match the sum that the catalogue has of
// it, which nothing is written for.
[[nodiscard]] Status rewrite_chunks(const component::Shape& shape, const component::Tail& tail, component::Files& files,
                                    std::span<const BadChunk> chunks);

}  // namespace pif::lfs
