// An LFS that others did without, with what it had or with an empty disk, gets what it lacks, file by file, while
// others work. It asks the PIF Server which files it has a part of, restores what is missing and what is behind, and
// says when it has all. What cannot be restored is passed over, and tried again in the next round. Rounds follow until
// one is short. Then the node is returning: what is written comes here again, and in one more round it gets what came
// until then.
//
// Files that again and again cannot be restored hold up only themselves: they are set aside (lacking.h), and the node
// goes on without them. It is a member then, and tries them in rounds of their own.
//
//   kMember -> kSurveying -> kWaiting -> kRestoring <-> kPausing
//                            kRestoring -> kSettingAside -> kTelling
//                            kRestoring -> kTelling -> kRestoring (once more, in the new view) -> kTelling -> kMember
//   kMember -> kRestoring <-> kPausing; kRestoring -> kMember: of what a member lacks
//
// Only one that had nothing, and is to get something, waits to be asked. One thread.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "parity/file_restore.h"
#include "parity/lacking.h"

namespace pif::lfs {

class Rebuild {
 public:
  // Asks the PIF Server; kUnavailable, perhaps at once, without it. On the loop's thread.
  using Answered = std::function<void(Result<net::Packet>)>;
  using Ask = std::function<void(net::Packet, Answered)>;
  struct Progress {
    std::uint64_t files = 0, files_total = 0;
    std::uint64_t bytes = 0, bytes_total = 0;
  };

  Rebuild(Keeping& keeping, Managing& managing, Ask ask);

  [[nodiscard]] Result<net::Packet> rebuild(const Request& request, const proto::Rebuild& asked);
  [[nodiscard]] Result<net::Packet> rebuild_status(const Request& request, const proto::RebuildStatus& asked);
  // Once per turn.
  void tick();
  Time next_deadline() const;
  const Progress& progress() const { return progress_; }
  // As people are shown it; 0 of a node that is not being rebuilt.
  std::uint32_t percent() const;

 private:
  enum class Phase : std::uint8_t { kMember, kSurveying, kWaiting, kRestoring, kPausing, kSettingAside, kTelling };
  using One = proto::ListLostReply::One;
  using Page = std::function<void(proto::ListLostReply&)>;
  struct Failure {
    std::uint64_t file = 0;
    std::string path;
    Error error;
  };

  void view_changed();
  void start_over();
  void become_member();
  void begin_survey();
  void surveyed(proto::ListLostReply& page);
  void end_survey();
  void begin_round(std::uint64_t after = 0);
  void step_round();
  void take_page(proto::ListLostReply& page);
  std::uint64_t held_bytes() const;  // of files under way that are not written yet
  void start_files();
  void restored(std::uint64_t file, FileRestore::Outcome outcome, const Error& error);
  void end_round();
  void begin_lacking_round();
  void end_lacking_round();
  void pause();
  bool may_set_aside() const;
  void set_aside();
  std::uint32_t order_of(const One& file) const;
  void tell();
  // Asks for the files behind list_after_; what becomes of it if the server does not answer: it is asked again.
  void list(Page page);
  [[nodiscard]] bool is_here(std::uint64_t file);
  std::uint64_t weight(const One& file) const;
  std::uint32_t own_state() const;  // wire::ViewState, in the view that was adopted last
  std::uint32_t state() const;      // wire::RebuildState

  Keeping& keeping_;
  LfsContext& context_;
  Managing& managing_;
  const Ask ask_;

  Phase phase_ = Phase::kMember;
  bool is_asked_ = false;    // by a person, to begin
  bool was_member_ = false;  // with this root: it was away, and has what it had
  bool is_listing_ = false;
  bool is_telling_ = false;
  Time next_try_{};  // of what failed, or is said again
  std::uint64_t list_after_ = 0;
  bool has_more_ = false;
  std::vector<std::uint64_t> surveyed_;
  LackingFiles::Files told_lacking_;  // by the server, perhaps of the root before
  std::uint64_t lacking_ = 0;         // of those surveyed
  std::uint32_t lost_order_ = 0;      // while it is no member
  std::uint32_t last_state_ = 0;      // wire::ViewState, in the view before

  // Of the round.
  std::deque<One> queue_;
  struct UnderWay {
    One file;
    std::uint64_t weight = 0;
    bool is_new = false;  // there was nothing of it
    bool is_final = false;
    std::shared_ptr<bool> is_written;
  };
  std::vector<UnderWay> under_way_;
  bool is_starting_ = false;
  std::uint64_t restored_ = 0;
  std::vector<Failure> failures_;
  std::uint64_t failed_ = 0;
  std::vector<std::uint64_t> failed_files_;
  std::vector<std::uint64_t> restored_lacking_;  // that were lacking, and are not any more
  std::vector<Failure> last_failures_;           // of the round before, for who asks
  std::uint64_t last_failed_ = 0;
  std::uint64_t rounds_ = 0;
  Time round_begun_{};
  unsigned long_rounds_ = 0;       // that ended well
  unsigned barren_rounds_ = 0;     // in sequence, in which nothing was restored
  bool is_last_round_ = false;     // in the view in which rows come here again
  bool is_lacking_round_ = false;  // of a member, and of what it lacks
  LackingFiles lacking_files_{context_, ask_};

  RateLimit rate_;
  Progress progress_;
  std::uint64_t bytes_now_ = 0;  // restored since `begun_`
  Time begun_{};
  Time ended_{};
};

}  // namespace pif::lfs
