// Reading: rows, bytes and offsets by message, descriptors of whole components.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "context/lfs_context.h"
#include "pif/net/fair_queue.h"

namespace pif::lfs {

class Reading {
 public:
  explicit Reading(LfsContext& context);

  // What is in memory is answered at once; what the disk has to be waited for, later and by the executor, so that
  // nobody else waits for it.
  void read(const Request& request, const proto::Read& asked);
  void read_bytes(const Request& request, const proto::ReadBytes& asked);
  void offsets(const Request& request, const proto::Offsets& asked);
  // Of a committed component.
  void read_pieces(const Request& request, const proto::ReadPieces& asked);
  // For reading: descriptors of a complete component. A worker gets them when nothing changes the component any more,
  // and holds it against changes until it ends.
  void attach(const Request& request);
  // Begins dense copies and reads that wait for the disk; answers workers whose components have come to rest. Once per
  // turn.
  void advance();

 private:
  // A read that waits for the disk. If the component was changed while it was read, it is read again; after some tries
  // by the loop itself, which makes all changes.
  struct ColdRead {
    ReplyToken token = 0;
    net::PeerId peer = 0;
    ComponentPtr component;
    proto::Envelope asked;
    net::Buffer body;  // of the request
    std::size_t bytes_max = 0;
    std::uint64_t changes = 0;  // of the component when the try began
    unsigned tries = 0;
    std::uint64_t scanned = 0;  // bytes, in the last try
    std::optional<Result<net::Packet>> result;
  };
  void start(const Request& request);
  // kRetry: too many wait.
  [[nodiscard]] Result<std::shared_ptr<ColdRead>> make_cold(const Request& request, ComponentPtr component);
  void begin_cold();
  [[nodiscard]] bool may_serve(const ColdRead& cold);
  void submit(std::shared_ptr<ColdRead> cold);
  void finish(const std::shared_ptr<ColdRead>& cold);

  // Dense copies of older components (older.h), for all that wait for them.
  void begin_copies();
  void begin_copy(const ComponentPtr& component);
  void end_copy(const ComponentPtr& component, Result<DenseCopy> copy);
  [[nodiscard]] Status check_room(const Component& component);
  // Answers all that wait for its copy.
  void refuse_waiting(const Component& component, const Error& why);

  [[nodiscard]] Result<net::Packet> descriptors(Component& component);

  struct Attaching {
    ReplyToken token = 0;
    ComponentPtr component;
  };
  LfsContext& context_;
  std::vector<Attaching> attaching_;                // workers, and all whose component lacks its dense copy
  net::FairQueue<std::shared_ptr<ColdRead>> cold_;  // to be begun, of each peer in turn
  unsigned cold_under_way_ = 0;
  std::vector<std::shared_ptr<ColdRead>> uncopied_;  // their component lacks its dense copy
  std::vector<ComponentPtr> copying_;
  std::uint64_t copies_begun_ = 0;
};

}  // namespace pif::lfs
