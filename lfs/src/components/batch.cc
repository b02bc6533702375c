#include "components/batch.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kItemsMax = 1024;  // per transaction: far below kv::kTransactionBytesMax whatever the width

}  // namespace

Status CatalogueBatch::commit(const ComponentPtr& component, Change change) {
  PIF_ASSERT(component != nullptr && change != nullptr);
  const auto outcome = await({{component, std::move(change), {}, {}}});
  if (outcome->is_stale) return fail(Code::kStaleFile, "the file was deleted meanwhile");
  return outcome->status;
}

Status CatalogueBatch::commit_each(const std::vector<ComponentPtr>& components, const ChangeOf& change) {
  if (components.empty()) return {};
  std::vector<Item> items;
  for (const auto& component : components)
    items.push_back({component, [&c = *component, &change](proto::ComponentState& s) { change(c, s); }, {}, {}});
  return await(std::move(items))->status;
}

Status CatalogueBatch::commit_write(ComponentPtr component, Write write) {
  PIF_ASSERT(write);
  return await({{std::move(component), {}, std::move(write), {}}})->status;
}

Status CatalogueBatch::commit_erase(const ComponentPtr& component) {
  const FileId file = component->file;
  return commit_write(component, [file](kv::Transaction& t) { return catalogue::erase(t, file); });
}

Status CatalogueBatch::commit_quarantine(const ComponentPtr& component) {
  const std::int64_t since = clock_.wall_seconds();
  return commit_write(component,
                      [c = component, since](kv::Transaction& t) { return catalogue::quarantine(t, c->state, since); });
}

Status CatalogueBatch::commit_restore(const proto::ComponentState& state) {
  return commit_write({}, [state](kv::Transaction& transaction) -> Status {
    proto::ComponentState committed = state;
    committed.set_state(kCommitted);
    PIF_TRY(catalogue::put(transaction, committed));
    return catalogue::end_quarantine(transaction, FileId(state.shape().file()));
  });
}

Status CatalogueBatch::commit_end_quarantine(FileId file) {
  return commit_write({}, [file](kv::Transaction& t) { return catalogue::end_quarantine(t, file); });
}

Status CatalogueBatch::commit_view(const std::string& packed) {
  return commit_write({}, [packed](kv::Transaction& t) { return catalogue::put_view(t, packed); });
}

Status CatalogueBatch::commit_scrub(const catalogue::ScrubRecord& record) {
  return commit_write({}, [record](kv::Transaction& t) { return catalogue::put_scrub(t, record); });
}

Status CatalogueBatch::commit_lacking(const proto::StoredLacking& lacking) {
  return commit_write({}, [lacking](kv::Transaction& t) { return catalogue::put_lacking(t, lacking); });
}

Status CatalogueBatch::commit_numbers() {
  return commit_write({}, [](kv::Transaction&) { return Status(); });
}

std::shared_ptr<CatalogueBatch::Outcome> CatalogueBatch::await(std::vector<Item> items) {
  PIF_ASSERT(!items.empty());
  const auto outcome = std::make_shared<Outcome>();
  outcome->waiting = items.size();
  outcome->id = fibers_.begin_wait();
  for (Item& item : items) {
    PIF_ASSERT((item.change != nullptr) != (item.write != nullptr) && !item.outcome);
    item.outcome = outcome;
    items_.push_back(std::move(item));
  }
  fibers_.wait(outcome->id);
  PIF_ASSERT(outcome->waiting == 0, outcome->waiting);
  return outcome;
}

void CatalogueBatch::end(Item& item, const Status& committed) {
  Outcome& outcome = *item.outcome;
  PIF_ASSERT(outcome.waiting > 0);
  if (item.is_stale)
    outcome.is_stale = true;
  else if (!committed)
    outcome.status = committed;
  if (--outcome.waiting == 0) fibers_.wake(outcome.id);
}

void CatalogueBatch::flush() {
  std::vector<Item> items = std::exchange(items_, {});
  for (std::size_t begin = 0; begin < items.size(); begin += kItemsMax) {
    const std::size_t end_of_part = std::min(items.size(), begin + kItemsMax);
    std::vector<Item> part(std::make_move_iterator(items.begin() + static_cast<std::ptrdiff_t>(begin)),
                           std::make_move_iterator(items.begin() + static_cast<std::ptrdiff_t>(end_of_part)));
    PIF_ASSERT(begin < end_of_part && part.size() == end_of_part - begin, begin, end_of_part);
    const Status committed = commit_items(part);
    if (health_ != nullptr) health_->note(DiskCall::kChange, "the catalogue", 0, committed);
    for (auto& item : part) end(item, committed);
  }
}

Status CatalogueBatch::commit_items(std::vector<Item>& items) {
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
      item.is_stale = item.change != nullptr;
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
    if (item.change && is_erased(item.component)) item.is_stale = true;
  for (const auto& [component, state] : changed) components_.set_state(*component, state);
  for (const auto& component : erased)
    if (!component->is_removed()) components_.forget(*component);
  return {};
}

}  // namespace pif::lfs
