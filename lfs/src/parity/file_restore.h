// What an LFS should have of one file comes back: its rows from those who keep their parity, and the parity that it
// keeps, gathered from its members. A component that is missing is made whole; one that others went on without gets the
// rows and the parity that it lacks (file_catch_up.cc). All of it is made durable before the catalogue has it, so that
// a crash leaves what was there before. One thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "parity/keeping.h"
#include "parity/row_check.h"
#include "parity/rows_back.h"
#include "requests/managing.h"

namespace pif::lfs {

class FileRestore : public std::enable_shared_from_this<FileRestore> {
 public:
  enum class Outcome : std::uint8_t {
    kRestored,
    kNothing,  // nothing of it belongs here, all of it is here already, or it was removed
    kFailed,
  };
  enum class Purpose : std::uint8_t {
    kRebuild,  // this LFS is being rebuilt, and others do its part
    // It is a member, and has lost this component: until that is back it does not have its part.
    kMend,  // its entry cannot be read, or it ends too early
    kMake,  // there is none; it is made unless one has come since, or nothing belongs here
    kLook,  // the same, but nothing is made: kCancelled if something should be
  };
  struct Moment {
    // That all who answer must go by: then nothing is written without this LFS any more. 0: any.
    std::uint64_t view = 0;
    // Of this LFS when it last had all of the file (ViewState, FileLack); 0: not known. What others had who were lost
    // before it, it has.
    std::uint32_t lost_order = 0;
  };
  // error: of kFailed. On the loop's thread; perhaps before start() returns.
  using Done = std::function<void(Outcome, const Error& error)>;

  // All but `file` outlive what runs of it.
  FileRestore(Keeping& keeping, Managing& managing, RateLimit& rate, proto::ListLostReply::One file, Moment moment,
              Purpose purpose = Purpose::kRebuild);
  void start(Done done);
  // What had to wait for the rate goes on, if it may.
  void advance() {
    if (rows_back_) rows_back_->advance();
  }

  bool is_final() const { return moment_.view != 0; }
  // All of it is written, and waits to be durable: it holds nothing in memory.
  bool is_sealing() const { return is_sealing_; }

 private:
  [[nodiscard]] Status parse();
  std::uint32_t node_of(LfsIndex lfs) const { return file_.layout().nodes(static_cast<int>(lfs)); }
  std::optional<std::uint32_t> lack_of(LfsIndex lfs) const;  // its order, if it lacks its part of this file
  bool is_absent(LfsIndex lfs) const { return context_.view.is_absent(node_of(lfs)) || lack_of(lfs); }
  bool is_member(LfsIndex lfs) const;  // and lacks nothing of this file
  std::uint32_t order_of(LfsIndex lfs) const;
  bool was_lost_before(LfsIndex lfs) const;
  void find_length();
  std::optional<LfsIndex> who_knows_length() const;
  [[nodiscard]] Status take_own_length();
  bool never_had_any() const;
  bool is_first_alone() const;
  void ask_length(access::Requests& requests, LfsIndex lfs);
  void begin();
  bool belongs_here() const;
  bool is_deputy() const;                                                   // of LFS 0 (deputy.h)
  std::uint64_t new_bytes() const { return tail_.bytes + parity_bytes_; }   // at most
  bool knows_length() const { return keeper_->index == 0 || is_deputy(); }  // or has to, once it is restored
  void put_old_files_aside();
  void make();
  [[nodiscard]] Result<ComponentPtr> make_component();
  void begin_rows(const component::Tail& begin, Row first);
  [[nodiscard]] Status begin_parity();
  void run_parity(const MemberOptions& members, const ParityPlan& plan);
  void step();
  std::uint64_t bytes_of(Row rows, const FileLength& length) const;  // fixed records
  void seal();
  void synced(const Status& status);
  void fill_in(proto::ComponentState& state) const;
  void fail_with(Error error);
  void end(Outcome outcome, const Error& error = {});

  // ---- of one that is there ----
  void begin_catch_up(const ComponentPtr& component);
  void note_generation();
  void raise_grants(proto::ComponentState& state) const;
  [[nodiscard]] Status check_component(const ComponentPtr& component) const;
  bool has_rows() const;
  bool has_all() const;
  bool has_all_parity() const;
  bool is_of_newest(std::uint64_t generation) const { return grants_ > 0 && generation == grants_; }
  bool are_rows_newest() const;
  void look_at_parity();
  void check_rows();
  void checked(const Status& status, Row first_other);
  [[nodiscard]] Result<component::Tail> cut_tail() const;
  void drop_rows();
  void go_on();
  [[nodiscard]] Status begin_missing_parity();
  void plan_parity(std::uint64_t pap_end);
  void sync_there();
  void synced_there(const Status& status);
  void fill_in_there(proto::ComponentState& state) const;
  void release();

  Keeping& keeping_;
  LfsContext& context_;
  Managing& managing_;
  RateLimit& rate_;
  const proto::ListLostReply::One file_;
  const Moment moment_;
  const Purpose purpose_;
  Done done_;

  AbsentRowsPtr own_;             // the rows that belong here
  std::optional<Keeper> keeper_;  // the parity
  FileLength file_length_;
  std::uint64_t grants_ = 0;  // of the sequencer, or as it was noted
  proto::PublishedTickets published_tickets_;
  bool are_tickets_whole_ = false;  // they are of all of file_length_; the directory may know more
  std::uint64_t rows_ = 0;
  ComponentPtr component_;
  ComponentLock::Held parity_lock_;  // of it, while is_held_

  std::shared_ptr<component::Files> files_;
  std::shared_ptr<RowsBack> rows_back_;  // into files_
  component::Tail tail_;
  std::shared_ptr<component::ParityFiles> parity_;
  std::uint64_t parity_bytes_ = 0;

  bool is_unreadable_ = false;  // the entry of the catalogue, which stays until there is a new one

  // Of a component that is there.
  bool is_there_ = false;
  bool is_held_ = false;   // nothing else changes it meanwhile
  component::Tail begin_;  // behind this rows are written; all in front of it are published, and right
  Row checked_ = 0;        // rows in front of it are what is published, whoever wrote them
  Row first_row_ = 0;      // that is fetched; of fixed records perhaps one that has become longer
  bool needs_parity_ = false;
  bool was_parity_seen_ = false;        // all of it, though more was published in its generation
  std::optional<std::size_t> without_;  // this member's rows have frames here, as others had lost it
  std::uint64_t pap_end_ = 0;           // of frames that were there

  bool is_begun_ = false;  // rows and parity come
  unsigned errands_ = 0;   // rows and parity under way
  bool is_sealing_ = false;
  std::optional<Error> failure_;
};

// About how many bytes of a file are on LFS `index` of it, parity too.
std::uint64_t bytes_on(const parity::Layout& layout, LfsIndex index, const Format& format, const FileLength& length);

}  // namespace pif::lfs
