// What the handlers of an LFS share, and the checks that begin most of them. One thread.
#pragma once

#include "context/authorizer.h"
#include "context/input_locks.h"
#include "context/lost_files.h"
#include "context/operations.h"
#include "context/peer_list.h"
#include "context/replies.h"
#include "context/view_state.h"
#include "pif/lfs/lfs.h"
#include "store/batch.h"
#include "store/components.h"
#include "store/numbers.h"
#include "store/redo_log.h"
#include "store/root.h"

namespace pif::lfs {

// Whether the LFS serves.
enum class Standing : std::uint8_t {
  kWaiting,  // for the server to admit it
  kServing,
  kStale,  // it has lost changes: nothing is served until a person decides
};

struct LfsContext {
  // worker_identity: whom a worker's connection speaks for; nothing for all others.
  LfsContext(const Config& config_in, World world_in, const Authorizer::Override& worker_identity)
      : config(config_in),
        world(std::move(world_in)),
        components(config.root, world.storage, world.catalogue, numbers),
        batch(components, numbers, world.messenger.clock()),
        view(config.key, config.node),
        authorizer(config.key, world.messenger, worker_identity),
        input_locks([worker_identity](net::PeerId peer) { return worker_identity(peer).has_value(); }),
        replies(world.messenger, config.name),
        shared_log(std::make_shared<RedoLog>(world.storage, log_path(config.root), config.log_bytes)),
        log(*shared_log) {
    for (const auto& peer : config.peers) peer_list.learn(peer);
  }

  const Config& config;
  World world;
  Numbers numbers;
  Components components;
  CatalogueBatch batch;
  ViewState view;
  Authorizer authorizer;
  InputLocks input_locks;
  PeerList peer_list;
  LostFiles lost_files;
  Replies replies;
  Operations operations;
  std::shared_ptr<RedoLog> shared_log;  // for work away from the loop, which may end after the loop
  RedoLog& log;
  Standing standing = Standing::kServing;
  std::string stale;           // why, for people
  bool checkpointing = false;  // the redo log is being emptied, or is about to be: nothing is appended to what is dirty

  Time now() const { return world.messenger.clock().now(); }

  // A view that somebody sent, whoever it was. `done`, if it is newer than what is known here: it is adopted, or why
  // not. kBadCapability, kInvalid: it is none.
  [[nodiscard]] Status take_view(const std::string& packed, CatalogueBatch::Done done = {});

  // What is under way, and what is about to be, decides who may do what to a component (component_stage.h).
  Permission may(Operation what, const Component& component) const { return component.may(what, checkpointing); }
  // A component that is about to change, if it may at all: kUnsupported for an older one.
  [[nodiscard]] static Status check_not_older(const Component& component);
  // A component that is about to change; kBusy while a tool reads it.
  [[nodiscard]] Status check_not_held(const Component& component);
  // A component that is complete, for somebody with rights to it. That he has them without the right to create proves
  // that the file is committed. It is not noted: only the server's word says when that was (docs/FORMAT.md "Who is how
  // old").
  [[nodiscard]] Result<ComponentPtr> published(const Request& request, FileId file);
  // kUnavailable: this LFS lost its disk, and has not got the file's component back. Of files that have none here.
  [[nodiscard]] Status check_not_lost(FileId file) const;
  // kBadCapability if the component knows a later epoch; a later one is remembered.
  [[nodiscard]] Status check_epoch(Component& component, const Capability& capability);
  void note_committed(const ComponentPtr& component);

  // The shape in a request that may make a component: possible, for this node, for `file`.
  [[nodiscard]] Status check_shape(const proto::ComponentShape& shape, FileId file) const;
  // kNoSpace, with what is left, if `bytes` more would go below the reserve that log and catalogue need. Dense copies
  // of older components make room.
  [[nodiscard]] Status check_space(std::uint64_t bytes);
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
