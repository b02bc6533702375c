// Reading: rows, bytes and offsets by message, descriptors of whole components.
#pragma once

#include <memory>
#include <unordered_map>

#include "context/lfs_context.h"
#include "pif/net/fair_queue.h"

namespace pif::lfs {

class Reading {
 public:
  explicit Reading(LfsContext& context);

  // These answer at once from memory. The executor reads what the disk has to be waited for, so that nobody else waits.
  [[nodiscard]] Result<net::Packet> read(const Request& request, const proto::Read& asked);
  [[nodiscard]] Result<net::Packet> read_bytes(const Request& request, const proto::ReadBytes& asked);
  [[nodiscard]] Result<net::Packet> offsets(const Request& request, const proto::Offsets& asked);
  // The component is committed.
  [[nodiscard]] Result<net::Packet> read_pieces(const Request& request, const proto::ReadPieces& asked);
  // For reading: descriptors of a complete component. A worker gets them when nothing changes the component any more,
  // and holds it against changes until it ends.
  [[nodiscard]] Result<net::Packet> attach(const Request& request);
  // Cancels the peer's reads that wait for the disk.
  void drop_peer(net::PeerId peer);

 private:
  // A fiber's turn to read from the disk; each peer in turn.
  class Turn {
   public:
    explicit Turn(Reading& reading) : reading_(reading) {}
    ~Turn() { reading_.end_turn(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Reading& reading_;
  };
  // A dense copy that is being made (older.h); others wait for it.
  struct Copying {
    daemon::Event ended;
    Status result{};
  };

  [[nodiscard]] Result<net::Packet> serve(const Request& request);
  [[nodiscard]] Result<net::Packet> read_cold(const Request& request, const ComponentPtr& component);
  // One try: nothing if the component was changed meanwhile.
  [[nodiscard]] Result<std::optional<net::Packet>> try_cold(const Request& request, const ComponentPtr& component);
  // kRetry: too many wait. kCancelled: the peer has gone.
  [[nodiscard]] Status wait_for_turn(net::PeerId peer);
  void begin_turns();
  void end_turn();
  [[nodiscard]] Status make_readable(Component& component);

  [[nodiscard]] Status wait_for_copy(const ComponentPtr& component);
  [[nodiscard]] Status make_copy(const ComponentPtr& component);
  [[nodiscard]] Status check_room(const Component& component);
  // For a worker, until it has gone.
  [[nodiscard]] Status lock_input(const Request& request, const ComponentPtr& component);
  [[nodiscard]] Result<net::Packet> descriptors(Component& component);

  LfsContext& context_;
  net::FairQueue<daemon::Fibers::WaitId> cold_;  // fibers that wait for the disk, of each peer in turn
  unsigned cold_under_way_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Copying>> copying_;  // by file
  daemon::Slots copies_;
  std::uint64_t copies_begun_ = 0;
};

}  // namespace pif::lfs
