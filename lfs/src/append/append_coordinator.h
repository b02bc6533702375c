// The sequencers of the files whose appends this LFS sequences (Reserve, AppendDone, AppendCancel): as LFS 0, or, of a
// file with parity whose LFS 0 is absent, as its deputy. The decisions are Sequencer's. One thread.
//
// Each file has a fiber (serve()), which settles, publishes and tells the deputy, one after the other. A view ends all
// that is under way but a commit: from then on another fiber serves the file.
//
// Rules for files with parity: (1) Nothing is granted or published before the sequencer is settled: it goes by the
// longest length that anybody was shown, and its generation is above all that were granted. A view that is adopted
// unsettles all. (2) LFS 0 publishes what the deputy has noted, the deputy what is durable here as noted and as
// published; LFS 0 publishes alone while the deputy is absent. (3) A length that was sent to the deputy (File::sent) is
// dropped only after the deputy answers that it lacks it, and takes no older notes any more. (4) A view cancels all
// grants but those. (5) kRetry to an AppendDone is final: it is not published, and will not be. kOldView says nothing:
// the sequencer of the newer view knows. (6) LFS 0 sends to the deputy what it has published, with the next note or
// soon after: before that nobody but LFS 0, or who acts for it, may show it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "append/noting.h"
#include "append/sequencer.h"
#include "context/lfs_context.h"
#include "store/published_tickets.h"

namespace pif::lfs {

class AppendCoordinator final : public ViewWatcher {
 public:
  // peers: lengths of files with parity are sent to the deputy (noting.h). Both outlive it.
  AppendCoordinator(LfsContext& context, Peers& peers);

  [[nodiscard]] Result<net::Packet> reserve(const Request& request, const proto::Reserve& asked);
  // Returns when the range is published, or will not be.
  [[nodiscard]] Status append_done(const Request& request, const proto::AppendDone& asked);
  [[nodiscard]] Status append_cancel(const Request& request, const proto::AppendCancel& asked);
  // Gives up all that was reserved over this connection, which has ended.
  void drop_peer(net::PeerId peer);
  // The file has parity, and this LFS sequences it. kRetry (kOldView): its length may grow without another range, as a
  // length is being published, or the deputy has not said yet which one it has noted.
  [[nodiscard]] Status check_settled(const ComponentPtr& component);
  // Whether a length is being published, or was sent to the deputy, which has not answered.
  bool is_publishing(FileId file) const;
  // The file has parity. Sends the published length to the deputy soon, unless the deputy is known to have it.
  void tell_later(const ComponentPtr& component);
  // Whether no range is under way; check_settled() has succeeded. Then rows behind the file's length are nobody's, and
  // later ranges have a newer generation than these rows.
  bool is_at_rest(FileId file) const;

 private:
  using Publication = Sequencer::Publication;
  static constexpr Duration kForget = std::chrono::seconds(60);  // a sequencer that nobody uses
  // An AppendDone, on the stack of its fiber.
  struct Finished {
    std::uint64_t ticket = 0;
    std::uint64_t generation = 0;
    daemon::Fibers::WaitId wait{};
    std::optional<Status> result{};
  };
  enum class Publishing : std::uint8_t { kNothing, kNoting, kCommitting };
  struct File {
    ComponentPtr component;
    Sequencer sequencer;
    std::unordered_map<std::uint64_t, std::vector<Finished*>> waiting;  // by ticket: AppendDone to answer
    std::uint64_t first_generation = 0;
    std::uint64_t durable_generation = 0;
    Time used;
    std::uint64_t period = 0;       // from view to view: what was asked for in an earlier one does not count
    bool is_over = false;           // dropped
    daemon::Fibers::WaitId wait{};  // of who serves it, when there is nothing to do
    Publishing publishing = Publishing::kNothing;
    std::optional<Publication> sent;  // to be noted or committed, and not known to be published
    Publication start{};              // what the sequencer began with
    bool is_acting = true;            // not: dropped when nothing is being committed
    bool is_settled = false;          // without parity from the beginning
    bool is_settling = false;
    bool is_settle_asked = false;        // by somebody who does not wait for it
    Time note_again{};                   // not before: the deputy did not answer
    Time tell_at = kNever;               // the deputy what is published
    bool is_told = true;                 // the deputy is, of all that is published here
    std::optional<Error> trouble{};      // why it is not settled yet
    std::vector<Finished*> unsettled{};  // wait for that

    // Whether somebody waits until the file is settled: an AppendDone, a length that was sent to be noted, or the
    // deputy.
    bool wants_to_settle() const { return !is_settled && (!unsettled.empty() || sent || !is_told); }
    // It may be forgotten.
    bool is_quiet() const;
    bool is_deputy() const { return component->state.shape().index() != 0; }
    bool has_parity() const { return keeps_parity(component->state.shape()); }
  };

