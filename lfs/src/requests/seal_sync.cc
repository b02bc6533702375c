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

void SealSync::add(const ComponentPtr& component, Done done) {
  PIF_ASSERT(component->stage() == Stage::kSealing && component->files, component->file.value, component->stage());
  add({component->files, {}, context_.components.folder(component->file), std::move(done), {}},
      component->state.bytes());
}

void SealSync::add_parity(const ComponentPtr& component, std::shared_ptr<component::ParityFiles> parity,
                          std::uint64_t bytes, bool is_new, Done done) {
  PIF_ASSERT(parity != nullptr && (!is_new || component->files), component->file.value);
  add({is_new ? component->files : nullptr,
       std::move(parity),
       context_.components.folder(component->file),
       std::move(done),
       {}},
      bytes);
}

void SealSync::add_restored(const ComponentPtr& component, std::shared_ptr<component::Files> files,
                            std::shared_ptr<component::ParityFiles> parity, std::uint64_t bytes, Done done) {
  PIF_ASSERT(files != nullptr, component->file.value);
  add({std::move(files), std::move(parity), context_.components.folder(component->file), std::move(done), {}},
      bytes / (kSmallRestoredBytes / kSmallBytes));
}

Status SealSync::sync(const ComponentPtr& component) {
  return daemon::await<Status>(context_.fibers, [&](auto done) { add(component, std::move(done)); });
}

Status SealSync::sync_parity(const ComponentPtr& component, std::shared_ptr<component::ParityFiles> parity,
                             std::uint64_t bytes, bool is_new) {
  return daemon::await<Status>(
      context_.fibers, [&](auto done) { add_parity(component, std::move(parity), bytes, is_new, std::move(done)); });
}

Status SealSync::sync_restored(const ComponentPtr& component, std::shared_ptr<component::Files> files,
                               std::shared_ptr<component::ParityFiles> parity, std::uint64_t bytes) {
  return daemon::await<Status>(context_.fibers, [&](auto done) {
    add_restored(component, std::move(files), std::move(parity), bytes, std::move(done));
  });
}

Status SealSync::Item::sync() const {
  if (files) PIF_TRY(component::sync(*files));
  return parity ? component::sync(*parity) : Status();
}

Status SealSync::Item::check_written() const {
  if (files) PIF_TRY(component::check_written(*files));
  return parity ? component::check_written(*parity) : Status();
}

void SealSync::add(Item item, std::uint64_t bytes) {
  if (bytes < kSmallBytes) {
    waiting_.push_back(std::move(item));
    return;
  }
  std::vector<Item> alone;
  alone.push_back(std::move(item));
  submit(std::move(alone), false);
}

// One batch at a time: the longer a sync takes, the more share the next one. But nobody waits for a sync of all that
// takes long.
bool SealSync::may_begin() const {
  return under_way_ == 0 || (under_way_ < kBatchesMax && context_.now() - begun_ > kLong);
}

void SealSync::advance() {
  while (!waiting_.empty() && may_begin()) {
    std::vector<Item> items = std::exchange(waiting_, {});
    if (items.size() > kBatchMax) {
      const auto rest = items.begin() + static_cast<std::ptrdiff_t>(kBatchMax);
      waiting_.assign(std::make_move_iterator(rest), std::make_move_iterator(items.end()));
      items.resize(kBatchMax);
    }
    if (under_way_ > 0) all_again_ = std::max(all_again_, context_.now() + kLongPause);
    begun_ = context_.now();
    submit(std::move(items), true);
  }
}

void SealSync::submit(std::vector<Item> items, bool is_counted) {
  PIF_ASSERT(!items.empty() && items.size() <= kBatchMax, items.size());
  auto batch = std::make_shared<Batch>();
  batch->items = std::move(items);
  batch->begun = context_.now();
  batch->is_counted = is_counted;
  if (is_counted) ++under_way_;
  PIF_ASSERT(under_way_ <= kBatchesMax, under_way_);
  batch->is_all = batch->items.size() >= context_.config.sync_all_from && context_.now() >= all_again_;
  auto* storage = &context_.world.storage;
  context_.world.executor.submit([batch, storage, root = context_.config.root] { sync(*storage, root, *batch); },
                                 [this, batch] { finish(*batch); });
}

void SealSync::sync(component::Storage& storage, const std::string& root, Batch& batch) {
  if (!batch.is_all) return sync_each(storage, batch.items);
  const Status all = storage.sync_all(root);
  batch.is_unsupported = !all && all.error().code == Code::kUnsupported;
  if (!all) return sync_each(storage, batch.items);  // which says whose bytes were lost
  for (Item& item : batch.items) item.result = item.check_written();
}

void SealSync::sync_each(component::Storage& storage, std::vector<Item>& items) {
  std::map<std::string, Status> folders;
  for (Item& item : items) item.result = item.sync();
  for (Item& item : items) {
    const auto [folder, is_new] = folders.try_emplace(item.folder);
    if (is_new) folder->second = storage.sync_folder(item.folder);
    if (item.result) item.result = folder->second;
  }
}

void SealSync::finish(Batch& batch) {
  PIF_ASSERT(!batch.is_counted || under_way_ > 0, under_way_);
  if (batch.is_counted) --under_way_;
  if (batch.is_unsupported) {
    all_again_ = kNever;
  } else if (batch.is_all && context_.now() - batch.begun > kLong) {
    spdlog::info("a sync of the whole disk took long: for a while components are synced one by one");
    all_again_ = std::max(all_again_, context_.now() + kLongPause);
  }
  for (Item& item : batch.items) item.done(item.result);
}

}  // namespace pif::lfs
