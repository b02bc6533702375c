#include "context/outbox.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "directory/opens.h"
#include "pif/base/assert.h"
#include "pif/base/capability.h"
#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr Duration kSettleTimeout = std::chrono::seconds(10);
constexpr Duration kRetryPause = std::chrono::seconds(1);

}  // namespace

void Outbox::committed(std::uint64_t file, const proto::FileLayout& layout) {
  for (const std::uint32_t node : layout.nodes()) {
    Line& line = lines_[node];
    if (line.committed.size() < kCommittedQueued) line.committed.push_back(file);
  }
}

void Outbox::doomed(std::uint64_t file, const proto::FileLayout& layout, bool aborted, bool held) {
  ++doomed_count_;
  add(file, {{layout.nodes().begin(), layout.nodes().end()}, held ? INT64_MAX : 0, aborted});
}

void Outbox::add(std::uint64_t file, const proto::StoredFile& row, std::int64_t wall) {
  add(file, {{row.waiting().begin(), row.waiting().end()}, row.expiry() > wall ? row.expiry() : 0, row.aborted()});
}

void Outbox::add(std::uint64_t file, Doomed doomed) {
  if (doomed_.size() >= kDoomedInMemory) {
    more_in_table_ = true;
    return;
  }
  const auto [at, is_new] = doomed_.try_emplace(file);
  if (!is_new) return;
  at->second = std::move(doomed);
  if (at->second.expiry != 0) {
    held_.insert(file);
    PIF_ASSERT(held_.size() <= doomed_.size(), held_.size(), doomed_.size());
  } else {
    queue(file, at->second);
  }
}

void Outbox::queue(std::uint64_t file, const Doomed& doomed) {
  for (const std::uint32_t node : doomed.waiting) lines_[node].removed.push_back(file);
}

void Outbox::release(std::uint64_t file) {
  if (held_.erase(file) == 0) return;
  const auto found = doomed_.find(file);
  PIF_ASSERT(found != doomed_.end() && found->second.expiry != 0, file);
  found->second.expiry = 0;
  released_.push_back(file);
  queue(file, found->second);
}

Status Outbox::store_released(std::int64_t wall) {
  const std::vector<std::uint64_t> files = std::exchange(released_, {});
  if (files.empty()) return {};
  rows_.on_abort([this, files] { released_.insert(released_.end(), files.begin(), files.end()); });
  for (const std::uint64_t file : files) {
    PIF_TRY_VALUE(auto row, rows_.file(file));
    if (!row || row->state() != kDoomed || row->expiry() <= wall) continue;
    row->set_expiry(0);
    PIF_TRY(rows_.put_file(file, *row));
  }
  return {};
}

void Outbox::loaded(std::uint64_t file, const proto::StoredFile& row, std::int64_t wall) {
  ++doomed_count_;
  add(file, row, wall);
}

void Outbox::extend_held(std::uint64_t file, std::int64_t expiry) {
  const auto found = doomed_.find(file);
  if (found != doomed_.end() && found->second.expiry != 0)
    found->second.expiry = std::max(found->second.expiry, expiry);
}

// What is not in memory is as its row says: doomed in this turn, or one of too many.
bool Outbox::is_held(std::uint64_t file, const proto::StoredFile& row, std::int64_t wall) const {
  PIF_ASSERT(row.state() == kDoomed, file, row.state());
  const auto found = doomed_.find(file);
  return found == doomed_.end() ? row.expiry() > wall : found->second.expiry != 0;
}

void Outbox::expire_held(std::int64_t wall) {
  std::vector<std::uint64_t> expired;
  for (const std::uint64_t file : held_) {
    const auto found = doomed_.find(file);
    PIF_ASSERT(found != doomed_.end(), file);
    if (found->second.expiry <= wall) expired.push_back(file);
  }
  std::sort(expired.begin(), expired.end());
  for (const std::uint64_t file : expired) release(file);
}

Status Outbox::refill(std::int64_t wall) {
  if (!more_in_table_ || doomed_.size() > kDoomedInMemory / 2) return {};
  PIF_ASSERT(!rows_.writing(), doomed_.size());
  more_in_table_ = false;
  return rows_.scan(kFiles, {}, [&](std::string_view key, std::string_view payload) {
    proto::StoredFile row;
    if (row.ParseFromArray(payload.data(), static_cast<int>(payload.size())) && row.state() == kDoomed) {
      add(kv::u64_of_key(key), row, wall);
    }
    return !more_in_table_;
  });
}

