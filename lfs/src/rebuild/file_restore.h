// Restores what an LFS should have of one file: its rows from those who keep their parity, and the parity that it
// keeps, gathered from its members. A component that is missing is made whole; one that others went on without gets the
// rows and the parity that it lacks (file_catch_up.cc). All of it is made durable before the catalogue has it, so that
// a crash leaves what was there before. One thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "parity/keeping.h"
#include "rebuild/row_check.h"
#include "rebuild/rows_back.h"
#include "requests/managing.h"

namespace pif::lfs {

class FileRestore {
 public:
  enum class Outcome : std::uint8_t {
    kRestored,
    kNothing,  // nothing of it belongs here, all of it is here already, or it was removed
  };
  enum class Purpose : std::uint8_t {
    kRebuild,  // this LFS is being rebuilt, and others do its part
    // It is a member, and has lost this component: until that is back it does not have its part.
    kMend,  // its entry cannot be read, or it ends too early
    kMake,  // there is none; it is made unless one has come since, or nothing belongs here
    kLook,  // the same, but nothing is made: kCancelled if something should be
  };
  struct Moment {
    // All who answer must go by this view, in which nothing is written without this LFS any more. 0: any.
    std::uint64_t view = 0;
    // The order of loss of this LFS when it last had all of the file (ViewState, FileLack); 0: not known. It has all
    // that LFSs had which were lost before it.
    std::uint32_t lost_order = 0;
  };
  using Written = std::function<void()>;

  // All but `file` outlive it. written: is called when all of it is written and waits to be durable, and holds nothing
  // in memory; may be empty.
  FileRestore(Keeping& keeping, Managing& managing, RateLimit& rate, proto::ListLostReply::One file, Moment moment,
              Purpose purpose = Purpose::kRebuild, Written written = {});
  // kRestored, kNothing, or why it failed. Called by a fiber, once.
  [[nodiscard]] Result<Outcome> run();

 private:
  // The rows and the parity that are to come.
  struct Wanted {
    std::shared_ptr<component::Files> files;  // the rows go into these
    component::Tail begin;                    // of what is in them
    Row first = 0;                            // that is fetched; none behind the last one
    std::shared_ptr<component::ParityFiles> parity;
    std::shared_ptr<ParityRun> parity_run;  // null: no parity is to be made
    std::uint64_t parity_bytes = 0;         // about
  };

  [[nodiscard]] Result<Outcome> restore();
  [[nodiscard]] Status parse();
  std::uint32_t node_of(LfsIndex lfs) const { return file_.layout().nodes(static_cast<int>(lfs)); }
  std::optional<std::uint32_t> lack_of(LfsIndex lfs) const;  // its order, if it lacks its part of this file
  bool is_absent(LfsIndex lfs) const { return context_.view.is_absent(node_of(lfs)) || lack_of(lfs); }
  bool is_member(LfsIndex lfs) const;  // and lacks nothing of this file
  std::uint32_t order_of(LfsIndex lfs) const;
  bool was_lost_before(LfsIndex lfs) const;
  // Never shorter than the directory knows; and what else others know of it.
  [[nodiscard]] Status find_length();
  std::optional<LfsIndex> who_knows_length() const;
  [[nodiscard]] Status ask_length(LfsIndex lfs);
  [[nodiscard]] Status take_own_length();
  bool never_had_any() const;
  bool is_first_alone() const;
  bool belongs_here() const;
  bool is_final() const { return moment_.view != 0; }
  bool is_deputy() const;                                                   // of LFS 0 (deputy.h)
  bool knows_length() const { return keeper_->index == 0 || is_deputy(); }  // or has to, once it is restored
  std::uint64_t bytes_of(Row rows, const FileLength& length) const;         // fixed records
  MemberOptions member_options() const;
  std::shared_ptr<ParityRun> parity_run(const MemberOptions& members, const ParityPlan& plan,
                                        std::shared_ptr<component::ParityFiles> files);
  // Rows and parity at the same time. The tail of the component then, which is as long as the file says.
  [[nodiscard]] Result<component::Tail> fetch(const ComponentPtr& component, const Wanted& wanted);
  void say_written() const;

