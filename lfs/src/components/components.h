// The components of this LFS: what is known of each, and a bounded number of open files. The catalogue is the truth of
// sealed and committed ones; an open one (being written) is known here only.
// One thread. Work away from the loop takes a component's `files` along, which are then open until it has ended.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "components/component_lock.h"
#include "components/recent_files.h"
#include "pif/base/clock.h"
#include "pif/base/timers.h"
#include "pif/component/component.h"
#include "pif/component/extents.h"
#include "pif/component/parity.h"
#include "pif/kv/store.h"
#include "store/convert.h"
#include "store/numbers.h"
#include "store/older.h"

namespace pif::lfs {

struct Component {
  // fibers outlives it.
  Component(daemon::Fibers& fibers, const component::Shape& shape_in, parity::Layout layout_in,
            proto::ComponentState state_in)
      : file(shape_in.file),
        state(std::move(state_in)),
        shape(shape_in),
        layout(std::move(layout_in)),
        older(is_older(state.shape().layout())),
        applied(state.log_applied()),
        changed(fibers) {}

  const FileId file;
  proto::ComponentState state;  // as in the catalogue, but for sums of a tail that the redo log has newer
  const component::Shape shape;
  const parity::Layout layout;
  const bool older;  // made before parity was kept: read from a dense copy (older.h), which `files` and `reader` are of
  bool catalogued = false;

  std::shared_ptr<component::Files> files;         // open; work away from the loop may have them longer
  std::optional<component::OpenMode> mode;         // of `files`; nothing: closed
  std::optional<component::Reader> reader;         // over `files`, up to the state's tail
  std::optional<component::Writer> writer;         // over `files`
  std::list<Component*>::iterator place;           // among those with open files
  std::shared_ptr<component::ParityFiles> parity;  // open, for writing; only while `files` are, or work has them
  std::optional<component::FrameIndex> frames;     // what .pap has; nothing: not read yet
  std::uint64_t frame_writes = 0;                  // how often something was written there
  std::uint64_t frames_erased = 0;  // frames of older generations behind the base of this one were erased
  std::optional<Time> fold_until;   // a fiber folds frames, and tries to until then: it has the lock for each try only

  bool by_append = false;      // made by an append to a committed file that had no rows here, and not asked about since
  bool scattered = false;      // filled in pieces: it has no sums before it is sealed
  std::uint64_t reserved = 0;  // of such a one: bytes of .dat that have room, with their sums
  component::WritebackBehind writeback;  // of what was written into it here
  bool given_out = false;  // somebody got its descriptors for writing: only then can others than this process write it
  bool dirty = false;  // has entries in the redo log whose in-place data may not be durable; the files that they went
                       // through stay open
  std::uint64_t applied;         // number of the last log entry that is in its in-place data, or failed
  std::uint64_t changes = 0;     // of what is inside the tail, so that work away from the loop sees whether it met one
  std::optional<Error> failure;  // what its files hold is unknown until the LFS is started again
  ComponentLock lock;            // what is under way
  daemon::Event changed;         // it failed or was removed, or an append has ended: those who wait look again

  bool is_open() const { return state.state() == kOpen; }
  // Not in the catalogue any more, or never was; its files go. Nothing leaves this.
  bool is_removed() const { return is_removed_; }
  // Complete and in service: it can be read, and what changes it may begin.
  bool is_whole() const { return !is_open() && !is_removed_ && !failure; }
  // Before it can be read, Components::adopt_copy().
  bool lacks_copy() const { return older && !mode; }
  // Its state as others are to know it: that of the dense copy, of an older one.
  proto::ComponentState shown() const;
  // Those who wait for it look again.
  void set_removed();
  void set_failed(Error why);
  // Its file was committed once, in this run or another: it cannot have been given up while it was created.
  void make_by_append() {
    by_append = true;
    state.clear_run();
  }
  bool is_idle() const {
    return catalogued && is_whole() && lock.is_free() && !dirty && applied <= state.log_applied();
  }

 private:
  bool is_removed_ = false;
};
using ComponentPtr = std::shared_ptr<Component>;

// After a wait. kStaleFile: it was removed. kIo: it has failed.
[[nodiscard]] Status check_there(const Component& component);
// Waits in turn for the component's lock, called by a fiber. The component outlives what it gives. kRetry: too many
// wait, or it did not come until then. kStaleFile, kIo: as check_there().
[[nodiscard]] Result<ComponentLock::Held> lock_component(daemon::Fibers& fibers, Component& component, Mode mode,
                                                         Time until);

// The lock of a component, which outlives it.
struct LockedComponent {
  ComponentPtr component;
  ComponentLock::Held held;
};

class Components {
 public:
  static constexpr std::size_t kOpenFilesMax = 512;       // components with open files that nobody uses at the moment
  static constexpr std::size_t kWritersMax = 512;         // components being written by message
  static constexpr std::size_t kKnownMax = 16384;         // components in memory, beyond those that must be
  static constexpr Duration kAskAfter = kUnsettledAfter;  // without activity, before the server is asked

  struct Totals {
    std::uint64_t components = 0;
    std::uint64_t bytes = 0;
  };

  // All outlive it, and fibers end first: one of them closes what is too much.
  Components(std::string root, component::Storage& storage, kv::Store& catalogue, Numbers& numbers,
             daemon::Fibers& fibers);

