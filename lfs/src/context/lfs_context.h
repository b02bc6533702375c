// The state that the handlers of an LFS share, and the checks that begin most of them. One thread.
#pragma once

#include "components/batch.h"
#include "components/components.h"
#include "context/authorizer.h"
#include "context/input_locks.h"
#include "context/lost_files.h"
#include "context/operations.h"
#include "context/peer_list.h"
#include "context/request.h"
#include "context/view_state.h"
#include "context/watchers.h"
#include "pif/daemon/admission.h"
#include "pif/daemon/caller.h"
#include "pif/daemon/fibers.h"
#include "pif/lfs/lfs.h"
#include "pif/net/turns.h"
#include "redo/redo_log.h"
#include "store/numbers.h"
#include "store/root.h"

namespace pif::lfs {

// Whether the LFS serves.
enum class Standing : std::uint8_t {
  kWaiting,  // for the server to admit it
  kServing,
  kStale,  // it has lost changes: nothing is served until a person decides
};

struct LfsContext {
  // At most so many requests wait until the server has admitted this LFS.
  static constexpr std::size_t kWaitingMax = 4096;
  static constexpr std::uint64_t kWaitingBytesMax = 64u << 20;  // of their bodies

  // worker_identity: whom a worker's connection speaks for; nothing for all others.
  LfsContext(const Config& config_in, World world_in, const Authorizer::Override& worker_identity)
      : config(config_in),
        world(std::move(world_in)),
        fibers(world.messenger.clock(), world.pick),
        turns(world.messenger, config.name),
        components(config.root, world.storage, world.catalogue, numbers, fibers),
        batch(components, numbers, world.messenger.clock(), world.health, fibers),
        view(config.key, config.node),
        authorizer(config.key, world.messenger, worker_identity),
        input_locks([worker_identity](net::PeerId peer) { return worker_identity(peer).has_value(); }),
        peer_list(fibers),
        replies(world.messenger, fibers, config.name),
        caller(world.messenger, fibers),
        admission(fibers, replies, {kWaitingMax, kWaitingBytesMax},
                  "too many requests wait for the PIF Server to admit this LFS"),
        shared_log(std::make_shared<RedoLog>(world.storage, log_folder(config.root), config.log_bytes)),
        log(*shared_log) {
    replies.charge_to(&turns);
    for (const auto& peer : config.peers) peer_list.learn(peer);
  }

  const Config& config;
  World world;
  daemon::Fibers fibers;
  net::Turns turns;
  Numbers numbers;
  Components components;
  CatalogueBatch batch;
  ViewState view;
  Authorizer authorizer;
  InputLocks input_locks;
  PeerList peer_list;
  LostFiles lost_files;
  catalogue::ScrubRecord scrubbed;  // durable
  Replies replies;
  daemon::Caller caller;        // of the PIF Server and of other LFSs
  daemon::Admission admission;  // news: it serves, or will not; what was held goes on; somebody is gone
  Operations operations;
  std::shared_ptr<RedoLog> shared_log;  // for work away from the loop, which may end after the loop
  RedoLog& log;
  Standing standing = Standing::kServing;
  std::string stale;                            // why, for people
  const RebuildProgress* rebuilding = nullptr;  // who does it; outlives this

  Time now() const { return world.messenger.clock().now(); }
  // Runs `work` away from the loop, and returns what it returns. Called by a fiber.
  template <typename Work>
  auto disk(Work work) {
    return daemon::disk(fibers, world.executor, std::move(work));
  }
  // The same of a member function.
  template <auto kMethod, typename Object>
  auto disk(Object& object) {
    return disk([&object] { return (object.*kMethod)(); });
  }

  // Adopts a view that somebody sent, whoever it was, if it is newer than what is known here. kBadCapability, kInvalid:
  // it is none. Called by a fiber.
  [[nodiscard]] Status take_view(const std::string& packed);
  std::vector<ViewWatcher*> view_watchers;
  std::vector<SpaceMaker*> space_makers;
  // A request on a file with parity goes by view `index` (0: it does not say). kOldView: there is a newer one; kRetry:
  // this LFS does not have it yet, and asks for it.
  [[nodiscard]] Status check_view(std::uint64_t index);
  // kUnavailable: others do what this LFS did for files with parity, as it is lost or being rebuilt.
  [[nodiscard]] Status check_present(const proto::ComponentShape& shape) const;
  // The same before rows are taken. A returning LFS takes those of files that it has caught up with: kRetry of others.
  [[nodiscard]] Status check_takes(const proto::ComponentShape& shape) const;

  // A component that is about to change, if it may at all: kUnsupported for an older one.
  [[nodiscard]] static Status check_not_older(const Component& component);
  // A component that is about to change; kBusy while a tool reads it, or waits to. So nobody waits for the end of a
  // tool.
  [[nodiscard]] static Status check_not_held(const Component& component);
  // The component, which is complete, for a requester with rights to it. Rights without the one to create prove that
  // the file is committed. This is not noted: only the server says when it was committed (docs/FORMAT.md "Who is how
  // old").
  [[nodiscard]] Result<ComponentPtr> published(const Request& request, FileId file);
  // kUnavailable: this LFS is being rebuilt, and its part of the file, which has parity or no component here, is
  // missing or behind. adds: kRetry instead once the others take it for one that is there, for then it is a matter of
  // moments.
  [[nodiscard]] Status check_not_lost(FileId file, bool adds = false) const;
  // kBadCapability if the component knows a later epoch; a later one is remembered.
  [[nodiscard]] Status check_epoch(Component& component, const Capability& capability);
  // The server says that a sealed component's file is committed. Called by a fiber.
  [[nodiscard]] Status note_committed(const ComponentPtr& component);
  // Removes the files of a forgotten component soon, away from the loop. Until then no other component of that file is
  // made.
  void remove_files(FileId file);
  void remove_files_now(FileId file);  // the same on a fiber that waits for it

  // Before a component is made of a file that has `records` already. kNotFound: rows or parity of them belong here.
  // Then none is made: it would be taken for all that the file has here. shape: checked, layout: its own.
  [[nodiscard]] Status check_has_no_part(const proto::ComponentShape& shape, const parity::Layout& layout,
                                         std::uint64_t records) const;

  // The shape in a request that may make a component: possible, for this node, for `file`.
  [[nodiscard]] Status check_shape(const proto::ComponentShape& shape, FileId file) const;
  // kNoSpace, with what is left, if `bytes` more would go below the reserve that log and catalogue need. Dense copies
  // of older components make room, and what space_makers have.
  [[nodiscard]] Status check_space(std::uint64_t bytes);
  bool make_space();
  // Bytes of a reply's body that the requester's transport can take.
  static std::size_t body_bytes_max(const Request& request);
};

// The body of variable rows (proto: ReadReply): `count` little-endian 32-bit lengths, then the rows.
struct VariableBody {
  std::vector<std::uint32_t> lengths;
  std::span<const std::byte> data;
};
[[nodiscard]] Result<VariableBody> parse_variable(std::span<const std::byte> body, std::uint64_t count);
// The length of the last of `count` fixed rows in a body of `bytes`; kInvalid if they do not fit each other.
[[nodiscard]] Result<std::uint32_t> last_row_bytes(std::uint64_t bytes, std::uint64_t count,
                                                   std::uint32_t record_length);

}  // namespace pif::lfs
