// Overwriting committed rows through the redo log. Requests of one turn, and those that come while the log is being
// synced, share a batch: images of whole new chunks are appended to the log, the log is synced away from the loop, then
// the images go to their in-place data (page cache) and the requests are answered.
//
// Rules: (1) an image is computed from what is acknowledged before it: in-place data, and earlier images of its own
// batch. (2) While a component has images under way no rows are appended to it, and the other way round
// (component_stage.h). (3) The log starts over only when all in-place data are durable and the catalogue has the sums
// of their tails. (4) Overwrites of one component begin in the order in which they came. Of two components neither
// waits for what the other has to read: what an image needs and is not in memory is read by the executor first, and the
// overwrite joins a later batch.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "context/lfs_context.h"
#include "context/request_dedup.h"

namespace pif::lfs {

class Overwriting {
 public:
  explicit Overwriting(LfsContext& context);

  void overwrite(const Request& request, const proto::Overwrite& asked);
  // Starts the next batch, or sends the log's entries home when it is half full. Once per turn.
  void advance();
  // Answers when every entry of the log is home.
  void flush(const Request& request, const proto::Flush& asked);
  bool busy() const { return syncing_ || checkpointing_; }
  // Whether something can start at the next turn, unless busy.
  bool waiting() const;

 private:
  // What an overwrite needs of its chunks, which change in part: whether that is in memory.
  enum class Heat : std::uint8_t { kUnknown, kCold, kWarming, kWarm };
  struct Waiting {
    ReplyToken token = 0;
    RequestDedup::Key key;
    ComponentPtr component;
    QueuedChange queued;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint32_t within = 0;
    std::uint32_t bytes = 0;  // with `within` or alone: of one record
    net::Buffer body;
    Heat heat = Heat::kUnknown;
  };
  using WaitingPtr = std::shared_ptr<Waiting>;
  struct Image {
    ReplyToken token = 0;
    RequestDedup::Key key;
    ComponentPtr component;
    std::uint64_t first_chunk = 0;
    std::uint64_t number = 0;  // in the log
    std::vector<std::byte> bytes;
  };
  struct Target {  // of a request, in .dat
    std::uint64_t offset = 0;
    std::span<const std::byte> bytes;
  };
  using ChunkKey = std::pair<std::uint64_t, std::uint64_t>;  // file, chunk
  using Overlay = std::map<ChunkKey, std::span<std::byte>>;  // the newest image of each chunk in this batch
  using Blocked = std::set<std::uint64_t>;                   // files whose overwrites cannot begin

  [[nodiscard]] Status check(const Request& request);
  // These three know nothing of the loop. With a reader that does not wait for the disk: kBusy.
  [[nodiscard]] static Result<Target> target_of(const Waiting& waiting, const component::Reader& reader);
  [[nodiscard]] static Result<Image> image_of(const Waiting& waiting, const component::Reader& reader,
                                              Overlay& overlay);
  [[nodiscard]] static Status fill_edge(Image& image, std::uint64_t chunk, const component::Reader& reader,
                                        const Overlay& overlay);
  // Whether it cannot begin at the moment; then neither can those of the same file that came later.
  bool is_blocked(const Waiting& waiting, Blocked& blocked) const;
  [[nodiscard]] Result<Image> image_at_once(const Waiting& waiting, Overlay& overlay);
  // Reads what its image needs, so that it is in memory.
  void warm(const WaitingPtr& waiting);
  void start_batch();
  // Takes from the queue what can begin.
  void gather(std::vector<Image>& images);
  void write_batch(std::shared_ptr<std::vector<Image>> images);
  void finish_batch(std::vector<Image>& images, const Status& written);
  void finish_one(const Image& image, const Status& written);
  [[nodiscard]] Status apply(const Image& image);

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
  RequestDedup dedup_;  // acknowledged overwrites
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