void Outbox::pump(Time now, std::int64_t wall, const proto::Moment& moment) {
  calls_.expire();
  for (auto& [node, line] : lines_) {
    if (line.under_way || line.not_before > now || (line.removed.empty() && line.committed.empty())) continue;
    const Node* known = registry_.find(node);
    if (known == nullptr || !known->ever || !registry_.is_heard(*known, now)) continue;
    send(node, *known, line, now, wall, moment);
  }
}

void Outbox::send(std::uint32_t node, const Node& known, Line& line, Time now, std::int64_t wall,
                  const proto::Moment& moment) {
  PIF_ASSERT(!line.under_way && known.info.id() == node, node, known.info.id());
  line.not_before = now + kRetryPause;  // taken back by a good answer
  auto peer = messenger_.connect(known.info.endpoints(), net::Route::kAuto);
  if (!peer) return;
  net::Packet packet;
  Capability manage{.uid = config_.owner_uid, .rights = kMayManage, .expiry = wall + kCapabilitySeconds};
  packet.envelope.set_capability(mint(config_.key, manage));
  packet.envelope.set_credential(
      mint(config_.key, Credential{SessionId(), config_.owner_uid, {config_.owner_uid}, wall + kCapabilitySeconds}));
  proto::Settle& settle = *packet.envelope.mutable_settle();
  *settle.mutable_moment() = moment;
  std::vector<std::uint64_t> removed;
  for (; !line.removed.empty() && removed.size() < kSettleIdsMax; line.removed.pop_front()) {
    removed.push_back(line.removed.front());
  }
  for (const std::uint64_t file : removed) {
    const auto doomed = doomed_.find(file);
    doomed != doomed_.end() && doomed->second.aborted ? settle.add_aborted(file) : settle.add_removed(file);
  }
  for (; !line.committed.empty() && settle.committed_size() < static_cast<int>(kSettleIdsMax);
       line.committed.pop_front()) {
    settle.add_committed(line.committed.front());
  }
  PIF_ASSERT(!removed.empty() || settle.committed_size() > 0, node);
  line.under_way = true;
  calls_.start(*peer, std::move(packet), kSettleTimeout, known.info.name(),
               [this, node, ids = std::move(removed)](Result<net::Packet> reply) mutable {
                 if (!reply) spdlog::warn("{} was not told of files: {}", node, reply.error().to_string());
                 answers_.push_back({node, std::move(ids), reply.has_value()});
               });
}

Status Outbox::apply_answers() {
  Status all;
  for (Answer& answer : std::exchange(answers_, {})) {  // every one: a node whose answer is lost is never asked again
    if (auto applied = apply(answer); !applied) all = std::move(applied);
  }
  return all;
}

Status Outbox::apply(Answer& answer) {
  Line& line = lines_[answer.node];
  PIF_ASSERT(line.under_way, answer.node);
  line.under_way = false;
  if (!answer.good) {  // again, after the pause; what was committed the LFS asks about by itself
    line.removed.insert(line.removed.begin(), answer.removed.begin(), answer.removed.end());
    return {};
  }
  rows_.on_commit([&line] { line.not_before = Time{}; });  // else it is asked again, after the pause
  rows_.on_abort([this, node = answer.node, ids = answer.removed] { untold(ids, node); });
  for (const std::uint64_t file : answer.removed) {
    const auto found = doomed_.find(file);
    if (found == doomed_.end() || std::erase(found->second.waiting, answer.node) == 0) continue;
    PIF_ASSERT(found->second.expiry == 0, file, found->second.expiry);  // nothing is sent about what is held
    if (!found->second.waiting.empty()) continue;
    // The row keeps all nodes until the last has answered: to tell one twice is harmless, and costs less than a write
    // each.
    PIF_TRY(rows_.erase_file(file));
    rows_.on_commit([this, file] {
      const std::size_t erased = doomed_.erase(file);
      PIF_ASSERT(erased == 1 && doomed_count_ > doomed_.size(), file, doomed_count_, doomed_.size());
      --doomed_count_;
    });
  }
  return {};
}

// The turn in which the node's answer was taken failed.
void Outbox::untold(const std::vector<std::uint64_t>& files, std::uint32_t node) {
  for (const std::uint64_t file : files) {
    const auto found = doomed_.find(file);
    if (found == doomed_.end()) continue;
    found->second.waiting.push_back(node);
    lines_[node].removed.push_back(file);
  }
}

}  // namespace pif::server
