// Overwriting committed rows, or pieces, through the redo log. Each request waits in a queue; one fiber (serve()) makes
// the batches. Requests of one turn, and those that come while the log is being synced, share a batch: images of whole
// new chunks are appended to the log, the log is synced away from the loop, then the images go to their in-place data
// (page cache) and the requests are answered. Between batches the same fiber empties the log when it is half full.
//
// Rules: (1) an image is computed from what is acknowledged before it: in-place data, and earlier images of its own
// batch. A batch has one image of a chunk of fixed records, which all its requests change (images.h). (2) While a
// component has images under way no rows are appended to it, and the other way round (component_lock.h). (3) The log
// starts over only when all in-place data are durable and the catalogue has the sums of their tails. (4) Overwrites of
// one component that change the same chunk begin in the order in which they came. No component waits for what another
// one has to read: the executor first reads what an image needs and is not in memory. The overwrite then joins a later
// batch, in front of all of its component that came later. When a batch is full, those behind join it whose chunks it
// has already, or nearly all of them: several who write pieces that lie between one another's so log each chunk once,
// though one of them is ahead. (5) A request is done once, however often it comes: the log names those of each batch,
// and keeps them for a while when it starts over. One that comes again while the first is under way is answered with
// it. (6) Only published rows are changed: what LFS 0 has to be asked for stays in the queue until then.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>

#include "context/lfs_context.h"
#include "context/request_dedup.h"
#include "overwrite/images.h"
#include "overwrite/published_rows.h"
#include "requests/holding.h"

namespace pif::lfs {

class Overwriting {
 public:
  // All outlive it.
  Overwriting(LfsContext& context, Peers& peers, Holding& holding);

  [[nodiscard]] Status overwrite(const Request& request, const proto::Overwrite& asked);
  [[nodiscard]] Status overwrite_pieces(const Request& request, const proto::OverwritePieces& asked);
  // Checkpoints the log. Returns when every entry of it is in place.
  [[nodiscard]] Status flush(const Request& request, const proto::Flush& asked);
  // The log is being written or emptied.
  bool busy() const { return is_busy_; }
  // At the start: these were done by an earlier run.
  void remember(const LoggedRequests& requests) { dedup_.load(requests, context_.now()); }

 private:
  // The change that is asked for: rows, a part of one row, or pieces.
  struct Asked {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint32_t within = 0;
    std::uint32_t bytes = 0;      // with `within` or alone: of one record
    std::uint32_t run_bytes = 0;  // of pieces, which the rest says nothing of
  };
  // The reason why it cannot join a batch yet. Its own fiber clears that.
  enum class Hurdle : std::uint8_t {
    kNone,
    kUnpublished,  // LFS 0 is asked first
    kCold,         // what its image needs of chunks that change in part is not in memory
    kBusy,         // others have its component's lock
  };
  // One request, on the stack of its fiber.
  struct Waiting {
    RequestKey key;
    ComponentPtr component;
    Asked asked;
    std::span<const std::byte> body;
    Time deadline;
    ComponentLock::Held held{};         // from the first try to join a batch on
    std::vector<ChunkRange> touched{};  // of fixed records
    std::uint64_t rows_end = 0;
    Hurdle hurdle = Hurdle::kNone;
    bool is_warm = false;   // what its image needs was read
    bool is_taken = false;  // out of the queue: in a batch, or answered
    daemon::Fibers::WaitId wait{};
    std::optional<Status> result{};

    std::uint64_t bytes() const { return body.size() + touched.size() * sizeof(ChunkRange); }
  };
  struct Batch {
    BatchImages images;
    std::vector<Waiting*> changes;  // whom to answer when the batch is in its place
    std::set<RequestKey> keys;      // of these
  };
  // The requests that stay in the queue while a batch gathers.
  struct Passed {
    std::set<std::uint64_t> files;       // whose overwrites cannot begin
    std::vector<const Waiting*> beyond;  // for which the batch has no room
  };

  // ---- one request ----
  [[nodiscard]] Status take(const Request& request, FileId file, const Asked& asked);
  [[nodiscard]] Status check_room(const Request& request) const;
  [[nodiscard]] Result<ComponentPtr> check_component(const Request& request, FileId file);
  // kOutcomeUnknown; true: it was done before.
  [[nodiscard]] Result<bool> is_done(const RequestKey& key) const;
  // Which chunks and rows change, as far as that is known without the disk.
  [[nodiscard]] static Status look_at(Waiting& waiting);
  [[nodiscard]] Status wait_in_queue(Waiting& waiting);
  [[nodiscard]] Status clear_hurdle(Waiting& waiting);
  // Reads what its image needs, so that it is in memory.
  void warm(Waiting& waiting);
  // kEndOfFile: of a component with so many published rows.
  [[nodiscard]] static Status check_published(const Waiting& waiting, std::uint64_t rows);
  // These two know nothing of the loop. With a reader that does not wait for the disk: kBusy.
  [[nodiscard]] static Result<OverwriteTarget> target_of(const Waiting& waiting, const component::Reader& reader);
  [[nodiscard]] static Result<OverwriteTarget> rows_of(const Waiting& waiting, const component::Reader& reader);

  // ---- the fiber that has the log ----
  void serve();
  void wait_while_held();
  // All in the queue give back their locks, so that nobody waits for the log who could go on.
  void unlock_queue();
  // Something may be able to begin.
  void look_again();
  void refuse_all();
  void leave_queue(const Waiting& waiting);
  void answer(Waiting& waiting, Status result);

  // Gathers a batch, logs it and puts it in place. False: nothing can begin.
  bool write_batch();
  // Takes from the queue what can begin.
  void gather(Batch& batch);
  // Its images are made, or it is answered with an error. False: it has to stay in the queue.
  bool join(Batch& batch, Waiting& waiting, Passed& passed);
  bool is_blocked(Waiting& waiting, Passed& passed);
  // Whether it came before, and is answered.
  bool is_answered(Batch& batch, Waiting& waiting);
  static bool has_room(const Batch& batch, const Waiting& waiting, const Passed& passed);
  [[nodiscard]] Result<bool> change_images(BatchImages& images, const Waiting& waiting);
  void add_to_log(Batch& batch);
  void put_in_place(const BatchImages::Image& image, const Status& written);
  [[nodiscard]] Status apply(const BatchImages::Image& image);
  [[nodiscard]] Status outcome_of(const Waiting& waiting, const Status& written);

  bool is_checkpoint_due() const;
  void checkpoint();
  // Nothing changes meanwhile what a checkpoint syncs: of two syncs of one file each may hear of the other's failure.
  std::vector<LockedComponent> lock_dirty();
  [[nodiscard]] Status empty_log();
  [[nodiscard]] Status sync_in_place(const std::vector<ComponentPtr>& components);
  // Sums of tails are durable in the catalogue before the log forgets them.
  [[nodiscard]] Status commit_tails(const std::vector<ComponentPtr>& components);

  LfsContext& context_;
  Holding& holding_;
  PublishedRows published_rows_;
  RequestDedup dedup_;
  daemon::Slots warming_;
  std::deque<Waiting*> queue_;
  std::uint64_t queued_bytes_ = 0;
  std::map<std::uint64_t, ComponentPtr> dirty_;
  std::vector<std::function<void(Status)>> flushers_;
  std::optional<Error> stuck_;  // the log cannot be emptied any more
  bool is_busy_ = false;
  bool is_checkpoint_asked_ = false;
  bool is_checkpointing_ = false;
  bool has_news_ = false;
  daemon::Event news_;
};

}  // namespace pif::lfs
