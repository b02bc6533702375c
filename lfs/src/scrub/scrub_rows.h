// The rows of one component: each chunk's sum, and each row against what those rebuild who keep its parity, which they
// answer only if it hashes to their vectors. A chunk that is bad, or old together with its sum, is written anew out of
// their rows. Window by window, in bounded memory. Rows behind the published ones are nobody's, or of an append that is
// under way: where they go bad, the component ends in front of them as soon as nothing is under way (scrub_rest.cc).
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "scrub/scrub_chunks.h"
#include "scrub/scrub_job.h"

namespace pif::lfs {

class ScrubRows {
 public:
  explicit ScrubRows(ScrubJob& job) : job_(job), component_(job.component) {}
  // Called by a fiber, once.
  void run();

 private:
  static constexpr unsigned kTriesMax = 3;  // of a component that changes meanwhile
  static constexpr std::uint32_t kMissing = ~std::uint32_t{0};
  // Rows of the window whose parity one LFS keeps: each size-th.
  struct Stream {
    LfsIndex keeper = 0;
    Row first = 0;
    std::uint64_t count = 0;             // in the window
    std::uint64_t asked = 0;             // of the request under way
    std::vector<std::uint64_t> begins;   // in `bytes`, of those that came, or are passed over
    std::vector<std::uint32_t> lengths;  // the same; kMissing: it did not come
    std::vector<std::byte> bytes;
    bool is_single = false;  // a page at a time, as a longer piece could not be had
  };

  [[nodiscard]] Status begin();
  // False: the component changes meanwhile, and is to be looked at from the beginning.
  [[nodiscard]] bool look();
  bool is_all() const { return next_ >= rows_ && data_ && data_->position() >= data_->size(); }
  void begin_window();
  void fetch();
  void ask_all(access::Requests& requests);
  void ask(access::Requests& requests, Stream& stream);
  net::Packet question(const Stream& stream) const;
  [[nodiscard]] Status take(Stream& stream, const net::Packet& reply);
  void pass_over(Stream& stream, const Error& error);
  void skip(Stream& stream, std::uint64_t count);
  std::uint64_t left_of(const Stream& stream) const { return stream.count - stream.lengths.size(); }
  std::uint64_t left_of_page(const Stream& stream) const;
  // Fills bad_.
  [[nodiscard]] Status compare();
  // False: as look().
  [[nodiscard]] bool repair();
  bool is_whole() const;
  void take_those_to_write(bool may_write);
  std::string why_left(const BadChunk& bad) const;
  void rewrite();
  [[nodiscard]] Status rewrite_bad();  // away from the loop
  void report(const BadChunk& bad, bool is_repaired, const std::string& what) const;
  bool is_changed() const;

  // ---- scrub_rest.cc: what is behind the published rows ----
  std::uint64_t published_bytes() const;
  bool may_forget_rest() const;
  // False: as look(). patience: until when it waits for others.
  [[nodiscard]] bool forget_rest(Time patience);
  [[nodiscard]] Result<FileLength> ask_length(std::uint64_t view);
  [[nodiscard]] Status cut_rest();
  void report_forgotten();
  [[nodiscard]] Result<component::Tail> published_tail();
  const BadChunk* half_published(ScrubStream stream) const;

  // Away from the loop.
  void feed(Row end, bool is_last);
  void feed_fixed(Row end);
  void feed_variable(Row end);
  std::span<const std::byte> row_of(Row row, bool& is_known) const;
  [[nodiscard]] Status open();

  ScrubJob& job_;
  const ComponentPtr component_;
  std::unique_ptr<access::Grant> grant_;
  unsigned tries_ = 0;
  std::string lacking_;  // why rows of this component could not be had, the first time

  // The state of one try.
  component::Tail tail_;
  std::uint64_t rows_ = 0;  // published
  Row next_ = 0;
  Row end_ = 0;                 // of the window
  std::deque<Stream> streams_;  // of the window
  std::vector<BadChunk> bad_;   // of the window
  std::optional<Error> kept_;   // why rows behind the published ones stay though they are bad; nothing: not known yet
  std::optional<component::Files> files_;
  std::optional<ChunkCheck> data_;
  std::optional<ChunkCheck> index_;
  std::uint64_t offset_ = 0;  // of the next row in .dat
  bool is_lost_ = false;      // where rows begin is not known any more
};

}  // namespace pif::lfs
