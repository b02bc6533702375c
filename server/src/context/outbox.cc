#include "context/outbox.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "context/server_context.h"
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
    Line& line = line_to(node);
    if (line.committed.size() < kCommittedQueued) line.committed.push_back(file);
    line.news.notify();
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
  for (const std::uint32_t node : doomed.waiting) {
    Line& line = line_to(node);
    line.removed.push_back(file);
    line.news.notify();
  }
}

Outbox::Line& Outbox::line_to(std::uint32_t node) {
  const auto [at, is_new] = lines_.try_emplace(node, context_.fibers);
  if (is_new) context_.fibers.start<&Outbox::keep_telling>(*this, node);
  return at->second;
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
  context_.rows.on_abort([this, files] { released_.insert(released_.end(), files.begin(), files.end()); });
  for (const std::uint64_t file : files) {
    PIF_TRY_VALUE(auto row, context_.rows.file(file));
    if (!row || row->state() != kDoomed || row->expiry() <= wall) continue;
    row->set_expiry(0);
    PIF_TRY(context_.rows.put_file(file, *row));
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
  PIF_ASSERT(!context_.rows.writing(), doomed_.size());
  more_in_table_ = false;
  return context_.rows.scan(kFiles, {}, [&](std::string_view key, std::string_view payload) {
    proto::StoredFile row;
    if (row.ParseFromArray(payload.data(), static_cast<int>(payload.size())) && row.state() == kDoomed) {
      add(kv::u64_of_key(key), row, wall);
    }
    return !more_in_table_;
  });
}

// ---- on the node's fiber ----

// Again, after a pause, until it has answered. What was committed is told once: the LFS asks about it by itself.
void Outbox::keep_telling(std::uint32_t node) {
  Line& line = lines_.at(node);
  for (;;) {
    while (line.is_empty()) line.news.wait();
    context_.wait_to_change();
    const Node* const known = context_.registry.find(node);
    const bool is_there = known != nullptr && known->ever && context_.registry.is_heard(*known, context_.now);
    const Batch batch = is_there ? take(line) : Batch();
    if (is_there && tell(node, batch)) continue;
    line.removed.insert(line.removed.begin(), batch.removed.begin(), batch.removed.end());
    context_.pause_for(kRetryPause);
  }
}

Outbox::Batch Outbox::take(Line& line) {
  Batch batch;
  for (; !line.removed.empty() && batch.removed.size() < kSettleIdsMax; line.removed.pop_front())
    batch.removed.push_back(line.removed.front());
  for (; !line.committed.empty() && batch.committed.size() < kSettleIdsMax; line.committed.pop_front())
    batch.committed.push_back(line.committed.front());
  PIF_ASSERT(!batch.removed.empty() || !batch.committed.empty());
  return batch;
}

Status Outbox::tell(std::uint32_t node, const Batch& batch) {
  PIF_ASSERT(context_.fibers.in_fiber() && batch.removed.size() <= kSettleIdsMax, node, batch.removed.size());
  PIF_TRY(context_.turn.commit());  // what was released in this turn is noted as that before anybody is told
  if (!context_.may_change()) return fail(Code::kRetry, "commits are held");
  if (auto sent = send(node, batch); !sent) {
    spdlog::warn("{} was not told of files: {}", node, sent.error().to_string());
    return sent;
  }
  context_.wait_to_change();
  const Status noted = note_told(node, batch.removed);
  if (!noted) context_.rows.break_with(noted.error());
  PIF_TRY(context_.turn.commit());
  return noted;
}

Status Outbox::send(std::uint32_t node, const Batch& batch) {
  const Node* const known = context_.registry.find(node);
  PIF_ASSERT(known != nullptr && known->info.id() == node, node);
  PIF_TRY_VALUE(const net::PeerId peer, context_.world.messenger.connect(known->info.endpoints(), net::Route::kAuto));
  PIF_TRY(context_.caller.call(peer, packet_of(batch), kSettleTimeout, known->info.name()));
  return {};
}

net::Packet Outbox::packet_of(const Batch& batch) const {
  net::Packet packet;
  const Config& config = context_.config;
  const std::int64_t until = context_.wall + kCapabilitySeconds;
  packet.envelope.set_capability(
      mint(config.key, Capability{.uid = config.owner_uid, .rights = kMayManage, .expiry = until}));
  packet.envelope.set_credential(
      mint(config.key, Credential{SessionId(), config.owner_uid, {config.owner_uid}, until}));
  proto::Settle& settle = *packet.envelope.mutable_settle();
  *settle.mutable_moment() = context_.numbers.moment();
  for (const std::uint64_t file : batch.removed) {
    const auto doomed = doomed_.find(file);
    doomed != doomed_.end() && doomed->second.aborted ? settle.add_aborted(file) : settle.add_removed(file);
  }
  for (const std::uint64_t file : batch.committed) settle.add_committed(file);
  return packet;
}

// The row keeps all nodes until the last has answered: to tell one twice is harmless, and costs less than a write each.
Status Outbox::note_told(std::uint32_t node, const std::vector<std::uint64_t>& files) {
  context_.rows.on_abort([this, node, files] { untold(node, files); });
  for (const std::uint64_t file : files) {
    const auto found = doomed_.find(file);
    if (found == doomed_.end() || std::erase(found->second.waiting, node) == 0) continue;
    PIF_ASSERT(found->second.expiry == 0, file, found->second.expiry);  // nothing is sent about what is held
    if (!found->second.waiting.empty()) continue;
    PIF_TRY(context_.rows.erase_file(file));
    context_.rows.on_commit([this, file] {
      const std::size_t erased = doomed_.erase(file);
      PIF_ASSERT(erased == 1 && doomed_count_ > doomed_.size(), file, doomed_count_, doomed_.size());
      --doomed_count_;
    });
  }
  return {};
}

// The turn in which its answer was noted failed.
void Outbox::untold(std::uint32_t node, const std::vector<std::uint64_t>& files) {
  for (const std::uint64_t file : files) {
    const auto found = doomed_.find(file);
    if (found == doomed_.end()) continue;
    auto& waiting = found->second.waiting;
    if (std::find(waiting.begin(), waiting.end(), node) == waiting.end()) waiting.push_back(node);
  }
}

}  // namespace pif::server