  // ---- of one that is missing ----
  [[nodiscard]] Status put_old_files_aside();
  [[nodiscard]] Result<Outcome> make();
  [[nodiscard]] Result<ComponentPtr> make_component();
  [[nodiscard]] Status fill(const ComponentPtr& component);
  [[nodiscard]] Result<Wanted> all_of(Component& component);
  void fill_in(proto::ComponentState& state, bool has_parity) const;

  // ---- of one that is there (file_catch_up.cc) ----
  struct CatchUp {
    Row checked = 0;    // rows in front of it are what is published, whoever wrote them
    Row first_row = 0;  // that is fetched; of fixed records perhaps one that has become longer
    // Behind this rows are written; all in front of it are published, and right.
    component::Tail begin;
    bool needs_parity = false;
    bool was_parity_seen = false;        // all of it, though more was published in its generation
    std::optional<std::size_t> without;  // this member's rows have frames here, as others had lost it
    std::uint64_t pap_end = 0;           // of frames that were there
  };
  [[nodiscard]] Result<Outcome> catch_up(const ComponentPtr& component);
  [[nodiscard]] Result<Outcome> note_generation(const ComponentPtr& component);
  void raise_grants(proto::ComponentState& state) const;
  [[nodiscard]] Status check_component(const ComponentPtr& component) const;
  bool has_rows(const proto::ComponentState& state) const;
  bool has_all(const proto::ComponentState& state) const;
  bool has_all_parity(const proto::ComponentState& state) const;
  bool is_of_newest(std::uint64_t generation) const { return grants_ > 0 && generation == grants_; }
  bool are_rows_newest(const proto::ComponentState& state) const;
  [[nodiscard]] Result<bool> look_at_parity(const ComponentPtr& component);
  [[nodiscard]] Status check_rows(const ComponentPtr& component, CatchUp& job);
  [[nodiscard]] Result<Row> first_other_row(const ComponentPtr& component, Row checked);
  [[nodiscard]] Result<component::Tail> cut_tail(const Component& component, Row first_row) const;
  [[nodiscard]] Result<std::optional<std::size_t>> member_to_leave_out() const;
  [[nodiscard]] Status drop_rows(const ComponentPtr& component, const CatchUp& job);
  [[nodiscard]] Status plan_parity(const ComponentPtr& component, CatchUp& job, Wanted& wanted);
  ParityPlan plan_of(const proto::ComponentState& state, const CatchUp& job) const;
  [[nodiscard]] Status make_durable(const ComponentPtr& component, const Wanted& wanted, const component::Tail& tail);
  void fill_in_there(proto::ComponentState& state, const CatchUp& job, const component::Tail& tail) const;

  Keeping& keeping_;
  LfsContext& context_;
  Managing& managing_;
  RateLimit& rate_;
  const proto::ListLostReply::One file_;
  const Moment moment_;
  const Purpose purpose_;
  const Written written_;

  AbsentRowsPtr own_;             // the rows that belong here
  std::optional<Keeper> keeper_;  // the parity
  // The answers of other LFSs about the file.
  FileLength file_length_;
  std::uint64_t grants_ = 0;  // of the sequencer, or as it was noted
  proto::PublishedTickets published_tickets_;
  bool are_tickets_whole_ = false;  // they are of all of file_length_; the directory may know more
  std::uint64_t rows_ = 0;

  bool is_unreadable_ = false;  // the entry of the catalogue, which stays until there is a new one
};

// About how many bytes of a file are on LFS `index` of it, parity too.
std::uint64_t bytes_on(const parity::Layout& layout, LfsIndex index, const Format& format, const FileLength& length);

}  // namespace pif::lfs
