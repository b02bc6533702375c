#include "requests/reporting.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "context/has_server.h"
#include "pif/base/assert.h"
#include "pif/base/timers.h"
#include "pif/wire/file_states.h"
#include "pif/wire/values.h"

namespace pif::lfs {
namespace {

constexpr Duration kBeatEvery = std::chrono::seconds(1);
constexpr Duration kConnectEvery =
    std::chrono::milliseconds(100);  // to a server that is not there: it may start any moment
constexpr Duration kAskAgainEvery = std::chrono::milliseconds(100);  // a server that waits for other LFSs
constexpr Duration kPatience = std::chrono::seconds(5);
constexpr std::size_t kStatesAtOnce = 4096;
constexpr std::size_t kLearntAtOnce = 256;  // of them, in one transaction

using enum wire::BeatStage;
using enum wire::OwnState;
using enum wire::Verdict;

}  // namespace

Reporting::Reporting(LfsContext& context, Managing& managing)
    : context_(context), managing_(managing), asking_(context.fibers) {
  context_.standing = has_server(context_.config) ? Standing::kWaiting : Standing::kServing;
  if (!has_server(context_.config)) return;
  context_.fibers.start<&Reporting::send_beats>(*this);
  context_.fibers.start<&Reporting::keep_asking>(*this);
}

Result<net::Packet> Reporting::call(net::Packet packet) {
  PIF_ASSERT(server_ != 0);
  return context_.caller.call(server_, std::move(packet), kPatience, "the PIF Server");
}

void Reporting::beat_by(Time at) {
  if (at >= next_beat_) return;
  next_beat_ = at;
  context_.peer_list.wanted().notify();
}

void Reporting::send_beats() {
  for (;;) {
    context_.peer_list.wanted().wait(next_beat_);
    look_at_disk();
    if (context_.peer_list.take_wanted()) next_beat_ = std::min(next_beat_, context_.now() + kConnectEvery);
    if (context_.now() < next_beat_) continue;
    next_beat_ = context_.now() + kBeatEvery;
    if (context_.config.look_at_keys) context_.config.look_at_keys();
    if (connect()) beat();
  }
}

void Reporting::keep_asking() {
  for (;;) {
    asking_.wait(context_.now() + kBeatEvery);
    if (server_ != 0 && heard_ && agrees_ && context_.standing == Standing::kServing) ask_states();
  }
}

bool Reporting::connect() {
  if (server_ != 0) return true;
  auto peer = context_.world.messenger.connect(context_.config.server, context_.config.server_route);
  if (!peer) {
    lose(peer.error());
    return false;
  }
  server_ = *peer;
  heard_ = false;
  return true;
}

void Reporting::lose(const Error& why) {
  if (!silent_logged_) spdlog::warn("the PIF Server does not answer: {}; serving goes on", why.text);
  silent_logged_ = true;
  heard_ = agrees_ = false;
  beat_by(context_.now() + kConnectEvery);
  if (server_ == 0) return;
  const auto peer = std::exchange(server_, 0);
  context_.world.messenger.disconnect(peer);
}

void Reporting::closed(net::PeerId peer) {
  if (server_ == 0 || peer != server_) return;
  server_ = 0;
  lose({Code::kUnavailable, "it closed the connection", {}});
}

// At each heartbeat, and when calls have failed: one that is not answered fails by and by.
void Reporting::look_at_disk() {
  DiskHealth* const health = context_.world.health;
  if (health == nullptr) return;
  auto trouble = health->trouble();
  if (trouble && !disk_trouble_) {
    spdlog::error("the disk of {} fails: {}", context_.config.root, *trouble);
    disk_trouble_since_ = context_.world.messenger.clock().wall_seconds();
    beat_soon();
  }
  if (!trouble && disk_trouble_) spdlog::info("the disk of {} answers again", context_.config.root);
  disk_trouble_ = std::move(trouble);
  if (!is_probing_ && health->take_probe()) context_.fibers.start<&Reporting::probe_disk>(*this);
}

// A read has failed: whether the disk still takes anything. How that ends is noted in its health.
void Reporting::probe_disk() {
  PIF_ASSERT(!is_probing_ && context_.world.health != nullptr);
  is_probing_ = true;
  context_.disk([&storage = context_.world.storage, path = scratch_folder(context_.config.root) + "/probe"] {
    const std::array<std::byte, 1> byte{};
    auto file = storage.open(path, component::OpenMode::kCreate);
    if (file && (*file)->write(0, byte)) static_cast<void>((*file)->sync().has_value());
  });
  is_probing_ = false;
}

void Reporting::add_right(net::Packet& packet) {
  const std::int64_t now = context_.world.messenger.clock().wall_seconds();
  if (now >= capability_until_ || capability_by_ != context_.config.key.version()) {
    capability_ =
        mint(context_.config.key, Capability{FileId(0), context_.config.uid, kMayManage, 0, now + kCapabilitySeconds});
    capability_until_ = now + kCapabilitySeconds / 2;
    capability_by_ = context_.config.key.version();
  }
  packet.envelope.set_capability(capability_);
  packet.envelope.set_timeout_ms(5000);
}

net::Packet Reporting::request() {
  net::Packet packet;
  add_right(packet);
  return packet;
}

Result<net::Packet> Reporting::ask(net::Packet packet) {
  if (server_ == 0 || !agrees_) return fail(Code::kUnavailable, "the PIF Server is not there at present");
  add_right(packet);
  const bool makes_view = packet.envelope.has_node_rebuilt();
  auto reply = call(std::move(packet));
  if (reply && makes_view) beat_soon();  // to get it
  return reply;
}

proto::NodeInfo Reporting::node_info() {
  proto::NodeInfo info;
  const auto& config = context_.config;
  info.set_id(config.node);
  info.set_name(config.name);
  *info.mutable_endpoints() = config.endpoints;
  info.set_state(disk_trouble_ ? kStateFailing : kStateUp);
  if (disk_trouble_) {
    info.set_trouble("its disk fails: " + *disk_trouble_);
    info.set_trouble_since(disk_trouble_since_);
  }
  info.set_pid(config.pid);
  info.set_root(config.root);
  info.set_host(config.host);
  info.set_components(context_.components.totals().components);
  info.set_bytes_stored(context_.components.totals().bytes);
  info.set_uuid(context_.numbers.uuid());
  info.set_incarnation(context_.numbers.incarnation());
  info.set_number(context_.numbers.durable());
  info.set_taken_back(context_.numbers.taken_back());
  info.set_scrubbed(context_.scrubbed.ended);
  info.set_scrub_damages(context_.scrubbed.unrepaired);
  if (const auto space = context_.world.storage.space(config.root)) {
    info.set_bytes_total(space->total);
    info.set_bytes_free(space->free);
    info.set_inodes_total(space->inodes_total);
    info.set_inodes_free(space->inodes_free);
  }
  const Status room = context_.check_space(0);
  const bool no_inodes = info.inodes_total() > 0 && info.inodes_free() == 0;
  if (context_.rebuilding != nullptr) info.set_rebuilt_percent(context_.rebuilding->percent());
  info.set_lacking(context_.lost_files.lacking().size());
  info.set_full(no_inodes || (!room && room.error().code == Code::kNoSpace));
  return info;
}

void Reporting::beat() {
  net::Packet packet = request();
  proto::Heartbeat& beat = *packet.envelope.mutable_heartbeat();
  *beat.mutable_node() = node_info();
  *beat.mutable_kept() = context_.numbers.server_moment();
  beat.set_wall(context_.world.messenger.clock().wall_seconds());
  if (context_.standing != Standing::kServing) beat.set_stage(has_kept_ ? kConfirms : kAsks);
  beat.set_view(context_.view.index());
  beat.set_peers(context_.view.peer_changes());
  if (context_.config.edition) beat.set_edition(context_.config.edition());
  const Time sent = context_.world.messenger.clock().boottime();
  const auto reply = call(std::move(packet));
  if (!reply) return lose(reply.error());
  if (silent_logged_) spdlog::info("the PIF Server answers");
  silent_logged_ = false;
  obey(reply->envelope.heartbeat_reply());
  take_files(reply->envelope.heartbeat_reply());
  learn_view(reply->envelope.heartbeat_reply(), sent);
  if (!heard_) ask_soon();
  heard_ = true;
}

void Reporting::obey(const proto::HeartbeatReply& reply) {
  agrees_ = reply.verdict() == kGoOn || reply.verdict() == kAdmitted;
  if (reply.verdict() == kNotYet) beat_by(context_.now() + kAskAgainEvery);
  // Another run may be of a directory that was put back, and has files again that the last one had removed.
  if (agrees_ && reply.moment().run() != context_.numbers.run()) context_.components.forget_tombstones();
  if (agrees_) context_.numbers.note_moment(reply.moment());
  if (reply.verdict() == kIsStale) return stop_serving(reply.text());
  if (reply.verdict() == kEnd) must_end_ = reply.text();
  if (context_.standing == Standing::kServing) return;
  if (reply.verdict() == kAdmitted) become(reply.incarnation(), reply.ask_all());
  if (reply.verdict() == kGoOn && has_kept_) serve();
}

// A newer edition of what all hosts have alike.
void Reporting::take_files(const proto::HeartbeatReply& reply) {
  if (reply.files().empty() || !context_.config.take_files) return;
  const Status taken = context_.config.take_files(reply.files());
  std::string why = taken ? std::string() : taken.error().text;
  if (!taken && why != files_refused_) spdlog::error("the description of the server's host is not taken: {}", why);
  if (taken) spdlog::info("{} takes edition {} of pif.toml", context_.config.name, context_.config.edition());
  files_refused_ = std::move(why);
}

// What the reply says of the others, and how long this LFS may act alone, which counts from the heartbeat's sending.
void Reporting::learn_view(const proto::HeartbeatReply& reply, Time sent) {
  if (!agrees_) return;
  // While commits are held, heartbeats go on.
  if (reply.has_view()) context_.fibers.start<&Reporting::take_view>(*this, reply.view());
  context_.view.note_peers(reply.moment().run(), reply.peers(), reply.peers_count());
  for (const auto& peer : reply.peers()) context_.peer_list.learn(peer);
  const Duration lease = std::chrono::milliseconds(reply.lease_ms());
  if (context_.standing == Standing::kServing) context_.view.grant_lease(sent + std::min(lease, kLease));
}

void Reporting::take_view(const std::string& packed) {
  if (const auto taken = context_.take_view(packed); !taken)
    spdlog::error("the PIF Server's view is not taken: {}", taken.error().text);
}

// It is that incarnation when this is durable here, and serves when the server has it too.
void Reporting::become(std::uint64_t incarnation, bool ask_all) {
  context_.numbers.offer(incarnation, ask_all);
  if (const Status kept = context_.batch.commit_numbers(); !kept)
    return spdlog::error("{}", kept.error().text);  // asks again
  has_kept_ = true;
  ask_all_ = ask_all;
  beat_soon();
}

void Reporting::serve() {
  if (auto asked = ask_all_ ? context_.components.ask_about_all(context_.now()) : Status(); !asked)
    spdlog::error("{}", asked.error().text);
  context_.standing = Standing::kServing;
  context_.stale.clear();
  context_.admission.notify();
  beat_soon();
  asking_.notify();
  spdlog::info("{} serves as incarnation {}, from change {} on", context_.config.name, context_.numbers.incarnation(),
               context_.numbers.durable());
}

void Reporting::stop_serving(const std::string& why) {
  if (context_.standing != Standing::kStale) spdlog::error("{}", why);
  context_.standing = Standing::kStale;
  context_.stale = why;
  context_.admission.notify();
  context_.view.end_lease();
  has_kept_ = false;
}

// A new connection: what became of everything unsettled is asked at once. Not of what an append is making, which the
// server takes for committed.
void Reporting::ask_soon() {
  beat_soon();
  asking_.notify();
  for (auto& [id, when] : context_.components.unsettled()) {
    const auto component = context_.components.find_in_memory(FileId(id));
    if (!component || !component->by_append) when = context_.now();
  }
}

void Reporting::ask_states() {
  const Time now = context_.now();
  std::vector<std::uint64_t> files;
  for (auto& [id, when] : context_.components.unsettled()) {
    if (when > now) continue;
    when = now + Components::kAskAfter;
    files.push_back(id);
    if (files.size() == kStatesAtOnce) break;
  }
  if (files.empty()) return;
  net::Packet packet = request();
  for (const auto id : files) packet.envelope.mutable_file_states()->add_files(id);
  const auto reply = call(std::move(packet));
  if (!reply) {
    for (const auto id : files)  // again with the next beat
      if (const auto at = context_.components.unsettled().find(id); at != context_.components.unsettled().end())
        at->second = Time{};
    return lose(reply.error());
  }
  const auto& states = reply->envelope.file_states_reply();
  if (!agrees_ || !context_.numbers.is_of_server(states.moment())) return;  // asks again in a minute
  context_.numbers.note_moment(states.moment());
  PIF_ASSERT(files.size() <= kStatesAtOnce, files.size());
  const auto count = std::min(files.size(), static_cast<std::size_t>(states.states_size()));
  daemon::each(context_.fibers, count, kLearntAtOnce,
               [&](std::size_t i) { learn_state(FileId(files[i]), states.states(static_cast<int>(i))); });
}

// The server has it for committed: from now on it will say so when the file is removed.
void Reporting::settled(Component& component) {
  PIF_ASSERT(component.state.state() == kCommitted, component.file.value, component.state.state());
  component.by_append = false;
  context_.components.unsettled().erase(component.file.value);
}

void Reporting::learn_state(FileId file, std::uint32_t state) {
  managing_.learn_aside(file, state);
  const auto found = context_.components.find(file);
  if (!found || ((*found)->is_open() && (*found)->lock.is_held(Mode::kSeal, Mode::kRestore))) return;
  const ComponentPtr component = *found;
  // Committed, but only being made here: no part of the file (an append that never came to its end).
  const bool is_abandoned =
      state == wire::kFileCommitted && component->is_open() && component->lock.may_acquire(Mode::kFill);
  Status done;
  if (state == wire::kFileCommitted && component->state.state() == kSealed) {
    done = context_.note_committed(component);
  } else if (state == wire::kFileCommitted && component->state.state() == kCommitted) {
    settled(*component);
  } else if (state == wire::kFileRemoved || is_abandoned) {
    spdlog::info("file {} is {}: its component is removed", name_of(file),
                 is_abandoned ? "committed without it" : "removed");
    done = managing_.remove(file, state == wire::kFileRemoved);
  } else if (state >= wire::kFileUnknown) {
    done = managing_.unknown(file);
  }
  if (!done) spdlog::error("file {}: {}", name_of(file), done.error().text);
}

}  // namespace pif::lfs