  using FilePtr = std::shared_ptr<File>;

  [[nodiscard]] Result<ComponentPtr> component_of(const Request& request);
  // Whether this LFS sequences the file, whose layout it is. kInvalid, kUnavailable, kOldView; kRetry: not yet.
  [[nodiscard]] Status check_acting(const proto::ComponentShape& shape, const parity::Layout& layout,
                                    std::uint64_t view);
  // The length from which a new sequencer goes on. known: the directory's. kStaleNode: this LFS knows less than the
  // directory. kInvalid: files of this format have no such length.
  [[nodiscard]] Result<Publication> start_of(const Component& component, const FileLength& known) const;
  [[nodiscard]] Result<FilePtr> ready_file(const Request& request, const proto::Reserve& asked);
  const FilePtr& make_file(const ComponentPtr& component, const Publication& start);
  // Null: there is none.
  FilePtr find(FileId file) const;
  // Not dropped, and no view came since.
  static bool is_current(const File& file, std::uint64_t period) { return !file.is_over && file.period == period; }
  std::uint64_t first_generation(const proto::ComponentState& state) const;
  [[nodiscard]] Status check_ready(File& file);
  // The grant's generation is durable before anybody gets a range of it.
  [[nodiscard]] Status begin_generation(const FilePtr& file, const Sequencer::Grant& granted);
  // By whoever it was, as far as this LFS knows.
  [[nodiscard]] static WasPublished was_published(const proto::ComponentState& state, const File* file,
                                                  const Finished& finished);
  // It has its result, or is among those that wait: for the sequencer to be settled, or for the publication.
  void take(File& file, Finished& finished);
  void finish(File& file, Finished& finished);
  [[nodiscard]] Status wait_for_result(const FilePtr& file, Finished& finished, Time deadline);
  void answer(Finished& finished, Status result);

  // The fiber of a file in a period.
  void serve(const FilePtr& file, std::uint64_t period);
  // The file's fiber looks again.
  void look_again(File& file) { context_.fibers.wake(file.wait); }
  void wait_for_work(File& file);
  void publish(const FilePtr& file, std::uint64_t period);
  // False: the deputy has not noted it, or the period is over.
  bool note(const FilePtr& file, std::uint64_t period, const Publication& publication);
  void published(File& file, std::uint64_t period, const Publication& publication);
  void tell(const FilePtr& file, std::uint64_t period);
  // Cancels what has lapsed, of all files, as long as this object lives.
  void watch();
  void cancel(File& file, const std::vector<std::uint64_t>& tickets, const Error& why);
  void drop(File& file, const Error& why);

  // ---- settling.cc ----
  File& settling_file(const ComponentPtr& component);
  void view_adopted() override;
  void begin_period(File& file);
  void end_acting(File& file);
  std::uint32_t deputy_state(const Component& component) const;  // in the view of this LFS
  bool has_deputy(const File& file) const;                       // that takes notes
  // Settles it if nobody has to be asked for that, or soon.
  void settle_soon(File& file);
  bool may_settle(const File& file) const;
  void settle(const FilePtr& file, std::uint64_t period);
  // A length that was sent to be noted, and stays.
  std::optional<Publication> sent_to_publish(const File& file) const;
  // The publication that this LFS takes from the deputy's answer; nothing if the deputy knows no more than this LFS.
  [[nodiscard]] Result<std::optional<Publication>> news_of(const File& file, const Noting::Noted& said) const;
  // False: it ends here.
  bool settle_at(const FilePtr& file, std::uint64_t period, const Publication& publication,
                 const proto::PublishedTickets& tickets);
  void settled(File& file);
  void not_settled(File& file, const Error& why);
  void answer_unsettled(File& file, const Error& why);
  Error old_view() const;

  LfsContext& context_;
  Noting noting_;
  std::unordered_map<std::uint64_t, FilePtr> files_;
  std::uint64_t last_period_ = 0;
  daemon::Event grants_;         // have changed
  Time watched_until_ = kNever;  // nothing lapses before
};

void set_published(proto::ComponentState& state, const Sequencer::Publication& publication);
// Sets the length that was noted at a deputy.
void set_noted(proto::ComponentState& state, const Sequencer::Publication& publication);
Sequencer::Publication publication_of(const proto::NotedLength& noted);
Sequencer::Publication publication_of(const proto::ComponentState& state);
bool is_longer(const FileLength& a, const FileLength& b);

}  // namespace pif::lfs
