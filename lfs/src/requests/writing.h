// Filling a new component, by message or through descriptors, and sealing it.
#pragma once

#include <unordered_map>
#include <vector>

#include "context/lfs_context.h"
#include "requests/seal_sync.h"

namespace pif::lfs {

class Writing {
 public:
  explicit Writing(LfsContext& context);

  // For writing: makes the component if it is not there; descriptors that can write.
  [[nodiscard]] Result<net::Packet> attach(const Request& request);
  [[nodiscard]] Result<net::Packet> write(const Request& request, const proto::Write& asked);
  // The component's bytes become durable first. While somebody could still write it, it is looked at again for
  // kWritersPatience: a worker that is being started has this process's descriptors, of all components, until it has
  // become another program, which takes milliseconds on a busy machine.
  [[nodiscard]] Result<net::Packet> seal(const Request& request, const proto::Seal& asked);
  // Parity is synced with what is sealed.
  SealSync& seal_sync() { return sync_; }

  // ---- for who fills components in pieces (scattering.h) ----
  // kOldView: this LFS was started again since the file was begun, and has lost what was written to it before.
  [[nodiscard]] Status check_incarnation(const proto::ComponentShape& shape) const;
  // The component, which may be filled; it is made if it is not there.
  [[nodiscard]] Result<ComponentPtr> open_component(const Request& request, const proto::ComponentShape& shape);
  // kNoSpace: `bytes` more are too many, but for a component that has room for its first `end` bytes.
  [[nodiscard]] Status check_room(FileId file, std::uint64_t end, std::uint64_t bytes);
  // Writes what the component's writer holds back to the files, and drops the writer.
  [[nodiscard]] Status finish_writer(Component& component);

 private:
  // The bytes that came and that were skipped, in an open component whose rows did not come in order.
  struct Skipper {
    std::uint64_t taken = 0;
    std::uint64_t skipped = 0;
  };
  // kTooLarge: the rows skip too much. Skipped bytes get their sums when the component is finished, all at once and on
  // the loop. Nobody may make that cost more than sending the rows has cost him.
  [[nodiscard]] Status check_skipped(const Component& component, std::uint64_t begin, std::uint64_t bytes);
  void forget_skippers();
  [[nodiscard]] Status write_fixed(Component& component, const proto::Write& asked, std::span<const std::byte> body);
  [[nodiscard]] Status write_variable(Component& component, const proto::Write& asked, std::span<const std::byte> body);

  // Makes all checks that need no wait. A component that is not open was sealed before, with just these lengths.
  [[nodiscard]] Result<ComponentPtr> prepare_seal(const Request& request);
  [[nodiscard]] Result<ComponentPtr> find_to_seal(const Request& request, const proto::Seal& asked);
  [[nodiscard]] Status check_lengths(Component& component, const proto::Seal& asked);
  // The component is locked as kSeal.
  [[nodiscard]] Status seal_component(const ComponentPtr& component, const proto::Seal& asked);
  [[nodiscard]] Status wait_for_writers(Component& component) const;
  [[nodiscard]] static Result<bool> has_writers(Component& component);
  [[nodiscard]] Status take_lengths(Component& component, const proto::Seal& asked);
  [[nodiscard]] Status check_sizes(Component& component, const component::Tail& tail);
  // Makes the sums of a component that was filled in pieces.
  [[nodiscard]] Status make_sums(Component& component, const proto::Seal& asked);

  LfsContext& context_;
  SealSync sync_{context_};
  std::unordered_map<std::uint64_t, Skipper> skippers_;  // by file; gone with what is no longer open
};

}  // namespace pif::lfs
