// An LFS that others did without, with what it had or with an empty disk, gets what it lacks, file by file, while
// others work. It asks the PIF Server which files it has a part of, restores what is missing and what is behind, and
// says when it has all. It passes over files that cannot be restored, and tries them again in the next round. Rounds
// follow until one is short. Then the node is returning: what is written comes here again, and in one more round it
// gets what came until then.
//
// Files that again and again cannot be restored hold up only themselves: they are set aside (lacking.h), and the node
// goes on without them. It is a member then, and tries them in rounds of their own.
//
// Only one that had nothing, and is to get something, waits to be asked. All of it is on one fiber (come_back()), and
// each file on one of its own. One thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rebuild/file_restore.h"
#include "rebuild/lacking.h"
#include "requests/holding.h"

namespace pif::lfs {

class Rebuild final : public ViewWatcher, public RebuildProgress {
 public:
  Rebuild(Keeping& keeping, Managing& managing, Reporting& reporting, const Holding& holding);

  [[nodiscard]] Status rebuild(const Request& request, const proto::Rebuild& asked);
  [[nodiscard]] Result<net::Packet> rebuild_status(const Request& request, const proto::RebuildStatus& asked);
  std::uint32_t percent() const override;

 private:
  // As people are shown it.
  enum class Phase : std::uint8_t { kMember, kSurveying, kWaiting, kRestoring, kPausing, kSettingAside, kTelling };
  enum class Kind : std::uint8_t {
    kCatchUp,  // of an LFS that others do without
    kLast,     // the same in the view in which rows come here again
    kLacking,  // of a member, and of what it lacks
  };
  using One = proto::ListLostReply::One;
  struct Failure {
    std::uint64_t file = 0;
    std::string path;
    Error error;
  };
  struct Round {
    std::deque<One> queue;
    bool is_listing = true;
    unsigned under_way = 0;
    std::uint64_t held = 0;               // about what those under way have in memory that is not written yet
    std::vector<std::uint64_t> surveyed;  // all that were listed
    std::uint64_t restored = 0;
    std::uint64_t failed = 0;
    std::vector<std::uint64_t> failed_files;
    std::vector<Failure> failures;                // the first of them, for who asks
    std::vector<std::uint64_t> restored_lacking;  // that were lacking, and are not any more
    bool is_short = false;                        // it restored little
  };
  using RoundPtr = std::shared_ptr<Round>;

  void view_adopted() override;
  std::uint32_t own_state() const;  // wire::ViewState, in the view that was adopted last
  std::uint32_t state() const;      // wire::RebuildState
  bool is_incomplete() const;       // others do without it, or it is returning
  bool lacks_files() const;         // of a member
  bool may_begin() const;           // anything new; what is under way comes to its end
  void hear_when_it_may();          // on a fiber of its own

  // ---- on its fiber; false, or null: it is over, for it is a member now, or lost again ----
  void serve();
  bool come_back();
  bool restore_lacking();
  void become_member();
  bool survey();
  bool count(const One& file);
  bool restore_all();
  bool pause();
  bool may_set_aside(const Round& round) const;
  bool set_aside(const Round& round);
  bool tell_server(std::uint32_t view_state);
  bool ready();
  bool wait_until(Time until);
  // Gives `take` the files behind that one, page by page.
  bool list(std::uint64_t after, const std::function<void(proto::ListLostReply&)>& take);

  // ---- one round: many files at once, in bounded memory ----
  RoundPtr run_round(std::uint64_t after = 0);
  // On a fiber each, which may outlive who began them.
  void list_files(const RoundPtr& kept, std::uint64_t after);
  void take_page(Round& round, proto::ListLostReply& page) const;
  Time start_files(const RoundPtr& round);
  void restore(const RoundPtr& kept, const One& file, std::uint64_t held, bool is_new);
  void note(Round& round, const One& file, const Result<FileRestore::Outcome>& outcome, bool is_new);
  std::uint32_t order_of(const One& file) const;
  [[nodiscard]] bool is_here(std::uint64_t file);
  std::uint64_t weight(const One& file) const;

  Keeping& keeping_;
  LfsContext& context_;
  Managing& managing_;
  Reporting& server_;
  const Holding& holding_;
  daemon::Event news_;  // whatever its fiber may wait for

  bool is_asked_ = false;         // by a person, to begin
  bool is_hurried_ = false;       // by a person: no pause
  std::uint32_t lost_order_ = 0;  // while it is no member
  std::uint32_t last_state_ = 0;  // wire::ViewState, in the view before

  Phase phase_ = Phase::kMember;
  Kind kind_ = Kind::kCatchUp;
  bool is_over_ = true;
  bool is_lost_again_ = false;
  unsigned barren_rounds_ = 0;          // in sequence, in which nothing was restored
  std::vector<Failure> last_failures_;  // of the last round, for who asks
  std::uint64_t last_failed_ = 0;
  std::uint64_t rounds_ = 0;
  LackingFiles lacking_files_{context_, server_};

  RateLimit rate_;
  struct Progress {
    std::uint64_t files = 0, files_total = 0;
    std::uint64_t bytes = 0, bytes_total = 0;
  } progress_;
  std::uint64_t bytes_now_ = 0;  // restored since `begun_`
  Time begun_{};
  Time ended_{};
};

}  // namespace pif::lfs
