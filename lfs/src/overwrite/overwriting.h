// Overwriting committed rows, or pieces, through the redo log. Requests of one turn, and those that come while the log
// is being synced, share a batch: images of whole new chunks are appended to the log, the log is synced away from the
// loop, then the images go to their in-place data (page cache) and the requests are answered.
//
// Rules: (1) an image is computed from what is acknowledged before it: in-place data, and earlier images of its own
// batch. Of fixed records a batch has one image of a chunk, which all requests change (images.h). (2) While a component
// has images under way no rows are appended to it, and the other way round (component_stage.h). (3) The log starts over
// only when all in-place data are durable and the catalogue has the sums of their tails. (4) Overwrites of one
// component that change the same chunk begin in the order in which they came. Of two components neither waits for what
// the other has to read: what an image needs and is not in memory is read by the executor first, and the overwrite
// joins a later batch, in front of all of its component that came later. When a batch is full, those behind join it
// whose chunks it has already, or nearly all of them: several who write pieces that lie between one another's so log
// each chunk once, though one of them is ahead. (5) A request is done once, however often it comes: the log names those
// of each batch, and keeps them for a while when it starts over. One that comes again while the first is under way is
// answered with it. (6) Only published rows are changed: what LFS 0 has to be asked for stays in the queue until then.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "context/lfs_context.h"
#include "context/request_dedup.h"
#include "overwrite/images.h"
#include "overwrite/published_rows.h"

namespace pif::lfs {

class Overwriting {
 public:
  Overwriting(LfsContext& context, Peers& peers);

  void overwrite(const Request& request, const proto::Overwrite& asked);
  void overwrite_pieces(const Request& request, const proto::OverwritePieces& asked);
  // Starts the next batch, or sends the log's entries home when it is half full. Once per turn.
  void advance();
  // Answers when every entry of the log is home.
  void flush(const Request& request, const proto::Flush& asked);
  bool busy() const { return syncing_ || checkpointing_; }
  // At the start: these were done by an earlier run.
  void remember(const LoggedRequests& requests) { dedup_.load(requests, context_.now()); }
  // Whether something can start at the next turn, unless busy.
  bool waiting() const;

 private:
  // What an overwrite needs of its chunks, which change in part: whether that is in memory.
  enum class Heat : std::uint8_t { kUnknown, kCold, kWarming, kWarm };
  // What is asked for: rows, a part of one row, or pieces.
  struct Asked {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint32_t within = 0;
    std::uint32_t bytes = 0;      // with `within` or alone: of one record
    std::uint32_t run_bytes = 0;  // of pieces, which the rest says nothing of
  };
  struct Waiting {
    ReplyToken token = 0;
    RequestKey key;
    ComponentPtr component;
    QueuedChange queued;
    Asked asked;
    net::Buffer body;
    std::vector<ChunkRange> touched;  // of fixed records
    Heat heat = Heat::kUnknown;
    std::uint64_t rows_end = 0;
    bool is_published = false;  // rows up to there are; else LFS 0 is being asked

    std::uint64_t bytes() const { return body.size() + touched.size() * sizeof(ChunkRange); }
  };
  using WaitingPtr = std::shared_ptr<Waiting>;
  struct Change {  // whom to answer when the batch is in its place
    ReplyToken token = 0;
    RequestKey key;
    ComponentPtr component;
  };
  struct Batch {
    BatchImages images;
    std::vector<Change> changes;
    std::set<RequestKey> keys;  // of these
  };
  // What stays in the queue while a batch gathers.
  struct Passed {
    std::set<std::uint64_t> files;   // whose overwrites cannot begin
    std::vector<WaitingPtr> beyond;  // for which the batch has no room
  };

  [[nodiscard]] Status check(const Request& request);
  [[nodiscard]] Result<ComponentPtr> check_component(const Request& request, FileId file);
  // Puts it behind the others, or answers.
  void take(const Request& request, FileId file, const Asked& asked);
  void enqueue(const Request& request, WaitingPtr waiting);
  // For all of the component that wait for it, unless LFS 0 is being asked already.
  void ask_published(const ComponentPtr& component);
  void told_published(const WaitingPtr& waiting, const Result<std::uint64_t>& rows);
  // Of a component with so many published rows.
  [[nodiscard]] static Error not_published(const Waiting& waiting, std::uint64_t rows);
  // kOutcomeUnknown; true: it was done before.
  [[nodiscard]] Result<bool> is_done(const RequestKey& key) const;
  // These two know nothing of the loop. With a reader that does not wait for the disk: kBusy.
  [[nodiscard]] static Result<OverwriteTarget> target_of(const Waiting& waiting, const component::Reader& reader);
  [[nodiscard]] static Result<OverwriteTarget> rows_of(const Waiting& waiting, const component::Reader& reader);
  // Whether it cannot begin at the moment; then neither can those of the same file that came later.
  bool is_blocked(const Waiting& waiting, std::set<std::uint64_t>& blocked) const;
  static bool has_room(const Batch& batch, const Waiting& waiting, const Passed& passed);
  // Reads what its image needs, so that it is in memory.
  void warm(const WaitingPtr& waiting);
  void start_batch();
  // Takes from the queue what can begin.
  void gather(Batch& batch);
  // Whether it came before, and is answered.
  bool is_answered(Batch& batch, const Waiting& waiting) const;
  // Its images are made, or it is answered with an error. False: it has to stay in the queue.
  bool join(Batch& batch, const WaitingPtr& waiting, Passed& passed);
  [[nodiscard]] Result<bool> change_images(BatchImages& images, const Waiting& waiting);
  void write_batch(std::shared_ptr<Batch> batch);
  void finish_batch(Batch& batch, const Status& written);
  void finish_image(const BatchImages::Image& image, const Status& written);
  void answer(const Change& change, const Status& written);
  [[nodiscard]] Status apply(const BatchImages::Image& image);

  void refuse_all();
  // A checkpoint waits until nothing changes what it syncs: of two syncs of one file each may hear of the other's
  // failure.
  bool may_drain() const;
  void checkpoint();
  void sync_in_place();
  void in_place_synced(const std::vector<ComponentPtr>& components, const std::vector<Status>& results);
  void restart_log();
  void end_checkpoint(const Status& status);

  LfsContext& context_;
  PublishedRows published_rows_;
  std::set<std::uint64_t> asking_;  // files of which LFS 0 is being asked for the length
  RequestDedup dedup_;
  std::deque<WaitingPtr> queue_;
  std::uint64_t queued_bytes_ = 0;
  std::map<std::uint64_t, ComponentPtr> dirty_;
  std::vector<ReplyToken> flushers_;
  std::optional<Error> stuck_;  // the log cannot be emptied any more
  unsigned warming_ = 0;
  bool syncing_ = false;
  bool checkpointing_ = false;
  bool checkpoint_asked_ = false;
};

}  // namespace pif::lfs
