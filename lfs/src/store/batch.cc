#include "store/batch.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kItemsMax = 1024;  // per transaction: far below kv::kTransactionBytesMax whatever the width

}  // namespace

void CatalogueBatch::update(ComponentPtr component, Change change, Done done) {
  PIF_ASSERT(component && change);
  items_.push_back({std::move(component), std::move(change), {}, std::move(done)});
}

void CatalogueBatch::leave(ComponentPtr component, Write write, Done done) {
  PIF_ASSERT(write);
  items_.push_back({std::move(component), {}, std::move(write), std::move(done)});
}

void CatalogueBatch::erase(ComponentPtr component, Done done) {
  const FileId file = component->file;
  leave(
      std::move(component), [file](kv::Transaction& transaction) { return catalogue::erase(transaction, file); },
      std::move(done));
}

void CatalogueBatch::quarantine(ComponentPtr component, Done done) {
  auto write = [c = component, since = clock_.wall_seconds()](kv::Transaction& transaction) {
    return catalogue::quarantine(transaction, c->state, since);
  };
  leave(std::move(component), std::move(write), std::move(done));
}

void CatalogueBatch::restore(const proto::ComponentState& state, Done done) {
  leave(
      {},
      [state](kv::Transaction& transaction) -> Status {
        proto::ComponentState committed = state;
        committed.set_state(kCommitted);
        PIF_TRY(catalogue::put(transaction, committed));
        return catalogue::end_quarantine(transaction, FileId(state.shape().file()));
      },
      std::move(done));
}

void CatalogueBatch::end_quarantine(FileId file, Done done) {
  leave(
      {}, [file](kv::Transaction& transaction) { return catalogue::end_quarantine(transaction, file); },
      std::move(done));
}

void CatalogueBatch::keep_view(std::string packed, Done done) {
  leave(
      {},
      [packed = std::move(packed)](kv::Transaction& transaction) { return catalogue::put_view(transaction, packed); },
      std::move(done));
}

void CatalogueBatch::keep_scrub(const catalogue::ScrubRecord& record, Done done) {
  leave(
      {}, [record](kv::Transaction& transaction) { return catalogue::put_scrub(transaction, record); },
      std::move(done));
}

void CatalogueBatch::keep_lacking(proto::StoredLacking lacking, Done done) {
  leave(
      {},
      [lacking = std::move(lacking)](kv::Transaction& transaction) {
        return catalogue::put_lacking(transaction, lacking);
      },
      std::move(done));
}

void CatalogueBatch::note(Done done) {
  leave(
      {}, [](kv::Transaction&) { return Status(); }, std::move(done));
}

Status CatalogueBatch::commit(const ComponentPtr& component, Change change) {
  PIF_ASSERT(component != nullptr && change != nullptr);
  return daemon::await<Status>(fibers_, [&](auto done) { update(component, std::move(change), std::move(done)); });
}
Status CatalogueBatch::commit_erase(const ComponentPtr& component) {
  return daemon::await<Status>(fibers_, [&](auto done) { erase(component, std::move(done)); });
}
Status CatalogueBatch::commit_quarantine(const ComponentPtr& component) {
  return daemon::await<Status>(fibers_, [&](auto done) { quarantine(component, std::move(done)); });
}
Status CatalogueBatch::commit_restore(const proto::ComponentState& state) {
  return daemon::await<Status>(fibers_, [&](auto done) { restore(state, std::move(done)); });
}
Status CatalogueBatch::commit_end_quarantine(FileId file) {
  return daemon::await<Status>(fibers_, [&](auto done) { end_quarantine(file, std::move(done)); });
}
Status CatalogueBatch::commit_view(const std::string& packed) {
  return daemon::await<Status>(fibers_, [&](auto done) { keep_view(packed, std::move(done)); });
}
Status CatalogueBatch::commit_scrub(const catalogue::ScrubRecord& record) {
  return daemon::await<Status>(fibers_, [&](auto done) { keep_scrub(record, std::move(done)); });
}
Status CatalogueBatch::commit_lacking(const proto::StoredLacking& lacking) {
  return daemon::await<Status>(fibers_, [&](auto done) { keep_lacking(lacking, std::move(done)); });
}
Status CatalogueBatch::commit_numbers() {
  return daemon::await<Status>(fibers_, [&](auto done) { note(std::move(done)); });
}

void CatalogueBatch::flush() {
  // A call back may ask for more; that is the next transaction.
  std::vector<Item> items = std::exchange(items_, {});
  for (std::size_t begin = 0; begin < items.size(); begin += kItemsMax) {
    const std::size_t end = std::min(items.size(), begin + kItemsMax);
    std::vector<Item> part(std::make_move_iterator(items.begin() + static_cast<std::ptrdiff_t>(begin)),
                           std::make_move_iterator(items.begin() + static_cast<std::ptrdiff_t>(end)));
    PIF_ASSERT(begin < end && part.size() == end - begin, begin, end);
    const Status committed = commit(part);
    if (health_ != nullptr) health_->note(DiskCall::kChange, "the catalogue", 0, committed);
    const Status stale = fail(Code::kStaleFile, "the file was deleted meanwhile");
    for (auto& item : part)
      if (item.done) item.done(item.stale ? stale : committed);
  }
}

Status CatalogueBatch::commit(std::vector<Item>& items) {
  PIF_TRY_VALUE(auto transaction, components_.catalogue().write());
  std::unordered_map<Component*, proto::ComponentState> changed;
  std::vector<ComponentPtr> erased;
  const auto is_erased = [&](const ComponentPtr& c) {
    return c->is_removed() || std::find(erased.begin(), erased.end(), c) != erased.end();
  };
  for (auto& item : items) {
    if (!item.component) {
      PIF_TRY(item.write(*transaction));
    } else if (item.component->is_removed()) {
      item.stale = item.change != nullptr;
    } else if (item.change) {
      item.change(changed.try_emplace(item.component.get(), item.component->state).first->second);
    } else {
      PIF_TRY(item.write(*transaction));
      erased.push_back(item.component);
    }
  }
  for (const auto& [component, state] : changed) {
    PIF_ASSERT(state.shape().file() == component->file.value, state.shape().file(), component->file.value);
    const bool gone =
        std::any_of(erased.begin(), erased.end(), [c = component](const auto& e) { return e.get() == c; });
    if (!gone) PIF_TRY(catalogue::put(*transaction, state));
  }
  PIF_TRY_VALUE(const auto record, numbers_.put(*transaction));
  PIF_TRY(transaction->commit());
  PIF_ASSERT(record.number() > numbers_.durable(), record.number(), numbers_.durable());
  numbers_.committed(record);
  for (auto& item : items)
    if (item.change && is_erased(item.component)) item.stale = true;
  for (const auto& [component, state] : changed) components_.set_state(*component, state);
  for (const auto& component : erased)
    if (!component->is_removed()) components_.forget(*component);
  return {};
}

}  // namespace pif::lfs
