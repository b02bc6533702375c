// The rows of one component: each chunk's sum, and each row against what those rebuild who keep its parity, which they
// answer only if it hashes to their vectors. A chunk that is bad, or old together with its sum, is written anew out of
// their rows. Window by window, in bounded memory. Rows behind the published ones are nobody's, or of an append that is
// under way: where they go bad, the component ends in front of them as soon as nothing is under way (scrub_rest.cc).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "scrub/scrub_chunks.h"
#include "scrub/scrub_job.h"

namespace pif::lfs {

class ScrubRows : public std::enable_shared_from_this<ScrubRows> {
 public:
  using Done = std::function<void()>;
  explicit ScrubRows(std::shared_ptr<ScrubJob> job) : job_(std::move(job)), component_(job_->component) {}
  // done: later, or before this returns.
  void start(Done done);
  // What had to wait, for the rate or for a change of the component, goes on if it may.
  void advance() { step(); }
  Time next_deadline() const { return next_try_; }

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
    bool is_over = false;    // nothing more comes
  };

  [[nodiscard]] Status begin();
  void again();
  void step();
  void begin_window();
  void ask(Stream& stream);
  [[nodiscard]] Status take(Stream& stream, net::Packet& reply);
  void answered(Stream& stream, const Status& status);
  void skip(Stream& stream, std::uint64_t count);
  std::uint64_t left_of_page(const Stream& stream) const;
  void compare();
  void compared();
  void repair();
  void take_those_to_write(bool may_write);
  std::string why_left(const BadChunk& bad) const;
  void rewritten(const Status& status);
  void report(const BadChunk& bad, bool is_repaired, const std::string& what);
  bool is_changed() const;
  void end();

  // ---- scrub_rest.cc: what is behind the published rows ----
  std::uint64_t published_bytes() const;
  bool may_forget_rest() const;
  void ask_length();
  void take_length(const Result<FileLength>& length);
  void keep_rest(const Error& why);
  void forget_rest();
  [[nodiscard]] Result<component::Tail> published_tail();
  void forgotten(const Status& status, const component::Tail& tail);
  const BadChunk* half_published(ScrubStream stream) const;

  // Away from the loop.
  void feed(Row end, bool is_last);
  void feed_fixed(Row end);
  void feed_variable(Row end);
  std::span<const std::byte> row_of(Row row, bool& is_known) const;
  [[nodiscard]] Status open();

  const std::shared_ptr<ScrubJob> job_;
  const ComponentPtr component_;
  Done done_;
  std::unique_ptr<access::Grant> grant_;
  component::Tail tail_;
  std::uint64_t rows_ = 0;  // published
  Row next_ = 0;
  Row end_ = 0;  // of the window
  std::deque<Stream> streams_;
  unsigned errands_ = 0;
  unsigned tries_ = 0;
  bool is_busy_ = false;
  Time next_try_ = kNever;
  Time patience_{};      // until when a repair waits for others
  std::string lacking_;  // why rows of this component could not be had, the first time
  struct Moment {        // of a question for the length
    std::uint64_t view = 0;
    std::uint64_t generation = 0;  // of the component's rows
  };
  Moment asked_;
  Time ask_next_{};            // not before
  std::optional<Error> kept_;  // why rows behind the published ones stay though they are bad; nothing: not known yet

  // Of the work under way.
  std::optional<component::Files> files_;
  std::optional<ChunkCheck> data_;
  std::optional<ChunkCheck> index_;
  std::uint64_t offset_ = 0;  // of the next row in .dat
  bool is_lost_ = false;      // where rows begin is not known any more
  Status result_;
  std::vector<BadChunk> bad_;
};

}  // namespace pif::lfs
