// Overwriting committed rows through the redo log. Requests of one turn, and those that come while the log is being
// synced, share a batch: images of whole new chunks are appended to the log, the log is synced away from the loop, then
// the images go to their in-place data (page cache) and the requests are answered.
//
// Rules: (1) an image is computed from what is acknowledged before it: in-place data, and earlier images of its own
// batch. (2) While a component has images under way no rows are appended to it, and the other way round. (3) The log
// starts over only when all in-place data are durable and the catalogue has the sums of their tails.
#pragma once

#include <deque>
#include <map>

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
  // Whether overwrites of it wait or are under way.
  bool concerns(const Component& component) const;
  // Whether something can start at the next turn, unless busy.
  bool waiting() const;

 private:
  struct Waiting {
    ReplyToken token = 0;
    RequestDedup::Key key;
    ComponentPtr component;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint32_t within = 0;
    std::uint32_t bytes = 0;  // with `within` or alone: of one record
    net::Buffer body;
  };
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

  [[nodiscard]] Status check(const Request& request);
  [[nodiscard]] Result<Target> target_of(const Waiting& waiting);
  [[nodiscard]] Result<Image> image_of(const Waiting& waiting, Overlay& overlay);
  [[nodiscard]] Status fill_edge(Image& image, std::uint64_t chunk, const Overlay& overlay);
  void start_batch();
  void finish_batch(std::vector<Image>& images, const Status& written);
  [[nodiscard]] Status apply(const Image& image);

  void refuse_all();
  // A checkpoint waits for them to end; others do not begin meanwhile. Their syncs and its own would hear of each
  // other's failures.
  bool appends_to_dirty() const;
  void checkpoint();
  void sync_in_place();
  void in_place_synced(const std::vector<ComponentPtr>& components, const std::vector<Status>& results);
  void restart_log();
  void end_checkpoint(const Status& status);

  LfsContext& context_;
  RequestDedup dedup_;  // acknowledged overwrites
  std::deque<Waiting> queue_;
  std::uint64_t queued_bytes_ = 0;
  std::map<std::uint64_t, ComponentPtr> dirty_;
  std::vector<ReplyToken> flushers_;
  std::optional<Error> stuck_;  // the log cannot be emptied any more
  bool syncing_ = false;
  bool checkpointing_ = false;
  bool checkpoint_asked_ = false;
};

}  // namespace pif::lfs
