#include "pif/access/lfs_links.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "pif/access/requests.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::access {

namespace {

constexpr std::uint64_t kWindowRequestsDefault = 64;  // of an LFS that says nothing: far from what it would not take
constexpr std::uint64_t kWindowRequestsMax = 1024;    // whatever an LFS says: a quarter of what a transport queues
constexpr Duration kHelloIsNews =
    std::chrono::seconds(1);  // who started it looks at once; later it says nothing about now

}  // namespace

LfsLinks::LfsLinks(net::Messenger& messenger, net::Calls& calls, Options options)
    : messenger_(messenger), calls_(calls), options_(std::move(options)) {}

LfsLinks::~LfsLinks() {
  PIF_ASSERT(requests_.empty(), requests_.size());
  for (const auto& [key, hello] : hellos_) calls_.forget(hello.call);
}

// ---- Hello ----------------------------------------------------------------------------------------------------------

Status LfsLinks::start_hello(const proto::NodeInfo& node, bool bulk, bool second, net::Route route) {
  const HelloKey key{node.id(), bulk};
  PIF_ASSERT(!hellos_.contains(key), node.id(), bulk);
  auto peer = messenger_.connect(endpoints_of(node), bulk ? net::Route::kIpc : route);
  if (!peer) {
    return fail(peer.error().code, fmt::format("cannot reach LFS {}: {}", node.name(), peer.error().text), node.name());
  }
  net::Packet packet;
  packet.envelope.mutable_hello()->set_program(options_.program);
  packet.envelope.set_credential(credential_);
  Hello hello;
  hello.peer = *peer;
  hello.second = second;
  hello.route = route;
  hello.call = calls_.start(*peer, std::move(packet), options_.timeout, node.name(),
                            [this, key, name = node.name(), peer = *peer](Result<net::Packet> reply) {
                              Hello& ended = hellos_.at(key);
                              PIF_ASSERT(!ended.ended.has_value(), key.first);
                              ended.ended = finish_hello(key, name, peer, std::move(reply));
                              ended.ended_at = clock().now();
                            });
  hellos_.emplace(key, std::move(hello));
  return {};
}

Status LfsLinks::finish_hello(const HelloKey& key, const std::string& name, net::PeerId peer,
                              Result<net::Packet> reply) {
  if (!reply) {
    messenger_.disconnect(peer);
    Error error = std::move(reply.error());
    if (error.node.empty()) error.node = name;
    return fail(std::move(error));
  }
  const proto::HelloReply& answer = reply->envelope.hello_reply();
  const bool is_foreign = !cluster_.empty() && answer.cluster() != cluster_;
  const bool is_other = !name.empty() && !answer.node().empty() && answer.node() != name;
  if (is_foreign || is_other) {
    messenger_.disconnect(peer);
    hellos_.at(key).is_stranger = true;
    return fail(Code::kInvalid,
                is_foreign ? fmt::format("the LFS at this address belongs to file system {}, not to {}",
                                         answer.cluster(), cluster_)
                           : fmt::format("{} answers at the address of {}: look at pif.toml", answer.node(), name),
                name);
  }
  const auto via = messenger_.identity(peer).via;
  Link link;
  link.peer = peer;
  link.node = key.first;
  link.name = name;
  link.window_bytes = std::max<std::uint64_t>(answer.window_bytes(), kBulkBytes);
  const std::uint64_t requests = answer.window_requests();
  link.window_requests = requests == 0 ? kWindowRequestsDefault : std::min(requests, kWindowRequestsMax);
  link.passes_descriptors = via == net::Identity::Via::kUnix || via == net::Identity::Via::kSimulated;
  link.small_packets = link.passes_descriptors;
  link.generation = ++generation_;
  note_there(key.first);
  (key.second ? bulk_links_ : links_)[key.first] = std::move(link);
  return {};
}

// The first call starts the Hello, later ones look how it ended.
Result<const Link*> LfsLinks::connect(const proto::NodeInfo& node, bool bulk) {
  const HelloKey key{node.id(), bulk};
  auto found = hellos_.find(key);
  if (found != hellos_.end() && found->second.ended && clock().now() - found->second.ended_at > kHelloIsNews) {
    hellos_.erase(found);
    found = hellos_.end();
  }
  if (found == hellos_.end()) {
    PIF_TRY(check_not_silent(node.id()));
    PIF_TRY(start_hello(node, bulk, false, options_.route));
    return nullptr;
  }
  if (!found->second.ended) return nullptr;
  const Hello hello = std::move(found->second);
  hellos_.erase(found);
  const Status& ended = *hello.ended;
  if (ended)
    return fail(Code::kUnavailable, "the connection was lost at once", node.name());  // else there would be a link
  if (hello.is_stranger && !bulk && hello.route == net::Route::kAuto && !endpoints_of(node).tcp().empty()) {
    PIF_TRY(start_hello(node, bulk, hello.second, net::Route::kTcp));
    return nullptr;
  }
  const bool is_refused = ended.error().code == Code::kBadCapability;
  if (is_refused && !hello.second && renew_credential_ && renew_credential_()) {
    PIF_TRY(start_hello(node, bulk, true, hello.route));
    return nullptr;
  }
  if (bulk || !may_move(node) || !(hello.is_stranger || is_lost(ended.error().code)))
    return cannot_reach(node, ended.error());
  if (!hello.second && find_again_(node, options_.timeout)) {
    PIF_TRY(start_hello(node, bulk, true, options_.route));
    return nullptr;
  }
  doubted_.insert(node.id());
  return cannot_reach(node, ended.error());
}

