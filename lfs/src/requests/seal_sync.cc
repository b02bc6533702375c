#include "requests/seal_sync.h"

#include <algorithm>
#include <map>

#include <spdlog/spdlog.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kSmallBytes = 1u << 20;          // from here on a component is synced by itself
constexpr std::uint64_t kSmallRestoredBytes = 8u << 20;  // the same of one that comes back
constexpr std::size_t kBatchMax = 1024;              // components; bounds how long the first one waits for the last one
constexpr unsigned kBatchesMax = 2;                  // under way: the executor's other threads are for large ones
constexpr Duration kLong = std::chrono::seconds(1);  // of a sync of all: others' bytes are written, too
constexpr Duration kLongPause = std::chrono::seconds(30);

}  // namespace

SealSync::SealSync(LfsContext& context) : context_(context), news_(context.fibers), ended_(context.fibers) {
  context.fibers.start<&SealSync::serve>(*this);
}

Status SealSync::sync(const ComponentPtr& component) {
  PIF_ASSERT(component->lock.is_held(Mode::kSeal) && component->files, component->file.value);
  return sync(Item{component->files, {}, context_.components.folder(component->file)}, component->state.bytes());
}

Status SealSync::sync_parity(const ComponentPtr& component, std::shared_ptr<component::ParityFiles> parity,
                             std::uint64_t bytes, bool is_new) {
  PIF_ASSERT(parity != nullptr && (!is_new || component->files), component->file.value);
  const auto files = is_new ? component->files : nullptr;
  return sync(Item{files, std::move(parity), context_.components.folder(component->file)}, bytes);
}

Status SealSync::sync_restored(const ComponentPtr& component, std::shared_ptr<component::Files> files,
                               std::shared_ptr<component::ParityFiles> parity, std::uint64_t bytes) {
  PIF_ASSERT(files != nullptr, component->file.value);
  return sync(Item{std::move(files), std::move(parity), context_.components.folder(component->file)},
              bytes / (kSmallRestoredBytes / kSmallBytes));
}

Status SealSync::Item::sync() const {
  if (files) PIF_TRY(component::sync(*files));
  return parity ? component::sync(*parity) : Status();
}

Status SealSync::Item::check_written() const {
  if (files) PIF_TRY(component::check_written(*files));
  return parity ? component::check_written(*parity) : Status();
}

Status SealSync::sync(Item item, std::uint64_t bytes) {
  Item* const one = &item;
  if (bytes >= kSmallBytes) {
    context_.disk([&] { sync_each({&one, 1}); });
    return item.result;
  }
  item.wait = context_.fibers.begin_wait();
  waiting_.push_back(one);
  news_.notify();
  context_.fibers.wait(item.wait);
  return item.result;
}

void SealSync::serve() {
  for (;;) {
    while (waiting_.empty()) news_.wait();
    context_.fibers.settle();  // what comes in this turn is synced together
    wait_for_turn();
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kBatchMax));
    const std::vector<Item*> batch(waiting_.begin(), end);
    waiting_.erase(waiting_.begin(), end);
    if (under_way_ > 0) all_again_ = std::max(all_again_, context_.now() + kLongPause);
    begun_ = context_.now();
    ++under_way_;
    PIF_ASSERT(!batch.empty() && under_way_ <= kBatchesMax, under_way_);
    context_.fibers.start<&SealSync::end_batch>(*this, batch);
  }
}

void SealSync::end_batch(const std::vector<Item*>& batch) {
  sync_batch(batch);
  PIF_ASSERT(under_way_ > 0 && under_way_ <= kBatchesMax, under_way_);
  --under_way_;
  ended_.notify();
}

// One batch at a time: the longer a sync takes, the more share the next one. But nobody waits for a sync of all that
// takes long.
void SealSync::wait_for_turn() {
  while (under_way_ > 0) {
    const bool is_long = context_.now() > begun_ + kLong;
    if (is_long && under_way_ < kBatchesMax) return;
    ended_.wait(is_long ? kNever : begun_ + kLong + std::chrono::nanoseconds(1));
  }
}

void SealSync::sync_batch(Batch batch) {
  const Time begun = context_.now();
  const bool is_all = batch.size() >= context_.config.sync_all_from && begun >= all_again_;
  bool has_all = is_all;
  context_.disk([&] {
    if (is_all) has_all = sync_all(batch);
    if (!is_all) sync_each(batch);
  });
  if (is_all && !has_all) {
    all_again_ = kNever;
  } else if (is_all && context_.now() - begun > kLong) {
    spdlog::info("a sync of the whole disk took long: for a while components are synced one by one");
    all_again_ = std::max(all_again_, context_.now() + kLongPause);
  }
  PIF_ASSERT(!batch.empty() && batch.size() <= kBatchMax, batch.size());
  for (const Item* item : batch) context_.fibers.wake(item->wait);
}

// ---- away from the loop --------------------------------------------------------------------------------------------

bool SealSync::sync_all(Batch batch) const {
  const Status all = context_.world.storage.sync_all(context_.config.root);
  if (!all) {
    sync_each(batch);  // which says whose bytes were lost
    return all.error().code != Code::kUnsupported;
  }
  for (Item* item : batch) item->result = item->check_written();
  return true;
}

void SealSync::sync_each(Batch batch) const {
  std::map<std::string, Status> folders;
  for (Item* item : batch) item->result = item->sync();
  for (Item* item : batch) {
    const auto [folder, is_new] = folders.try_emplace(item->folder);
    if (is_new) folder->second = context_.world.storage.sync_folder(item->folder);
    if (item->result) item->result = folder->second;
  }
}

}  // namespace pif::lfs
