// The state machine of a file's acting sequencer, which says who appends where. Pure: time comes in, decisions go out.
//
// Rules: (1) grants follow one another without gaps, in one generation. (2) The published length is the end of the
// longest prefix of grants that are done. (3) Deadlines rise with grants, so the first grant that is not done lapses
// first; with it go all later ones, and the generation rises. Later grants start at the end of the done prefix, `base`
// of the new generation. A grant that was given up lapses as soon as it is the first that is not done. (4) A grant that
// was published is known as such when its `done` comes again. (5) Tickets are this sequencer's own: with the generation
// they name a grant for ever. (6) cancel_all() ends what a view began; what follows is of a higher generation, from a
// length that begin() may raise.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "pif/base/clock.h"
#include "pif/base/format.h"

namespace pif::lfs {

class Sequencer {
 public:
  struct Grant {
    std::uint64_t ticket = 0;
    std::uint64_t generation = 0;
    FileLength start;
    FileLength end;
    FileLength base;
    Time deadline;
    std::uint64_t owner = 0;
  };
  struct Publication {
    FileLength file_length;
    std::uint64_t ticket = 0;      // the last one in it
    std::uint64_t generation = 0;  // of that one
  };
  enum class Outcome : std::uint8_t { kWait, kPublished };

  // A generation is the incarnation of its LFS, then a number within that: what an LFS that lost changes gave out is
  // not given again.
  static constexpr unsigned kIncarnationShift = 24;

  // generation: higher than that of any grant ever given before.
  Sequencer(const Format& format, const FileLength& published, std::uint64_t generation, Duration patience);

  // bytes: of the records; with `fill` the bytes first fill up a short last record and `records` is not looked at.
  // kInvalid, kTooLarge; kRetry when too many are under way.
  [[nodiscard]] Result<Grant> reserve(std::uint64_t records, std::uint64_t bytes, bool fill, Time now,
                                      std::uint64_t owner = 0);
  // The grant's rows are durable everywhere. kRetry if it was cancelled.
  [[nodiscard]] Result<Outcome> done(std::uint64_t ticket);
  // Its records will not come. Nothing happens to one that is done, or is not known any more.
  void give_up(std::uint64_t ticket);
  // All of this owner's.
  void give_up_owner(std::uint64_t owner);
  // The done prefix that is not yet published; to be made durable, then given to publish().
  std::optional<Publication> to_publish() const;
  // Returns the tickets that are now published.
  std::vector<std::uint64_t> publish(const Publication& publication);
  // Cancels what has lapsed; returns the cancelled tickets.
  std::vector<std::uint64_t> expire(Time now);
  Time next_deadline() const;
  // Whether that grant is under way here, or was published, as far as that is remembered.
  bool knows(std::uint64_t ticket, std::uint64_t generation) const;
  // Cancels every grant, done or not, and raises the generation. Returns their tickets.
  std::vector<std::uint64_t> cancel_all();
  // Goes on from that length, no shorter than the published one, in that generation, of which nothing was given out.
  // Nothing is under way.
  void begin(const FileLength& published, std::uint64_t generation);

  std::uint64_t generation() const { return generation_; }
  const FileLength& published() const { return published_; }
  bool idle() const { return grants_.empty(); }

 private:
  struct Pending {
    Grant grant;
    bool done = false;
    bool given_up = false;
  };
  [[nodiscard]] Result<FileLength> end_of(const FileLength& start, std::uint64_t records, std::uint64_t bytes,
                                          bool fill) const;
  // Its place in grants_, or the end.
  [[nodiscard]] std::deque<Pending>::iterator find(std::uint64_t ticket);
  void raise_generation(const FileLength& base);
  struct Range {  // of tickets that were published
    std::uint64_t generation;
    std::uint64_t first;
    std::uint64_t last;
  };

  Format format_;
  Duration patience_;
  FileLength published_;
  FileLength base_;
  std::uint64_t generation_;
  std::uint64_t next_ticket_ = 1;
  std::deque<Pending> grants_;           // by rising ticket and position
  std::deque<Range> published_tickets_;  // newest last
};

}  // namespace pif::lfs
