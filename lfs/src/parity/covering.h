// Cover: parity of records that are being appended, once their rows are durable and before they are published. Of one
// component one is written after the other; those that are written share syncs.
//
// What has room in whole pages inside the appended range becomes pages (`covered`), the rest frames. Rows of absent
// members are copied here before, as frames, and are taken from there. Folding: when frames of published rows make
// enough pages, these are made out of the members' rows, and the frames go.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "parity/copied_rows.h"
#include "parity/keeping.h"
#include "store/covered.h"

namespace pif::lfs {

class Covering {
 public:
  explicit Covering(Keeping& keeping);

  // Answers later.
  void cover(const Request& request, const proto::Cover& asked);
  // CopyRows of an append; checked. Answers when the frames are written; they are durable with the cover.
  void copy(const Request& request, const Keeper& keeper, CopiedRowsPtr rows);
  // Begins what has become possible. Once per turn.
  void advance();
  Time next_deadline() const;

 private:
  struct Waiting {
    ReplyToken token = 0;
    std::uint64_t view = 0;  // as the request says it
    std::uint64_t generation = 0;
    FileLength base;
    CopiedRowsPtr copied;  // a copy; null: a cover, and what follows is
    Range records;
    FileLength file_length;
    std::uint64_t epoch = 0;
    bool by_message = false;  // are rows read, not through descriptors
  };
  struct Line {  // of one component
    ComponentPtr component;
    Keeper keeper;
    std::deque<Waiting> waiting;
    bool is_busy = false;      // something is being written
    unsigned syncing = 0;      // covers that are written, and not yet answered
    Time fold_at = kNever;     // there may be something to fold
    std::uint64_t epoch = 0;   // of the last who asked
    std::uint64_t view = 0;    // by which it is being folded
    unsigned fold_tries = 0;   // since the last cover
    std::uint64_t erased = 0;  // generation of which nothing older is left behind its base
  };
  using Frames = std::vector<component::Frame>;

  [[nodiscard]] Status check(const proto::Cover& asked, const Keeper& keeper);
  [[nodiscard]] Result<ComponentPtr> component_of(const Request& request, const proto::ComponentShape& shape,
                                                  const Keeper& keeper, const FileLength& base);
  // Where it is to wait, if it may.
  [[nodiscard]] Result<Line*> line_of(const Request& request, const proto::ComponentShape& shape, const Keeper& keeper,
                                      const FileLength& base, std::uint64_t generation);
  void advance(Line& line);
  // True if the frames are known; else they will be, and then it is asked again.
  [[nodiscard]] bool know_frames(Line& line);
  // True if what was cancelled is being erased; then it is asked again.
  [[nodiscard]] bool erases(Line& line, const Waiting& one);
  void fail_all(Line& line, const Error& why);
  void begin(Line& line, const Waiting& one);
  [[nodiscard]] ParityPlan plan_of(const Line& line, const Waiting& one, Range pages) const;
  void copy(Line& line, const Waiting& one);
  void add_written(Line& line, const Status& status, std::span<const component::Frame> frames, std::uint64_t end);
  // Not where two members are absent: of a page that has rows of both neither can be rebuilt without the other one.
  bool may_make_pages(const Line& line) const;
  Range pages_of(const Line& line, const Waiting& one) const;
  void written(Line& line, const Waiting& one, Range pages, const Status& status, const ParityRun::Outcome& outcome);
  void synced(Line& line, const Waiting& one, Range pages, const Status& status);
  void end(Line& line, const Waiting& one, const Status& status);

  void plan_fold(Line& line, const FileLength& file_length);
  void fold(Line& line);
  void ask_length(Line& line, LfsIndex sequencer);
  void fold_up_to(Line& line, const FileLength& published);
  void folded(Line& line, std::uint64_t pages, const Status& status);
  void drop_frames(Line& line, std::uint64_t pages);
  void end_fold(Line& line);

  Keeping& keeping_;
  LfsContext& context_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Line>> lines_;  // by file; only those with something to do
};

}  // namespace pif::lfs