// Several steps of one operation ask for the same LFS, the last of them to clean up: one wait is for all of them.
Status LfsLinks::check_not_silent(std::uint32_t node_id) {
  const auto found = silent_.find(node_id);
  if (found == silent_.end()) return {};
  if (clock().now() - found->second.since < kSilenceIsNews) return fail(found->second.error);
  silent_.erase(found);
  return {};
}

tl::unexpected<Error> LfsLinks::cannot_reach(const proto::NodeInfo& node, const Error& error) {
  if (error.code == Code::kTimeout) silent_[node.id()] = {clock().now(), error};
  return fail(error);
}

// ---- links ----------------------------------------------------------------------------------------------------------

Result<const Link*> LfsLinks::link(const proto::NodeInfo& node, bool bulk) {
  if (!doubted_.empty() && doubted_.erase(node.id()) > 0 && find_again_ && find_again_(node, options_.timeout))
    drop(node.id(), peer_of(node.id()));
  if (bulk) {
    if (const auto found = bulk_links_.find(node.id()); found != bulk_links_.end()) {
      hellos_.erase({node.id(), true});
      return &found->second;
    }
  }
  const auto found = links_.find(node.id());
  if (found == links_.end()) return connect(node, false);
  hellos_.erase({node.id(), false});  // it ended well: what is lost later is another matter
  const Link& link = found->second;
  PIF_ASSERT(link.node == node.id() && link.window_requests > 0, link.node, node.id(), link.window_requests);
  if (!bulk || !link.small_packets || endpoints_of(node).ipc().empty()) return &link;
  return connect(node, true);
}

void LfsLinks::adopt(std::uint32_t node_id, std::string name, net::PeerId peer, std::uint64_t window_bytes) {
  PIF_ASSERT(!links_.contains(node_id) && peer != 0, node_id, peer);
  Link& link = links_[node_id];
  link.peer = peer;
  link.node = node_id;
  link.name = std::move(name);
  link.window_bytes = window_bytes;
  link.window_requests = kWindowRequestsDefault;
  link.passes_descriptors = true;
  link.generation = ++generation_;
}

net::PeerId LfsLinks::peer_of(std::uint32_t node_id) const {
  const auto found = links_.find(node_id);
  return found == links_.end() ? 0 : found->second.peer;
}

void LfsLinks::drop(std::uint32_t node_id, net::PeerId peer) {
  const net::PeerId now = peer_of(node_id);
  if (now != 0 && now != peer) return;
  for (auto* links : {&links_, &bulk_links_}) {
    const auto found = links->find(node_id);
    if (found == links->end()) continue;
    messenger_.disconnect(found->second.peer);
    links->erase(found);
  }
}

void LfsLinks::closed(net::PeerId peer) {
  for (auto* links : {&links_, &bulk_links_}) {
    std::erase_if(*links, [&](const auto& entry) { return entry.second.peer == peer; });
  }
}

// ---- LFSs that were started again: over tcp they are at another port then ------------------------------------------

const proto::Endpoints& LfsLinks::endpoints_of(const proto::NodeInfo& node) const {
  const auto moved = moved_.find(node.id());
  return moved == moved_.end() ? node.endpoints() : moved->second;
}

bool LfsLinks::may_move(const proto::NodeInfo& node) const {
  const bool any_route = options_.route == net::Route::kAuto && !endpoints_of(node).tcp().empty();
  return find_again_ && (options_.route == net::Route::kTcp || any_route);
}

bool LfsLinks::found_elsewhere(const proto::NodeInfo& node, net::PeerId peer, Duration left) {
  const auto known = links_.find(node.id());
  if (!may_move(node) || (known != links_.end() && known->second.passes_descriptors)) return false;
  if (known == links_.end() || known->second.peer != peer) return left > Duration::zero();  // others have found out
  if (left <= Duration::zero() || !find_again_(node, left)) {
    doubted_.insert(node.id());
    return false;
  }
  drop(node.id(), peer);
  return true;
}

// ---- requests of all operations ------------------------------------------------------------------------------------

void LfsLinks::remove(Requests& requests) {
  const auto found = std::find(requests_.rbegin(), requests_.rend(), &requests);  // mostly the last one
  PIF_ASSERT(found != requests_.rend(), requests_.size());
  requests_.erase(std::next(found).base());
}

bool LfsLinks::collect_others(const Requests& waiting) {
  bool any = false;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] != &waiting) any = requests_[i]->collect() || any;
  }
  return any;
}

}  // namespace pif::access