  // Those of files that the server did not know: their files stay, and nobody may make one of that id.
  bool is_quarantined(FileId file) const { return quarantined_.contains(file.value); }
  std::size_t quarantined_count() const { return quarantined_.size(); }
  void went_into_quarantine(FileId file) { quarantined_.insert(file.value); }
  void left_quarantine(FileId file) { quarantined_.erase(file.value); }
  // One whose entry could not be read has a new one.
  void forget_unreadable() { --totals_.components; }
  // It is in the catalogue again.
  void came_back(const proto::ComponentState& state);
  // The server is asked about every one (an LFS that was taken back though it had lost changes).
  [[nodiscard]] Status ask_about_all(Time now);
  // Reads the catalogue: totals, and which components are sealed but not known to be committed.
  [[nodiscard]] Status load(Time now);
  // kNotFound; kStaleFile if it was removed; kIo if it failed.
  [[nodiscard]] Result<ComponentPtr> find(FileId file);
  // Whether it is here, without looking into its failures.
  ComponentPtr find_in_memory(FileId file) const;
  // Makes its files, state open. shape: checked by the caller. kRetry while files of that name are being removed;
  // kUnsupported: an older one would be made.
  [[nodiscard]] Result<ComponentPtr> create(const proto::ComponentShape& shape, std::uint64_t epoch, Time now);

  // Opens the files if they are not open with at least in this mode; afterwards `reader` is there. For an older one:
  // kRetry if it lacks its copy, kUnsupported for writing.
  [[nodiscard]] Status open_files(Component& component, component::OpenMode mode);
  [[nodiscard]] Status open_writer(Component& component);
  // Its parity's files, and the others too; kCreate makes what is missing of both.
  [[nodiscard]] Status open_parity(Component& component, component::OpenMode mode);
  void drop_writer(Component& component);
  void close_files(Component& component);
  // Whether its files can be closed: the catalogue knows all that they hold, and nobody uses them at the moment.
  static bool is_spare(const Component& component);
  // It is read from this from now on, until its files are closed. Only of one that lacks its copy.
  void adopt_copy(Component& component, DenseCopy copy);
  // Closes dense copies that nobody needs at the moment: says whether there were any.
  bool close_spare_copies();
  // Closes the longest unused files over the limit, dense copies last, and forgets components over theirs. It is called
  // when a limit is passed, and all that goes on at the moment waits.
  void evict();
  // An unsettled component is in use: it is not asked about for a while.
  void touch(Component& component, Time now);

  // `state` is in the catalogue now.
  void set_state(Component& component, const proto::ComponentState& state);
  // It is no longer in the catalogue (or never was): forgets it. for_good: requests for it hear that it is gone.
  void forget(Component& component, bool for_good = true);
  // Another run of the server: what was gone for good, or committed, may not be so any more.
  void forget_tombstones();
  // It was gone for good once, in this or the last run of the server. A file that was still being created then does not
  // come back.
  bool was_removed(FileId file) const { return tombstones_.contains(file) || former_.contains(file); }
  // Its file was committed, and has no component here: what is still on its way to one does not count any more.
  void note_committed_without(FileId file) { without_.add(file); }
  bool was_committed_without(FileId file) const { return without_.contains(file); }
  // The files of a forgotten one are being removed away from the loop: no other may take their names before that has
  // ended.
  void set_removing(FileId file, bool is_removing);
  // Nothing more is served of it until the LFS is started again.
  void set_failed(Component& component, const Error& why);

  std::string stem(FileId file) const { return component::stem(root_, file); }
  std::string folder(FileId file) const;
  component::Storage& storage() { return storage_; }
  kv::Store& catalogue() { return catalogue_; }
  const std::string& root() const { return root_; }
  const Totals& totals() const { return totals_; }
  // Open and sealed components, and those that appends made, with the time from which on the server is asked what
  // became of them.
  std::map<std::uint64_t, Time>& unsettled() { return unsettled_; }

 private:
  [[nodiscard]] Result<ComponentPtr> add(proto::ComponentState state);
  // kUnsupported: of an older component.
  [[nodiscard]] static Status check_form(const proto::ComponentShape& shape);
  // On a fiber of its own.
  void keep_few();
  void evict_files(bool copies);
  // Its files are open, and it was used last.
  void add_to_open(Component& component);
  // The one that was not used for longest; false if all are in use.
  bool close_spare_writer();

  std::string root_;
  component::Storage& storage_;
  kv::Store& catalogue_;
  Numbers& numbers_;
  daemon::Fibers& fibers_;
  daemon::Event crowded_;  // a limit is passed
  std::unordered_map<std::uint64_t, ComponentPtr> all_;
  std::list<Component*> with_files_;  // longest unused first
  RecentFiles tombstones_;
  RecentFiles former_;   // tombstones of the run before
  RecentFiles without_;  // committed without a component here
  std::unordered_set<std::uint64_t> removing_;
  std::unordered_set<std::uint64_t> quarantined_;
  std::map<std::uint64_t, Time> unsettled_;
  std::size_t writers_ = 0;
  std::size_t copies_ = 0;  // dense ones, of components with open files
  Totals totals_;
};

// The tail that a component would have if it ended after `rows` rows of `bytes` bytes in all. reader: of at least that.
[[nodiscard]] Result<component::Tail> tail_at(const component::Shape& shape, const component::Reader& reader,
                                              std::uint64_t rows, std::uint64_t bytes);

}  // namespace pif::lfs
